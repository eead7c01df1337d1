// The name that a mistyped one was meant to be, for "did you mean".
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace weir {

// The fewest insertions, deletions and replacements of a byte, and swaps of two neighbours, that
// make one the other (optimal string alignment: what was swapped is not edited again).
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `names`, or empty where none is near: the same name in another spelling
// (maxTokens, max-tokens and max_tokens), or one within two edits that are at most a third of its
// length.
std::string_view near_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace weir
