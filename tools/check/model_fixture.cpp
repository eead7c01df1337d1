#include "model_fixture.h"

#include <algorithm>

#include "base/file.h"
#include "base/json.h"

namespace weir::check {

namespace {

// A value of the document and where it stands in it: "cases[0].prompt_ids".
struct Place {
  JsonValue value;
  std::string path;
};

tl::unexpected<Error> wrong(const std::string& path, const std::string& expected,
                            const std::string& found) {
  return fail(ErrorCode::kConfig, "'" + path + "': expected " + expected + ", found " + found);
}

Result<Place> member(const Place& of, std::string_view key) {
  const std::string path = (of.path.empty() ? "" : of.path + ".") + std::string(key);
  JsonObject object;
  if (of.value.get(object) != simdjson::SUCCESS)
    return wrong(of.path.empty() ? "the document" : of.path, "an object", json_excerpt(of.value));
  const auto found = json_get(object, key);
  if (!found) return wrong(path, "recorded answers as models/README.md describes", "nothing");
  return Place{*found, path};
}

Result<std::vector<Place>> items(const Place& of) {
  JsonArray array;
  if (of.value.get(array) != simdjson::SUCCESS)
    return wrong(of.path, "a list", json_excerpt(of.value));
  std::vector<Place> out;
  for (const JsonValue item : array)
    out.push_back({item, of.path + "[" + std::to_string(out.size()) + "]"});
  return out;
}

Result<double> number(const Place& of) {
  double value = 0;
  if (of.value.get(value) != simdjson::SUCCESS)
    return wrong(of.path, "a number", json_excerpt(of.value));
  return value;
}

Result<int32_t> token(const Place& of) {
  int64_t id = 0;
  if (of.value.get(id) != simdjson::SUCCESS || id < 0 || id > INT32_MAX)
    return wrong(of.path, "a token's id", json_excerpt(of.value));
  return static_cast<int32_t>(id);
}

template <class T>
Result<std::vector<T>> list(const Place& of, std::string_view key, Result<T> (*read)(const Place&),
                            size_t count_min) {
  WEIR_ASSIGN(const Place place, member(of, key));
  WEIR_ASSIGN(const std::vector<Place> all, items(place));
  if (all.size() < count_min)
    return wrong(place.path, "a list of at least " + std::to_string(count_min),
                 std::to_string(all.size()));
  std::vector<T> out;
  for (const Place& item : all) {
    WEIR_ASSIGN(const T value, read(item));
    out.push_back(value);
  }
  return out;
}

Result<void> same_size(const Place& of, std::string_view key, size_t expected, size_t found) {
  if (expected == found) return {};
  return wrong(of.path + "." + std::string(key), std::to_string(expected) + " of them",
               std::to_string(found));
}

Result<ModelFixture::Case> read_case(const Place& place) {
  ModelFixture::Case c;
  WEIR_ASSIGN(c.prompt, list<int32_t>(place, "prompt_ids", token, 1));
  WEIR_ASSIGN(c.greedy, list<int32_t>(place, "greedy_ids", token, 1));
  WEIR_ASSIGN(c.margins, list<double>(place, "margins_nats", number, 1));
  WEIR_TRY(same_size(place, "margins_nats", c.greedy.size(), c.margins.size()));
  WEIR_ASSIGN(const Place top, member(place, "top20_logprobs_of_first_8_steps"));
  WEIR_ASSIGN(const std::vector<Place> steps, items(top));
  for (const Place& step : steps) {
    WEIR_ASSIGN(const auto ids, list<int32_t>(step, "ids", token, 0));
    WEIR_ASSIGN(const auto logprobs, list<double>(step, "logprobs", number, 0));
    WEIR_TRY(same_size(step, "logprobs", ids.size(), logprobs.size()));
    auto& out = c.top.emplace_back();
    for (size_t i = 0; i < ids.size(); ++i) out.emplace_back(ids[i], logprobs[i]);
  }
  return c;
}

int32_t largest_of(const ModelFixture& fixture) {
  int32_t largest = 0;
  const auto see = [&](int32_t id) { largest = std::max(largest, id); };
  std::ranges::for_each(fixture.nll_ids, see);
  for (const ModelFixture::Case& c : fixture.cases) {
    std::ranges::for_each(c.prompt, see);
    std::ranges::for_each(c.greedy, see);
    for (const auto& step : c.top)
      for (const auto& [id, logprob] : step) see(id);
  }
  return largest;
}

Result<ModelFixture> read(const JsonDoc& doc) {
  ModelFixture fixture;
  const Place root{doc.root(), ""};
  WEIR_ASSIGN(const Place nll, member(root, "nll"));
  WEIR_ASSIGN(fixture.nll_ids, list<int32_t>(nll, "ids", token, 2));
  WEIR_ASSIGN(const Place mean, member(nll, "mean_nll_nats"));
  WEIR_ASSIGN(fixture.nll, number(mean));
  if (!(fixture.nll > 0)) return wrong(mean.path, "a positive number", json_excerpt(mean.value));
  WEIR_ASSIGN(const Place cases, member(root, "cases"));
  WEIR_ASSIGN(const std::vector<Place> all, items(cases));
  if (all.empty()) return wrong(cases.path, "at least one case", "none");
  for (const Place& place : all) {
    WEIR_ASSIGN(ModelFixture::Case c, read_case(place));
    fixture.cases.push_back(std::move(c));
  }
  fixture.largest_id = largest_of(fixture);
  return fixture;
}

}  // namespace

Result<ModelFixture> ModelFixture::open(const std::string& folder) {
  const std::string path = folder + "/expected.json";
  WEIR_ASSIGN(const std::string text, read_file(path, size_t{64} << 20));
  const Result<JsonDoc> doc = JsonDoc::parse(text);
  Result<ModelFixture> fixture =
      doc ? read(*doc) : Result<ModelFixture>(tl::unexpected(doc.error()));
  if (!fixture) return fail(fixture.error().code, path + ": " + fixture.error().message);
  return fixture;
}

}  // namespace weir::check
