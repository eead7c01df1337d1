// The `format`s of strings, as regular expressions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::grammar {

// A pattern for the whole string; empty: the format says nothing that is checked (password); no
// value: not known.
std::optional<std::string> format_pattern(std::string_view format);

}  // namespace weir::grammar
