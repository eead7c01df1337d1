// SampleSchema: a JSON schema of a small object, other ones for other numbers, and whether a text
// keeps it. Everything in it is bounded, so that an answer which is bound to it ends.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weir::suite {

struct SampleSchema {
  enum class Kind : uint8_t { kObject, kArray, kWord, kText, kInteger, kTruth };
  Kind kind = Kind::kTruth;
  std::vector<std::pair<std::string, SampleSchema>> members = {};  // All required; of an array one.
  std::vector<std::string> words = {};                             // Of kWord: one of them.
  int32_t low = 0, high = 0;  // Of kInteger; lengths of kText and kArray.

  static SampleSchema numbered(uint64_t number);

  void write(JsonWriter& json) const;
  // What is wrong with a text: "no JSON", "expected ... at ..."; empty: it keeps the schema.
  std::string fault(std::string_view text) const;

 private:
  static SampleSchema make(uint64_t& state, int32_t depth);
  std::string fault_at(JsonValue value, const std::string& where) const;
};

}  // namespace weir::suite
