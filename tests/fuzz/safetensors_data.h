// safetensors_data: how many bytes of data a fuzzed safetensors header asks for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"

namespace weir {

// Where the last tensor ends, at most `bytes_max`, so that headers need not agree with a length of
// their own.
inline size_t safetensors_data_bytes(std::string_view header, size_t bytes_max) {
  const auto doc = JsonDoc::parse(header, 16);
  JsonObject root;
  if (!doc || doc->root().get(root) != simdjson::SUCCESS) return 0;
  uint64_t end = 0;
  for (const auto field : root) {
    uint64_t one = 0;
    if (field.value["data_offsets"].at(1).get(one) == simdjson::SUCCESS) end = std::max(end, one);
  }
  return std::min<uint64_t>(end, bytes_max);
}

}  // namespace weir
