// Formatting: the % operator of strings, str.format, and one value by a format specification.
//
// Threads: each call works for one Runtime.
#pragma once

#include "jinja/builtin.h"

namespace weir::jinja {

// format % values, a tuple, a mapping or a single value. REQUIRES: format is a string.
Value format_percent(Runtime& rt, const Value& format, const Value& values);
// format.format(*positional, **keywords)
Value format_braces(Runtime& rt, const Str& format, const Arguments& arguments);

}  // namespace weir::jinja
