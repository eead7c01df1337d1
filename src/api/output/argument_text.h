// Arguments that formats write without JSON's quotes, as JSON.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/output/output_parser.h"

namespace weir::api::output {

// Appends `"key": value`. A value is what it reads as, unless the function wants a string there, or
// the format says whether it is one.
void append_argument(std::string& json, const CallableFunction& function, std::string_view key,
                     std::string_view text, std::optional<bool> is_string = {});

// A word as JSON: numbers, and true, false and null as Python spells them too; else a string.
void append_word(std::string& json, std::string_view word);

}  // namespace weir::api::output
