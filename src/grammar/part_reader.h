// Reads a grammar that is put together from parts (parts.h says how they are written).
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "grammar/grammar.h"
#include "grammar/json_text.h"
#include "grammar/loose_schemas.h"
#include "grammar/source.h"

namespace weir::grammar {

// Makes an expression of a nested source; source.cpp has it.
using SourceReader = Result<ExprId> (*)(Grammar& grammar, const GrammarSource& source,
                                        Spelling spelling);

Result<ExprId> read_parts(Grammar& grammar, std::string_view json, SourceReader nested,
                          LooseSchemas& schemas);

}  // namespace weir::grammar
