// JSON Schema (draft 2020-12, with what earlier drafts call the same) to a grammar of JSON texts.
//
// Members come in the order in which the schema names them, as OpenAI has it; members of other
// names, where they are allowed, after them. Between tokens there may be nothing, one space, or a
// line end with an indentation as deep as the schema (json_value.h): enough for the usual ways to
// lay out JSON, and no room to go on for ever. Nothing comes before or after the value.
//
// What cannot be enforced is an error that names the keyword and where it stands, or is left out
// and named. What is enforced may be narrower than the schema, never wider: see SchemaReading.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace weir::grammar {

enum class SchemaReading : uint8_t {
  // As people mean their schemas: an object with `properties` has no others unless it says so; a
  // schema with keywords for objects only, or arrays only, describes an object, or an array, even
  // if it does not say `type`; after prefixItems there is nothing unless `items` says so.
  kAsMeant,
  kAsWritten,  // To the letter of the specification.
};

// Values that satisfy the schema. Adds rules to the grammar; its root is the caller's to set.
Result<ExprId> json_schema(Grammar& grammar, std::string_view schema,
                           SchemaReading reading = SchemaReading::kAsMeant);

// Values that satisfy as much of the schema as can be enforced, read as it is meant. `left_out`
// names the keywords that they may not satisfy ("uniqueItems at /properties/tags"). An error: it is
// no JSON, too large, or too complex.
Result<ExprId> json_schema_in_part(Grammar& grammar, std::string_view schema,
                                   std::vector<std::string>& left_out);

// Any JSON object.
ExprId json_object(Grammar& grammar);

}  // namespace weir::grammar
