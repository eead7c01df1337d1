// Builtin: binding of arguments, and search in the tables.
#include "jinja/builtin.h"

#include <algorithm>

namespace weir::jinja {

namespace {

struct Parameters {
  struct Parameter {
    std::string_view name;
    bool optional = false;
  };
  Parameter list[kParametersMax];
  size_t count = 0;
  bool by_position_only = false;
};

Parameters parse_parameters(std::string_view text) {
  Parameters parameters;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (name == "/") {
      parameters.by_position_only = true;
      continue;
    }
    const bool optional = name.back() == '?';
    if (optional) name.remove_suffix(1);
    parameters.list[parameters.count++] = {name, optional};
  }
  return parameters;
}

bool bind(Runtime& rt, const Builtin& builtin, const Arguments& arguments, Value* bound) {
  const Parameters parameters = parse_parameters(builtin.parameters);
  const std::string name(builtin.name);
  if (arguments.positional.size() > parameters.count) {
    rt.fail(name, " expected at most ", std::to_string(parameters.count), " arguments, got ",
            std::to_string(arguments.positional.size()));
    return false;
  }
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound);
  for (const Keyword& keyword : arguments.keywords) {
    size_t i = 0;
    while (i < parameters.count && parameters.list[i].name != keyword.name) ++i;
    if (i == parameters.count || parameters.by_position_only) {
      rt.fail(name, "() got an unexpected keyword argument '", keyword.name, "'");
      return false;
    }
    if (!bound[i].is_missing()) {
      rt.fail(name, "() got multiple values for argument '", keyword.name, "'");
      return false;
    }
    bound[i] = keyword.value;
  }
  for (size_t i = 0; i < parameters.count; ++i) {
    if (!bound[i].is_missing() || parameters.list[i].optional) continue;
    rt.fail(name, "() missing required argument '", parameters.list[i].name, "'");
    return false;
  }
  return true;
}

const Builtin* search(std::span<const Builtin> table, std::string_view name) {
  const auto found = std::lower_bound(
      table.begin(), table.end(), name,
      [](const Builtin& builtin, std::string_view key) { return builtin.name < key; });
  return found != table.end() && found->name == name ? &*found : nullptr;
}

}  // namespace

Value invoke(Runtime& rt, const Builtin& builtin, const Value& self, const Arguments& arguments) {
  Value bound[kParametersMax];
  if (builtin.parameters != "*" && !bind(rt, builtin, arguments, bound)) return Value::error();
  return builtin.call(Call{rt, self, bound, arguments});
}

const Builtin* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), sequence_filters(), number_filters()})
    if (const Builtin* found = search(table, name)) return found;
  return nullptr;
}

const Builtin* find_test(std::string_view name) { return search(tests(), name); }
const Builtin* find_function(std::string_view name) { return search(functions(), name); }

const Builtin* find_method(Type type, std::string_view name) {
  switch (type) {
    case Type::kStr:
      return search(str_methods(), name);
    case Type::kDict:
      return search(dict_methods(), name);
    case Type::kList:
      return search(list_methods(), name);
    case Type::kTuple:
      return search(tuple_methods(), name);
    case Type::kRange:
      return search(tuple_methods(), name);
    case Type::kLoop:
      return search(loop_methods(), name);
    case Type::kCycler:
      return search(cycler_methods(), name);
    default:
      return nullptr;
  }
}

bool is_unsafe_method(Type type, std::string_view name) {
  static constexpr std::string_view kList[] = {"append", "extend",  "insert",
                                               "remove", "reverse", "sort"};
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const auto has = [name](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) return true;
  return type == Type::kList ? has(kList) : type == Type::kDict && has(kDict);
}

bool to_int(const Call& call, const Value& value, int64_t& number) {
  if (value.is_integral()) {
    number = value.as_integer();
    return true;
  }
  if (value.is(Type::kUndefined)) {
    call.rt.fail_undefined(value);
  } else {
    call.rt.fail("'", type_name(value.type), "' object cannot be interpreted as an integer");
  }
  return false;
}

bool to_optional_int(const Call& call, const Value& value, int64_t& number) {
  if (value.is_missing() || value.is(Type::kNone)) return true;
  return to_int(call, value, number);
}

}  // namespace weir::jinja
