// A subset of Lark's grammar notation, which vLLM takes beside EBNF: rules and terminals, "strings"
// (with i), "a".."z", /regexes/, groups, [optional], * + ? ~n ~n..m, aliases, %import common.NAME,
// %ignore, // comments. `start` is the whole output. Between two terminals, where %ignore allows
// it, what is ignored may stand.
//
// Refused: templates, %declare, %override, %extend, other imports, regex flags.
#pragma once

#include <string_view>

#include "grammar/grammar.h"
#include "grammar/json_text.h"

namespace weir::grammar {

// Fills the grammar and sets its root. `spelling`: of the texts that it describes.
Result<void> lark(Grammar& grammar, std::string_view text, Spelling spelling = Spelling::kPlain);

}  // namespace weir::grammar
