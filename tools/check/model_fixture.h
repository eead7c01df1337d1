// ModelFixture: what a reference run recorded of a model (expected.json), read with every key and
// every number checked, so that a file of another shape is an error that names what is missing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace weir::check {

struct ModelFixture {
  struct Case {
    std::vector<int32_t> prompt, greedy;
    std::vector<double> margins;  // One for each token of `greedy`.
    // Of the first steps: {id, log-probability}.
    std::vector<std::vector<std::pair<int32_t, double>>> top;
  };
  std::vector<Case> cases;       // At least one; each with a prompt and answered tokens.
  std::vector<int32_t> nll_ids;  // At least two.
  double nll = 0;                // Positive: the mean over nll_ids[1:], in nats.
  int32_t largest_id = 0;        // Of all of the above: the model's vocabulary must have it.

  // Reads FOLDER/expected.json. The error names the file, the key, what was expected and found.
  static Result<ModelFixture> open(const std::string& folder);
};

}  // namespace weir::check
