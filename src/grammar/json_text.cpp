#include "grammar/json_text.h"

#include <array>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"

namespace weir::grammar {

namespace {

const CharSet& escaped_characters() {
  static const CharSet set{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
  return set;
}

std::string escape_of(char32_t c) {
  std::string character;
  append_utf8(character, c);
  std::string quoted;
  append_json_string(quoted, character);
  return quoted.substr(1, quoted.size() - 2);
}

ExprId hex_digit(Grammar& grammar) {
  return grammar.any(
      {grammar.symbols('0', '9'), grammar.symbols('a', 'f'), grammar.symbols('A', 'F')});
}

// One of the lower-case letters, in either case.
ExprId letters(Grammar& grammar, std::string_view lower) {
  std::vector<ExprId> parts;
  for (const char c : lower) {
    const auto byte = static_cast<uint16_t>(c);
    parts.push_back(grammar.symbols(byte, byte));
    const auto upper = static_cast<uint16_t>(byte - ('a' - 'A'));
    parts.push_back(grammar.symbols(upper, upper));
  }
  return grammar.any(parts);
}

}  // namespace

ExprId spell(Grammar& grammar, const CharSet& set, Spelling spelling) {
  if (spelling == Spelling::kPlain) return grammar.characters(set);
  std::vector<ExprId> parts{grammar.characters(set.minus(escaped_characters()))};
  for (const CharRange& range : escaped_characters().ranges())
    for (char32_t c = range.first; c <= range.last; ++c)
      if (set.contains(c)) parts.push_back(grammar.literal(escape_of(c)));
  return grammar.any(parts);
}

ExprId spell(Grammar& grammar, std::string_view text, Spelling spelling) {
  if (spelling == Spelling::kPlain) return grammar.literal(text);
  std::string quoted;
  append_json_string(quoted, text);
  return grammar.literal(std::string_view(quoted).substr(1, quoted.size() - 2));
}

ExprId any_json_character(Grammar& grammar) {
  const ExprId hex = hex_digit(grammar);
  const ExprId two = grammar.concat({hex, hex}), three = grammar.concat({two, hex});
  // \uXXXX but for surrogates, or a high surrogate and a low one.
  const ExprId not_d = grammar.any({grammar.symbols('0', '9'), letters(grammar, "abcef")});
  const ExprId plain =
      grammar.any({grammar.concat({not_d, three}),
                   grammar.concat({letters(grammar, "d"), grammar.symbols('0', '7'), two})});
  const ExprId high = grammar.concat({letters(grammar, "d"), letters(grammar, "89ab"), two});
  const ExprId low = grammar.concat({letters(grammar, "d"), letters(grammar, "cdef"), two});
  const ExprId unicode =
      grammar.concat({grammar.literal("u"),
                      grammar.any({plain, grammar.concat({high, grammar.literal("\\u"), low})})});
  std::vector<ExprId> escapes{unicode};
  for (const char c : std::string_view("\"\\/bfnrt"))
    escapes.push_back(grammar.symbols(static_cast<uint16_t>(c), static_cast<uint16_t>(c)));
  return grammar.any({grammar.characters(CharSet::all().minus(escaped_characters())),
                      grammar.concat({grammar.literal("\\"), grammar.any(escapes)})});
}

}  // namespace weir::grammar
