#include "fit/search_desk.h"

#include <chrono>
#include <utility>

#include "base/json.h"
#include "fit/lookup.h"
#include "fit/search.h"
#include "hub/settings.h"
#include "hub/transport.h"
#include "program/model_source.h"

namespace weir::fit {

namespace {

// Tries of the client included: a person looks at an empty list meanwhile.
constexpr auto kTimeMax = std::chrono::seconds(20);

}  // namespace

SearchDesk::SearchDesk(const Options& options, const MemoryLimit& limit,
                       std::function<void(std::function<void()>)> post)
    : options_(options), limit_(limit), post_(std::move(post)), catalogue_(Catalogue::built_in()) {}

SearchDesk::~SearchDesk() { stopping_ = true; }

void SearchDesk::ask(hub::SearchQuery query, Done done) {
  if (waiting_.size() >= kWaitingMax)
    return done(fail(ErrorCode::kOverloaded,
                     "Too many searches are waiting for the hub: expected at most " +
                         std::to_string(kWaitingMax) + "; try again later."));
  const uint64_t number = ++asked_;
  waiting_.emplace(number, std::move(done));
  thread_.run([this, number, query = std::move(query)] {
    post_([this, number, alive = std::weak_ptr(alive_), json = answer(query)] {
      if (alive.expired()) return;
      const Done told = std::move(waiting_.at(number));
      waiting_.erase(number);
      told(json);
    });
  });
}

Result<std::string> SearchDesk::answer(const hub::SearchQuery& query) const {
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options_));
  const SearchPlace place = {options_, limit_, existing_folder(settings.cache)};
  SearchHits found;
  if (query.text.empty()) {
    found = search_catalogue(catalogue_, "", place);
  } else {
    WEIR_ASSIGN(const std::unique_ptr<hub::Transport> transport, hub::curl_transport(settings));
    WEIR_ASSIGN(hub::Client client, hub::Client::create(settings, *transport));
    const auto begin = std::chrono::steady_clock::now();
    client.stop_when(
        [this, begin] { return stopping_ || std::chrono::steady_clock::now() - begin > kTimeMax; });
    Result<SearchHits> hits = search_hub(client, query, catalogue_, place);
    if (!hits && hits.error().code == ErrorCode::kCancelled)
      return fail(ErrorCode::kUnavailable, settings.endpoint + ": expected an answer within " +
                                               std::to_string(kTimeMax.count()) + " s, found none");
    WEIR_ASSIGN(found, std::move(hits));
  }
  std::string json;
  JsonWriter writer(json);
  write_json(writer, found);
  return json;
}

}  // namespace weir::fit
