// Splitting, stripping and replacing text, as str's methods of these names do it.
//
// Threads: each call works for one Runtime.
#pragma once

#include <vector>

#include "jinja/runtime.h"

namespace weir::jinja {

// Pieces of `text`, at most `splits_max` + 1 of them (negative: no limit).
bool split_on(Runtime& rt, std::string_view text, std::string_view separator, int64_t splits_max,
              std::vector<std::string_view>& pieces);
bool split_on_from_right(Runtime& rt, std::string_view text, std::string_view separator,
                         int64_t splits_max, std::vector<std::string_view>& pieces);
// On runs of white space; no empty pieces.
bool split_words(Runtime& rt, std::string_view text, int64_t splits_max,
                 std::vector<std::string_view>& pieces);
bool split_words_from_right(Runtime& rt, std::string_view text, int64_t splits_max,
                            std::vector<std::string_view>& pieces);
// On all of Unicode's line ends.
bool split_lines(Runtime& rt, std::string_view text, bool keep_ends,
                 std::vector<std::string_view>& pieces);

enum class Side : uint8_t { kLeft, kRight, kBoth };
// Takes off characters that are in `chars`.
std::string_view strip_chars(std::string_view text, std::string_view chars, Side side);

// All occurrences, or the first `count` of them (negative: all).
Value replace_text(Runtime& rt, std::string_view text, std::string_view from, std::string_view to,
                   int64_t count, bool markup);

}  // namespace weir::jinja
