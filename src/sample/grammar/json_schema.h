// JSON Schema (draft 2020-12, with what earlier drafts call the same) to a grammar of JSON texts.
//
// Members come in the order in which the schema names them, as OpenAI has it; members of other
// names, where they are allowed, behind them. Between tokens there may be nothing, one space, or a
// line end with spaces or tabs: enough for any way to lay out JSON, and no room to go on for ever.
// Nothing comes before or behind the value.
//
// What cannot be enforced is an error that names the keyword and where it stands. What is enforced
// may be narrower than the schema, never wider: see SchemaReading.
#pragma once

#include <string_view>

#include "sample/grammar/grammar.h"

namespace weir::sample::grammar {

enum class SchemaReading : uint8_t {
  // As people mean their schemas: an object with `properties` has no others unless it says so; a
  // schema with keywords for objects only, or arrays only, describes an object, or an array, even
  // if it does not say `type`; behind prefixItems there is nothing unless `items` says so.
  kAsMeant,
  kAsWritten,  // To the letter of the specification.
};

// Values that satisfy the schema. Adds rules to the grammar; its root is the caller's to set.
Result<ExprId> json_schema(Grammar& grammar, std::string_view schema,
                           SchemaReading reading = SchemaReading::kAsMeant);

// Any JSON object.
ExprId json_object(Grammar& grammar);

}  // namespace weir::sample::grammar
