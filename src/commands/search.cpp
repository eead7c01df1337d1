#include "commands/search.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "base/byte_size.h"
#include "base/json.h"
#include "fit/catalogue.h"
#include "fit/lookup.h"
#include "fit/search.h"
#include "hub/client.h"
#include "hub/settings.h"
#include "hub/transport.h"
#include "program/memory_limit.h"
#include "program/model_source.h"

namespace weir {

namespace {

// "30.5B", "135M"; empty: not known.
std::string parameters_text(int64_t count) {
  if (count <= 0) return "";
  char text[32];
  const auto number = static_cast<double>(count);
  if (count >= 1'000'000'000)
    std::snprintf(text, sizeof text, "%.1fB", number / 1e9);
  else
    std::snprintf(text, sizeof text, "%.0fM", number / 1e6);
  return text;
}

// What a name or a licence from elsewhere may do on a terminal: nothing.
std::string plain(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

void print_hits(const fit::SearchHits& found) {
  size_t width = 0;
  for (const fit::SearchHit& hit : found.hits) width = std::max(width, hit.model.id.size());
  for (const fit::SearchHit& hit : found.hits) {
    const std::string size = hit.file_bytes > 0 ? human_bytes(hit.file_bytes) : "";
    const std::string told = hit.assessment ? fit::describe(hit.assessment->fit) : "";
    const std::string speed =
        hit.assessment && hit.assessment->speed ? "; " + fit::describe(*hit.assessment->speed) : "";
    const std::string terms = hit.model.gated.empty() ? "" : "[terms to accept] ";
    std::printf("%-*s  %7s %9s  %s%s%s\n", static_cast<int>(width), plain(hit.model.id).c_str(),
                parameters_text(hit.model.parameters_total).c_str(), size.c_str(), terms.c_str(),
                told.c_str(), speed.c_str());
  }
  if (found.hits.empty()) std::printf("nothing found\n");
}

}  // namespace

Result<void> search_models(const Options& options) {
  const MemoryLimit limit = memory_limit(options);
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options));
  const fit::Catalogue catalogue = fit::Catalogue::built_in();
  const fit::SearchPlace place = {options, limit, fit::existing_folder(settings.cache)};
  fit::SearchHits found;
  if (options.words.empty() || settings.offline) {
    found = fit::search_catalogue(catalogue, options.words, place);
  } else {
    WEIR_ASSIGN(const std::unique_ptr<hub::Transport> transport, hub::curl_transport(settings));
    WEIR_ASSIGN(hub::Client client, hub::Client::create(settings, *transport));
    hub::SearchQuery query;
    query.text = options.words;
    query.filter = options.filter;
    query.sort = options.sort;
    WEIR_ASSIGN(found, fit::search_hub(client, query, catalogue, place));
  }
  if (!options.json) return print_hits(found), Result<void>();
  std::string json;
  JsonWriter writer(json);
  fit::write_json(writer, found);
  std::printf("%s\n", json.c_str());
  return {};
}

}  // namespace weir
