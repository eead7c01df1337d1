// RouteHook: where a measurement sees what routers choose, or replaces it. Serving has none.
//
// Threads: see each function.
#pragma once

#include <cstdint>

#include "model/pass.h"

namespace weir::model {

// A router's answers.
struct Routing {
  int32_t layer = 0;          // Among those with experts.
  int32_t top_k = 0;          // Experts of a row.
  bool early = false;         // Of the layer before's input, and only for generated tokens.
  int32_t* choice = nullptr;  // [rows, top_k]: experts, best first.
  float* weight = nullptr;    // [rows, top_k]: what each counts.
};

class RouteHook {
 public:
  virtual ~RouteHook() = default;

  // Rows [begin, end) have been routed; it may write over their answers. Every member of the team
  // calls it, for rows of its own.
  virtual void replace(const Pass& pass, const Routing& routing, int32_t begin, int32_t end) = 0;
  // All rows of the batch have been routed, and the layer's experts are asked for next. The leader
  // calls it.
  virtual void observe(const Pass& pass, const Routing& routing) = 0;
};

}  // namespace weir::model
