// Oniguruma's regular expressions (Ruby syntax, Unicode), rewritten as PCRE2's. tokenizer.json
// holds the former; the two agree on most of what they accept and silently differ on the rest.
//
// Differences handled: character class set operations (`[A&&[^B]]` would match other text in
// PCRE2), \s \w \d \h \b and POSIX brackets by Oniguruma's definitions, \p{...} names (\p{Han}
// means Script there, Script_Extensions here), \uXXXX, `{,n}`, `{n}+` (not possessive), (?m) (dot
// matches newline), ^ and $ (always lines).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::text {

// To be compiled with UTF, UCP and MULTILINE. An error names what is not understood.
Result<std::string> translate_oniguruma(std::string_view pattern);

}  // namespace weir::text
