// AttributePath: parsing, and following.
#include "jinja/attribute_path.h"

#include <algorithm>

#include "jinja/number.h"
#include "jinja/object.h"

namespace weir::jinja {

namespace {

Value path_part(Runtime& rt, std::string_view text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  int64_t index;
  if (digits && parse_int(text, 10, index) == IntParse::kOk) return Value::of(index);
  return rt.borrow(text);
}

AttributePath path_of_text(Runtime& rt, std::string_view text) {
  std::vector<Value> parts;
  for (;;) {
    const size_t dot = std::min(text.find('.'), text.size());
    parts.push_back(path_part(rt, text.substr(0, dot)));
    if (dot == text.size()) break;
    text.remove_prefix(dot + 1);
  }
  return {.parts = rt.arena().copy(parts), .otherwise = Value::missing()};
}

}  // namespace

Value AttributePath::get(Runtime& rt, Value item) const {
  for (const Value& part : parts) {
    item = get_item(rt, item, part);
    if (item.is_error()) return item;
    if (item.is(Type::kUndefined) && !otherwise.is_missing() && !otherwise.is(Type::kNone))
      item = otherwise;
  }
  if (!ignore_case || !item.is(Type::kStr)) return item;
  return invoke(rt, *find_method(Type::kStr, "lower"), item, {});
}

AttributePath attribute_path(Runtime& rt, const Value& attribute) {
  if (attribute.is_missing() || attribute.is(Type::kNone)) return {};
  if (attribute.is(Type::kStr)) return path_of_text(rt, attribute.text());
  return {.parts = rt.arena().copy(std::vector<Value>{attribute}), .otherwise = Value::missing()};
}

std::vector<AttributePath> attribute_paths(Runtime& rt, const Value& attribute) {
  if (!attribute.is(Type::kStr)) return {attribute_path(rt, attribute)};
  std::vector<AttributePath> paths;
  std::string_view text = attribute.text();
  for (;;) {
    const size_t comma = std::min(text.find(','), text.size());
    paths.push_back(path_of_text(rt, text.substr(0, comma)));
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  return paths;
}

}  // namespace weir::jinja
