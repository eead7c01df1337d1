// What --routing and --route-trace ask for: routing in the place of the model's own, and a record
// of what was routed.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "measure/route_probe.h"
#include "model/model.h"
#include "program/options.h"

namespace weir {

struct RouteMeasuring {
  std::unique_ptr<measure::RoutingTable> table;  // Null: the model's own.
  std::unique_ptr<measure::RouteTrace> trace;    // Null: nothing is recorded.
  std::unique_ptr<measure::RouteProbe> probe;    // The model's, if either is there.
};

// For `sequences` of `tokens`. Outlives the model's steps. A model that does not stream is left
// alone.
Result<RouteMeasuring> measure_routes(const ExpertOptions& options, model::Model& model,
                                      int32_t sequences, int32_t tokens);

}  // namespace weir
