// How deep the values of a schema are: what their indentation is measured by.
#pragma once

#include "grammar/schema_tree.h"

namespace weir::grammar {

// Levels of brackets within brackets in the deepest value that the schema speaks of. Where it
// leaves a value free, or refers to itself, JsonParts::kFreeLevels more.
int nesting_levels(const SchemaTree& tree);

}  // namespace weir::grammar
