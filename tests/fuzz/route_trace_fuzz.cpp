// Route traces: any bytes give rows that can be written and read again as they are, and replayed,
// or an error that names a line.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "measure/route_trace.h"
#include "measure/routing_table.h"

namespace {

using namespace weir::measure;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_rows(const RouteTrace& trace) {
  for (const RouteRow& row : trace.rows()) {
    require(row.layer >= 0 && row.layer < trace.layers());
    require(row.kind == RouteKind::kLookahead || row.count == trace.top_k());
    for (const int32_t expert : trace.experts_of(row))
      require(expert >= 0 && expert < trace.experts());
  }
}

// What a measurement makes of a trace that is of its model.
void replay(const RouteTrace& trace) {
  check_rows(as_generated(trace));
  constexpr int32_t kSequences = 3, kTokens = 5;
  const auto table = RoutingTable::recorded({.layers = trace.layers(),
                                             .experts = trace.experts(),
                                             .top_k = trace.top_k(),
                                             .sequences = kSequences,
                                             .tokens = kTokens},
                                            trace, "trace");
  if (!table) return;
  for (int32_t layer = 0; layer < trace.layers(); ++layer)
    for (int32_t sequence = 0; sequence < kSequences; ++sequence)
      for (int32_t token = 0; token < kTokens; ++token) {
        for (const int16_t expert : table->experts(layer, sequence, token))
          require(expert >= 0 && expert < trace.experts());
        for (const int16_t expert : table->lookahead(layer, sequence, token))
          require(expert >= 0 && expert < trace.experts());
      }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = RouteTrace::parse({reinterpret_cast<const char*>(data), size}, "trace");
  if (!trace) {
    require(trace.error().message.starts_with("trace:"));
    return 0;
  }
  check_rows(*trace);
  const std::string text = to_text(*trace);
  const auto again = RouteTrace::parse(text, "trace");
  require(again && to_text(*again) == text);
  // A step of a row takes memory by the layers of the model, of which the trace names up to 4,096.
  if (trace->layers() <= 64) replay(*trace);
  return 0;
}
