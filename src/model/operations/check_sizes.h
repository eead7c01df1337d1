// Checks of what config.json says of sizes and factors. Errors name the layer, the key, and what
// was found.
//
// Threads: free functions.
#pragma once

#include <initializer_list>
#include <string>

#include "base/result.h"

namespace weir::model {

// config.json: layer N: what.
Result<void> wrong(int layer, const std::string& what);

struct Number {
  const char* key;  // In config.json; the number may be derived from it.
  float value;
};

// Whatever multiplies or divides.
Result<void> check_positive(int layer, std::initializer_list<Number> numbers);

// What is added, and caps of which 0 is none.
Result<void> check_not_negative(int layer, std::initializer_list<Number> numbers);

Result<void> check_size(int layer, const char* key, int found, int least, int most);

// Of an indexer, whose scores kernels::IndexScores makes.
struct IndexSizes {
  int heads, dim, top_k;
  int rope_dim;  // How many numbers of a query turn.
};
Result<void> check_index(int layer, const IndexSizes& sizes);

constexpr int kTapsMax = 16;  // Of convolutions.

}  // namespace weir::model
