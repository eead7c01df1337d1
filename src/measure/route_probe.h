// RouteProbe: routing from a table in the place of a model's own, and a record of what was routed.
//
// Threads: as model::RouteHook.
#pragma once

#include "measure/route_trace.h"
#include "measure/routing_table.h"
#include "model/route_hook.h"

namespace weir::measure {

class RouteProbe final : public model::RouteHook {
 public:
  // Either may be null; both outlive the probe.
  RouteProbe(const RoutingTable* table, RouteTrace* trace) : table_(table), trace_(trace) {}

  void replace(const model::Pass& pass, const model::Routing& routing, int32_t begin,
               int32_t end) override;
  void observe(const model::Pass& pass, const model::Routing& routing) override;

 private:
  const RoutingTable* table_;
  RouteTrace* trace_;
  int32_t step_ = -1;  // The one that is recorded.
};

}  // namespace weir::measure
