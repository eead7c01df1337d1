#include "commands/route_measuring.h"

#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "model/streamed_bank.h"

namespace weir {

namespace {

// Routing that takes the place of the model's, for `sequences` of `tokens`.
Result<std::optional<measure::RoutingTable>> routing_of(const ExpertOptions& options,
                                                        const model::Model& model,
                                                        int32_t sequences, int32_t tokens) {
  const ssd::ExpertCatalogue* catalogue = model.expert_catalogue();
  if (options.routing.empty() || catalogue == nullptr) return std::nullopt;
  const measure::RoutingTable::Shape shape = {.layers = catalogue->layers(),
                                              .experts = catalogue->experts(),
                                              .top_k = model.experts_per_token(),
                                              .sequences = sequences,
                                              .tokens = tokens};
  constexpr uint64_t kSeed = 1;
  const bool one_topic = options.routing == "modelled-one-topic";
  if (options.routing == "modelled" || one_topic) {
    using Topics = measure::RoutingTable::Topics;
    WEIR_ASSIGN(
        measure::RoutingTable table,
        measure::RoutingTable::modelled(shape, kSeed, one_topic ? Topics::kOne : Topics::kOwn));
    return table;
  }
  WEIR_ASSIGN(const FileView file, FileView::map(options.routing));
  WEIR_ASSIGN(const measure::RouteTrace trace,
              measure::RouteTrace::parse(file.text(), options.routing));
  WEIR_ASSIGN(measure::RoutingTable table,
              measure::RoutingTable::recorded(shape, trace, options.routing));
  return table;
}

}  // namespace

Result<RouteMeasuring> measure_routes(const ExpertOptions& options, model::Model& model,
                                      int32_t sequences, int32_t tokens) {
  RouteMeasuring measuring;
  const ssd::ExpertCatalogue* catalogue = model.expert_catalogue();
  if (catalogue == nullptr) return measuring;
  WEIR_ASSIGN(std::optional<measure::RoutingTable> table,
              routing_of(options, model, sequences, tokens));
  if (table) measuring.table = std::make_unique<measure::RoutingTable>(std::move(*table));
  if (!options.route_trace.empty())
    measuring.trace = std::make_unique<measure::RouteTrace>(
        catalogue->layers(), catalogue->experts(), model.experts_per_token());
  if (!measuring.table && !measuring.trace) return measuring;
  measuring.probe =
      std::make_unique<measure::RouteProbe>(measuring.table.get(), measuring.trace.get());
  model.streamed_bank()->set_route_hook(measuring.probe.get());
  return measuring;
}

}  // namespace weir
