#include "fit/search_desk.h"

#include <chrono>
#include <memory>
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
  if (waiting_ >= kWaitingMax)
    return done(fail(ErrorCode::kOverloaded,
                     "Too many searches are waiting for the hub: expected at most " +
                         std::to_string(kWaitingMax) + "; try again later."));
  ++waiting_;
  thread_.run([this, query = std::move(query), done = std::move(done)]() mutable {
    auto json = std::make_shared<Result<std::string>>(answer(query));
    post_([this, json, done = std::move(done)] {
      --waiting_;
      done(std::move(*json));
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
    WEIR_ASSIGN(found, search_hub(client, query, catalogue_, place));
  }
  std::string json;
  JsonWriter writer(json);
  write_json(writer, found);
  return json;
}

}  // namespace weir::fit
