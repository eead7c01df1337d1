// str() and repr().
#include "jinja/repr.h"

#include <charconv>
#include <cstdio>

#include "jinja/codepoint.h"
#include "jinja/number.h"
#include "jinja/object.h"

namespace weir::jinja {

namespace {

bool append_repr_within(Runtime& rt, TextBuilder& out, const Value& value, int depth);

bool append_int(TextBuilder& out, int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return out.add({digits, static_cast<size_t>(end - digits)});
}

bool append_items(Runtime& rt, TextBuilder& out, std::span<const Value> items, int depth) {
  for (size_t i = 0; i < items.size(); ++i)
    if ((i > 0 && !out.add(", ")) || !append_repr_within(rt, out, items[i], depth)) return false;
  return true;
}

bool append_entry(Runtime& rt, TextBuilder& out, const Entry& entry, DictView::Kind kind,
                  int depth) {
  switch (kind) {
    case DictView::Kind::kKeys:
      return append_repr_within(rt, out, entry.key, depth);
    case DictView::Kind::kValues:
      return append_repr_within(rt, out, entry.value, depth);
    case DictView::Kind::kItems:
      return out.add('(') && append_repr_within(rt, out, entry.key, depth) && out.add(", ") &&
             append_repr_within(rt, out, entry.value, depth) && out.add(')');
  }
  return false;
}

bool append_dict(Runtime& rt, TextBuilder& out, const Dict& dict, int depth) {
  if (!out.add('{')) return false;
  bool first = true;
  for (const Entry& entry : dict.entries()) {
    if (!first && !out.add(", ")) return false;
    first = false;
    if (!append_repr_within(rt, out, entry.key, depth) || !out.add(": ") ||
        !append_repr_within(rt, out, entry.value, depth))
      return false;
  }
  return out.add('}');
}

bool append_view(Runtime& rt, TextBuilder& out, const DictView& view, int depth) {
  static constexpr const char* kNames[] = {"dict_keys([", "dict_values([", "dict_items(["};
  if (!out.add(kNames[static_cast<int>(view.kind)])) return false;
  bool first = true;
  for (const Entry& entry : view.dict->entries()) {
    if ((!first && !out.add(", ")) || !append_entry(rt, out, entry, view.kind, depth)) return false;
    first = false;
  }
  return out.add("])");
}

bool append_range(TextBuilder& out, const Range& range) {
  return out.add("range(") && append_int(out, range.start) && out.add(", ") &&
         append_int(out, range.stop) &&
         (range.step == 1 || (out.add(", ") && append_int(out, range.step))) && out.add(')');
}

bool append_repr_within(Runtime& rt, TextBuilder& out, const Value& value, int depth) {
  if (!rt.charge()) return false;
  if (depth == 0) {
    rt.fail("maximum recursion depth exceeded while printing a value");
    return false;
  }
  switch (value.type) {
    case Type::kStr:
      return value.str->markup
                 ? out.add("Markup(") && append_quoted(out, value.text()) && out.add(')')
                 : append_quoted(out, value.text());
    case Type::kList:
      return out.add('[') && append_items(rt, out, value.list->span(), depth - 1) && out.add(']');
    case Type::kTuple:
      return out.add('(') && append_items(rt, out, value.list->span(), depth - 1) &&
             out.add(value.list->size == 1 ? ",)" : ")");
    case Type::kDict:
      return append_dict(rt, out, *value.dict, depth - 1);
    case Type::kDictView:
      return append_view(rt, out, *value.view, depth - 1);
    case Type::kRange:
      return append_range(out, *value.range);
    case Type::kNamespace:
      return out.add("<Namespace ") && append_dict(rt, out, *value.space->attributes, depth - 1) &&
             out.add('>');
    case Type::kUndefined:
      return out.add("Undefined");
    case Type::kNone:
      return out.add("None");
    case Type::kBool:
      return out.add(value.boolean ? "True" : "False");
    case Type::kInt:
      return append_int(out, value.integer);
    case Type::kBigInt:
      return out.add(value.text());
    case Type::kFloat:
      return out.add(float_repr(value.number));
    default:
      return append_object_repr(rt, out, value);
  }
}

// What stands for the character in a literal with these quotes; empty for itself.
std::string escape_of(char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') return {'\\', static_cast<char>(c)};
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (is_printable(c)) return {};
  char buffer[16];
  std::snprintf(buffer, sizeof buffer,
                c < 0x100     ? "\\x%02x"
                : c < 0x10000 ? "\\u%04x"
                              : "\\U%08x",
                static_cast<unsigned>(c));
  return buffer;
}

}  // namespace

bool append_quoted(TextBuilder& out, std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  if (!out.add(quote)) return false;
  const char* at = text.data();
  const char* end = at + text.size();
  const char* plain = at;  // Of what has not been added yet.
  while (at < end) {
    const char* start = at;
    const std::string escape = escape_of(next_codepoint(at), quote);
    if (escape.empty()) continue;
    if (!out.add({plain, static_cast<size_t>(start - plain)}) || !out.add(escape)) return false;
    plain = at;
  }
  return out.add({plain, static_cast<size_t>(end - plain)}) && out.add(quote);
}

bool append_str(Runtime& rt, TextBuilder& out, const Value& value) {
  if (value.is(Type::kStr)) return out.add(value.text());
  if (value.is(Type::kUndefined)) return true;
  return append_repr_within(rt, out, value, kNestingMax);
}

bool append_repr(Runtime& rt, TextBuilder& out, const Value& value) {
  return append_repr_within(rt, out, value, kNestingMax);
}

Value to_str(Runtime& rt, const Value& value) {
  if (value.is(Type::kStr)) return value;
  if (value.is(Type::kUndefined)) return rt.borrow("");
  TextBuilder out(rt);
  if (!append_repr_within(rt, out, value, kNestingMax)) return Value::error();
  return out.take();
}

std::string short_repr(Runtime& rt, const Value& value) {
  constexpr size_t kShownBytes = 120;
  TextBuilder out(rt);
  switch (value.type) {
    case Type::kStr:
      append_quoted(out, value.text().substr(0, codepoint_offset(value.text(), kShownBytes / 4)));
      break;
    case Type::kList:
    case Type::kTuple:
    case Type::kDict:
    case Type::kDictView:
    case Type::kNamespace:
      return std::string(type_name(value.type));
    default:
      append_repr(rt, out, value);
  }
  return std::string(out.view());
}

}  // namespace weir::jinja
