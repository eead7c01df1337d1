#include "fit/search.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "fit/fit_json.h"

namespace weir::fit {

namespace {

constexpr std::string_view kLicense = "license:";

void add_known(SearchHit& hit, const CatalogueFormat& files, const SearchPlace& place) {
  hit.format = files.format;
  hit.file_bytes = files.file_bytes > 0 ? files.file_bytes : files.bytes;
  hit.assessment = assess(place.options, place.limit, files, place.disk);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), ascii_lower);
  return out;
}

bool has_words(const std::string& text, std::string_view words) {
  const std::string in = lower(text);
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    if (in.find(lower(words.substr(begin, end - begin))) == std::string::npos) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

Result<SearchHits> search_hub(hub::Client& client, const hub::SearchQuery& query,
                              const Catalogue& catalogue, const SearchPlace& place) {
  WEIR_ASSIGN(hub::SearchPage page, client.search(query));
  SearchHits found;
  found.next = std::move(page.next);
  for (hub::ModelInfo& model : page.models) {
    SearchHit hit;
    for (const std::string& tag : model.tags)
      if (tag.starts_with(kLicense)) hit.license = tag.substr(kLicense.size());
    if (const CatalogueFormat* known = catalogue.find(model.id)) add_known(hit, *known, place);
    hit.model = std::move(model);
    found.hits.push_back(std::move(hit));
  }
  return found;
}

SearchHits search_catalogue(const Catalogue& catalogue, std::string_view words,
                            const SearchPlace& place) {
  SearchHits found;
  for (const CatalogueModel& model : catalogue.models()) {
    for (const CatalogueFormat& format : model.formats) {
      if (!has_words(model.name + " " + format.id, words)) continue;
      SearchHit hit;
      hit.model.id = format.id;
      hit.model.gated = model.gated ? "manual" : "";
      hit.model.parameters_total = model.parameters;
      hit.license = model.license;
      add_known(hit, format, place);
      found.hits.push_back(std::move(hit));
    }
  }
  return found;
}

void write_json(JsonWriter& w, const SearchHits& found) {
  w.begin_object().key("models").begin_array();
  for (const SearchHit& hit : found.hits) {
    w.begin_object().field("id", hit.model.id);
    w.field("downloads", hit.model.downloads).field("likes", hit.model.likes);
    if (!hit.model.last_modified.empty()) w.field("last_modified", hit.model.last_modified);
    if (!hit.model.pipeline_tag.empty()) w.field("pipeline_tag", hit.model.pipeline_tag);
    if (!hit.license.empty()) w.field("license", hit.license);
    w.field("gated", !hit.model.gated.empty()).field("private", hit.model.is_private);
    if (hit.model.parameters_total > 0) w.field("parameters", hit.model.parameters_total);
    if (!hit.format.empty()) w.field("format", hit.format);
    if (hit.file_bytes > 0) w.field("file_bytes", hit.file_bytes);
    if (hit.assessment) {
      w.key("fit");
      write_json(w, hit.assessment->fit);
      if (hit.assessment->speed) {
        w.key("speed");
        write_json(w, *hit.assessment->speed);
      }
    }
    w.end_object();
  }
  w.end_array().key("next");
  if (found.next.empty())
    w.null();
  else
    w.value(std::string_view(found.next));
  w.end_object();
}

}  // namespace weir::fit
