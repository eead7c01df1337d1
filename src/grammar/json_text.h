// How characters and strings look inside JSON: the forms that constrained output uses.
#pragma once

#include <string_view>

#include "grammar/grammar.h"

namespace weir::grammar {

// How a language over characters is spelled in bytes.
enum class Spelling : uint8_t {
  kPlain,  // UTF-8.
  // Inside a JSON string: UTF-8, but for quote, backslash and control characters, each of which has
  // one escape, the short one if there is one. One spelling each, so that languages can be
  // compared and subtracted.
  kJson,
};

// One character of the set.
ExprId spell(Grammar& grammar, const CharSet& set, Spelling spelling);
// A text, which is valid UTF-8.
ExprId spell(Grammar& grammar, std::string_view text, Spelling spelling);

// A character of a JSON string in any spelling: escapes where none is needed, too. Only whole
// characters: no half of a surrogate pair.
ExprId any_json_character(Grammar& grammar);

}  // namespace weir::grammar
