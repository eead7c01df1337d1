// Builtin: a filter, test, method or global function that Jinja or Python brings along, in tables
// by name; and how arguments are bound to its parameters.
//
// Threads: the tables are constant.
#pragma once

#include <span>
#include <string_view>

#include "jinja/runtime.h"

namespace weir::jinja {

struct Keyword {
  std::string_view name;
  Value value;
};

struct Arguments {
  std::span<const Value> positional = {};
  std::span<const Keyword> keywords = {};
};

// What an implementation gets: its object (the filtered or tested value, the method's self) and its
// arguments, bound in the parameters' order; those not given are kMissing.
struct Call {
  Runtime& rt;
  const Value& self;
  const Value* args;
  const Arguments& raw;  // As written, for those that take any ("*").

  const Value& operator[](size_t i) const { return args[i]; }
  bool has(size_t i) const { return !args[i].is_missing(); }
};

struct Builtin {
  std::string_view name;
  // Names separated by spaces, optional ones with '?'; "/" first: by position only; "*": any.
  std::string_view parameters;
  Value (*call)(const Call& call);
};

constexpr size_t kParametersMax = 6;

// Binds the arguments and calls; wrong arguments are an error that names the builtin.
Value invoke(Runtime& rt, const Builtin& builtin, const Value& self, const Arguments& arguments);

// Null if there is none. Tables of at most some dozens, sorted by name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_function(std::string_view name);
// A method of values of that type; what Jinja's sandbox forbids is not among them.
const Builtin* find_method(Type type, std::string_view name);
// Whether the sandbox hides this method because it changes its object.
bool is_unsafe_method(Type type, std::string_view name);

// The parts of the tables; each is sorted by name.
std::span<const Builtin> text_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> number_filters();
std::span<const Builtin> tests();
std::span<const Builtin> functions();
std::span<const Builtin> str_methods();
std::span<const Builtin> dict_methods();
std::span<const Builtin> list_methods();
std::span<const Builtin> tuple_methods();
std::span<const Builtin> loop_methods();
std::span<const Builtin> cycler_methods();

// An int argument. False, with the error set, if it is none.
bool to_int(const Call& call, const Value& value, int64_t& number);
// An int argument, where a missing or None one leaves `number` as it is.
bool to_optional_int(const Call& call, const Value& value, int64_t& number);

struct Method {
  Value self;
  const Builtin* builtin = nullptr;
};

}  // namespace weir::jinja
