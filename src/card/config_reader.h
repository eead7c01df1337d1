// ConfigReader: typed access to one JSON object among a model's files, with one sticky error, so
// that readers are straight lines. After the first error every getter returns a zero value or its
// fallback; status() reports that error. finish() also reports the first key that was not read and
// may compute something (config_keys.h): that is for config.json, whose keys are the model.
//
// Null counts as absent, except for is_null().
//
// Threads: one; a reader, its children and the document belong together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::card {

// Parses JSON as Python writes it: Infinity and NaN, which JSON does not know, become a number too
// large for any use, and null.
Result<JsonDoc> parse_config(std::string_view text);

class ConfigReader {
 public:
  // The document of `value` outlives the reader; a value that is no object is the first error.
  // `file` names the file in messages, and `path`, with a dot at its end, the object in it.
  explicit ConfigReader(JsonValue value, std::string file = "config.json", std::string path = "");

  bool has(std::string_view key) const;  // There and not null. Does not count as reading.

  // There and null: says "none" where an absent key says "as the family has it". Counts neither.
  bool is_null(std::string_view key) const;
  // True if it is that string, which then counts as read: "auto" where else a number stands.
  bool is(std::string_view key, std::string_view word) const;

  // Integers within [min, max]; anything else is an error that says so.
  int require_int(std::string_view key, int min = 0, int max = INT32_MAX) const;
  int int_or(std::string_view key, int fallback, int min = INT32_MIN, int max = INT32_MAX) const;
  float require_float(std::string_view key) const;
  float float_or(std::string_view key, float fallback) const;
  std::optional<double> number(std::string_view key, double min, double max) const;
  bool bool_or(std::string_view key, bool fallback) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;
  // A single value counts as a list; empty when absent.
  std::vector<std::string> strings(std::string_view key) const;
  std::vector<int> ints(std::string_view key, int min = INT32_MIN) const;
  std::vector<float> floats(std::string_view key) const;

  // A value of several types: the caller looks which, and says wrong_type() of others.
  std::optional<JsonValue> value(std::string_view key) const;
  void wrong_type(std::string_view key, std::string_view expected, JsonValue found) const;

  // The object that `key` names, or none; its keys are checked for unread ones too.
  std::optional<ConfigReader> child(std::string_view key) const;

  // All keys, in the file's order; more than kKeysMax are an error, for each is looked up in turn.
  static constexpr size_t kKeysMax = 1000;
  std::vector<std::string_view> keys() const;

  // The family assumes this value: refuse the model rather than compute something else.
  void expect_bool(std::string_view key, bool value) const;
  void expect_int(std::string_view key, int value) const;
  void expect_absent(std::string_view key) const;  // Absent, or computing nothing.

  // What a required integer is where the file leaves it out, because its format does so with what
  // is usual.
  void assume(std::string_view key, int value) const;

  void ignore(std::string_view key) const { value(key); }  // Known not to matter here.

  void reject(std::string message) const;  // An error that the caller itself found.
  Result<void> status() const;
  Result<void> finish() const;

 private:
  struct Node {
    std::string path;                  // "" or "rope_scaling.".
    std::optional<JsonObject> object;  // Nullopt after the error that it is none.
    std::vector<std::string> read{};
    std::vector<std::pair<std::string, int>> assumed{};
  };
  struct State {
    std::string file;
    std::optional<Error> error{};
    std::vector<std::unique_ptr<Node>> nodes{};
  };

  ConfigReader(std::shared_ptr<State> state, Node* node) : state_(std::move(state)), node_(node) {}
  std::string where() const;  // "" or "'rope_scaling': ".
  void expect(std::string_view key, std::string_view value, std::string_view found) const;
  std::string wrong_key(std::string_view key, std::string_view expected,
                        std::string_view found) const;

  std::shared_ptr<State> state_;
  Node* node_;
};

}  // namespace weir::card
