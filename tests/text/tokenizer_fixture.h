// What the tokenizer's tests share: files of tests/data, recorded cases, models beside the sources.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/concat.h"
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace weir::text {

inline std::string data_path(std::string_view name) {
  return std::string(WEIR_SOURCE_DIR "/tests/data/tokenizer/") + std::string(name);
}

// An absent file is an empty text: the test that needs it fails by what it does not find.
inline std::string file_text(const std::string& path) {
  auto text = read_file(path, size_t{64} << 20);
  return text ? std::move(*text) : std::string();
}

inline JsonDoc parse_json(std::string_view text) {
  auto doc = JsonDoc::parse(text);
  EXPECT_TRUE(doc.has_value()) << doc.error().message;
  return std::move(*doc);
}

inline std::unique_ptr<Tokenizer> load_tokenizer(std::string_view json) {
  auto tokenizer = Tokenizer::load(json);
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

// The error of a tokenizer.json that must not load.
inline std::string load_error(std::string_view json) {
  const auto tokenizer = Tokenizer::load(json);
  return tokenizer ? "(it loaded)" : tokenizer.error().message;
}

inline std::vector<int32_t> int_list(JsonValue array) {
  std::vector<int32_t> list;
  for (const JsonValue value : JsonArray(array))
    list.push_back(static_cast<int32_t>(int64_t(value)));
  return list;
}

// A folder of shared models, or nothing where there is none.
inline std::string shared_model(std::string_view name) {
  const char* folder = std::getenv("WEIR_MODELS");
  const std::string path =
      (folder ? std::string(folder) : std::string(WEIR_SOURCE_DIR "/../shared/models")) + "/" +
      std::string(name);
  return std::filesystem::exists(path + "/tokenizer.json") ? path : std::string();
}

// Our own model's tokenizer, which is always there.
inline std::string own_tokenizer_json() {
  return file_text(WEIR_SOURCE_DIR "/models/weir-tiny-moe/tokenizer.json");
}

// A tokenizer.json with these parts, each JSON.
inline std::string tokenizer_json(std::string_view model, std::string_view rest = "") {
  return concat({"{\"version\": \"1.0\", \"model\": ", model, rest.empty() ? "" : ", ", rest, "}"});
}

}  // namespace weir::text
