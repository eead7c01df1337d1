// A grammar put together from parts, as JSON: free text around forms. For outputs of which only a
// part is bound, such as calls of functions within an answer.
//
//   {"text": "..."}                  these bytes
//   {"space": true}                  nothing, a space, or a line feed
//   {"until": ["...", ...]}          any bytes, up to and with the first of these to come
//   {"until": [...], "but": ["...", ...]}    the same, and none of the others comes before
//   {"without": ["...", ...]}        any bytes in which none of these comes
//   {..., "not_first": "{["}         beside both: none of these bytes is the first but for white
//   space
//   {"seq": [part, ...]}, {"any": [part, ...]}
//   {"repeat": part, "min": 0, "max": 3}     without max: any number of times
//   {"object": true}                 any JSON object
//   {"schema": {...}}                what satisfies the JSON schema
//   {"schema": {...}, "loose": "..."}    as much of it as can be enforced: see LooseSchemas, which
//                                    calls the schema by this name
//   {"source": {"kind": 2, "text": "...", "choices": [...]}}     another GrammarSource
//   {"source": {...}, "in_string": true}     the same, spelled as within a JSON string; for the
//                                    kinds regex and grammar (Lark)
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "grammar/source.h"

namespace weir::grammar {

// A schema, the text of a JSON object, as a source of which only that is bound which can be
// enforced.
GrammarSource loose_schema(std::string_view schema, std::string_view name);

// A source as a part.
std::string source_part(const GrammarSource& source);

}  // namespace weir::grammar
