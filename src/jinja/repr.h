// str() and repr() of values, as Python prints them.
//
// Threads: each call works for one Runtime.
#pragma once

#include <string>
#include <string_view>

#include "jinja/runtime.h"

namespace weir::jinja {

// str(value). What is a string already is returned itself, Markup too.
Value to_str(Runtime& rt, const Value& value);
// Appends str(value) to `out`. False, with the error set, when a limit is reached.
bool append_str(Runtime& rt, TextBuilder& out, const Value& value);
bool append_repr(Runtime& rt, TextBuilder& out, const Value& value);
// repr of a string.
bool append_quoted(TextBuilder& out, std::string_view text);
// A short repr for messages; long or deep values are cut.
std::string short_repr(Runtime& rt, const Value& value);

}  // namespace weir::jinja
