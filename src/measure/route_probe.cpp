#include "measure/route_probe.h"

#include <algorithm>
#include <span>

namespace weir::measure {

namespace {

int32_t sequence_of(const model::Pass& pass, int64_t row) {
  return pass.batch.slices[static_cast<size_t>(pass.ws.slice[row])].sequence;
}

}  // namespace

// The table's experts count in equal parts.
void RouteProbe::replace(const model::Pass& pass, const model::Routing& routing, int32_t begin,
                         int32_t end) {
  if (table_ == nullptr) return;
  for (int64_t row = begin; row < end; ++row) {
    const int32_t sequence = sequence_of(pass, row), position = pass.ws.position[row];
    const std::span<const int16_t> chosen =
        routing.early ? table_->lookahead(routing.layer, sequence, position)
                      : table_->experts(routing.layer, sequence, position);
    if (chosen.empty()) continue;
    std::ranges::copy(chosen, routing.choice + row * routing.top_k);
    std::fill_n(routing.weight + row * routing.top_k, routing.top_k,
                1 / static_cast<float>(routing.top_k));
  }
}

void RouteProbe::observe(const model::Pass& pass, const model::Routing& routing) {
  if (trace_ == nullptr) return;
  if (routing.layer == 0 && !routing.early) ++step_;
  for (int32_t row = 0; row < pass.rows(); ++row) {
    const bool generated = pass.generated(row);
    if (routing.early && !generated) continue;
    const RouteKind kind = routing.early ? RouteKind::kLookahead
                           : generated   ? RouteKind::kDecode
                                         : RouteKind::kPrompt;
    trace_->add(
        kind, step_, routing.layer, sequence_of(pass, row),
        {routing.choice + int64_t{row} * routing.top_k, static_cast<size_t>(routing.top_k)});
  }
}

}  // namespace weir::measure
