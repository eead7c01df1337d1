// How much memory a body takes while it is parsed, rendered and tokenised: what in_pool() leases
// and the memory plan adds up.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weir::api {

// Of each byte of a body: itself, simdjson's padded copy and its strings, the fields of the
// request, the template's variables (a JSON document again) and the prompt. Measured with bodies of
// 30 MiB: a chat of one long text peaks at 7 to 8.6 bytes, a completion at 5.
inline constexpr size_t kPreparingPerByte = 9;
// Of each JSON value beside its bytes: simdjson's index and tape (24), and an id or an element of
// the template's variables (16). Measured: 18 to 40.
inline constexpr size_t kPreparingPerValue = 40;

// An upper bound that needs no parsing: what opens or parts values is counted in strings, too.
inline size_t preparing_bytes(std::string_view body) {
  const auto values = std::count_if(body.begin(), body.end(), [](char c) {
    return (c == ',') | (c == ':') | (c == '[') | (c == '{');
  });
  return kPreparingPerByte * body.size() + kPreparingPerValue * static_cast<size_t>(values);
}

}  // namespace weir::api
