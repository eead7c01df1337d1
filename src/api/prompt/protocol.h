// Protocol: the way in, as AnswerShape is the way out. One object for each request: it turns the
// body into requests of the engine, and knows the shape of their answer. A protocol's folder has a
// function that makes one; only the table of endpoints knows which there are.
//
// Threads: prepare() is for the pool, where it may be asked again after it was interrupted
// (PrepareInput); shape() is the loop's, afterwards, once.
#pragma once

#include <memory>

#include "api/answer/answer_shape.h"
#include "api/memory/memory_lease.h"
#include "api/prompt/prepare.h"
#include "api/serving/serving_context.h"
#include "base/result.h"

namespace weir::api {

class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual Result<PreparedAnswer> prepare(const ServingContext& serving, MemoryBudget& budget,
                                         const PrepareInput& in) = 0;
  // REQUIRES: `prepared` is what prepare() gave.
  virtual std::unique_ptr<AnswerShape> shape(const PreparedAnswer& prepared) = 0;
};

}  // namespace weir::api
