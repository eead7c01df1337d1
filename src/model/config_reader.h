// ConfigReader: typed access to config.json with one sticky error, so that family files read as
// straight-line descriptions. After the first error every getter returns a zero value or its
// fallback; finish() reports that error, or the first key that nobody read and that may compute
// something (config_keys.h).
//
// Threads: one; a reader, its children and the document belong together.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::model {

// Parses a config.json as Python writes it: Infinity and NaN, which JSON does not know, become a
// number too large for any use, and null.
Result<JsonDoc> parse_config(std::string_view text);

class ConfigReader {
 public:
  // `root` outlives the reader.
  explicit ConfigReader(JsonObject root);

  bool has(std::string_view key) const;  // There and not null. Does not count as reading.

  // There and null: says "none" where an absent key says "as the family has it". Counts neither.
  bool is_null(std::string_view key) const;

  // Integers within [min, max]; anything else is an error that says so.
  int require_int(std::string_view key, int min = 0, int max = INT32_MAX) const;
  int int_or(std::string_view key, int fallback, int min = INT32_MIN, int max = INT32_MAX) const;
  float require_float(std::string_view key) const;
  float float_or(std::string_view key, float fallback) const;
  bool bool_or(std::string_view key, bool fallback) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;
  std::vector<std::string> strings(std::string_view key) const;  // Empty when absent.
  std::vector<int> ints(std::string_view key) const;  // A single integer counts as a list.
  std::vector<float> floats(std::string_view key) const;

  // The object behind `key`, or none; its keys are checked for unread ones too.
  std::optional<ConfigReader> child(std::string_view key) const;

  // The family assumes this value: refuse the model rather than compute something else.
  void expect_string(std::string_view key, std::string_view value) const;
  void expect_bool(std::string_view key, bool value) const;
  void expect_int(std::string_view key, int value) const;
  void expect_absent(std::string_view key) const;  // Absent, or computing nothing.

  void ignore(std::string_view key) const { find(key); }  // Known not to matter here.

  void reject(std::string message) const;  // An error that the family file itself found.
  Result<void> finish() const;

 private:
  struct Node {
    std::string path;  // "" or "rope_scaling.".
    JsonObject object;
    std::set<std::string, std::less<>> read;
  };
  struct State {
    std::optional<Error> error;
    std::deque<Node> nodes;
  };

  ConfigReader(std::shared_ptr<State> state, Node* node) : state_(std::move(state)), node_(node) {}
  std::optional<JsonValue> find(std::string_view key) const;
  void expect(std::string_view key, std::string_view value, std::string_view found) const;
  void wrong_type(std::string_view key, std::string_view expected, JsonValue found) const;

  std::shared_ptr<State> state_;
  Node* node_;
};

}  // namespace weir::model
