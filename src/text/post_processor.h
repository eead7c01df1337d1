// PostProcessor: tokenizer.json's `post_processor`: the tokens that go before and after a text
// (BOS and the like).
//
// Threads: immutable after parse().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::text {

struct PostProcessor {
  std::vector<int32_t> before;
  std::vector<int32_t> after;

  static Result<PostProcessor> parse(std::optional<JsonValue> json);
};

}  // namespace weir::text
