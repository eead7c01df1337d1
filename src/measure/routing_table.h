// RoutingTable: the experts of each layer for the tokens of some sequences, to take the place of
// what a model's routers choose. For measurements only: a model of random weights routes without
// any locality, and a small one's routing is not a large one's. Figures say where it came from.
//
// Threads: route data is read by all members of a team while no thread calls move_on().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/route_trace.h"
#include "measure/routing_model.h"

namespace weir::measure {

class RoutingTable {
 public:
  // What the layers of a model choose from, and how much of it a table holds.
  struct Shape {
    int32_t layers = 0;
    int32_t experts = 0;
    int32_t top_k = 0;
    int32_t sequences = 0;
    int32_t tokens = 0;  // Of each sequence; what is beyond begins anew.
  };
  static constexpr uint64_t kBytesMax = uint64_t{256} << 20;

  // What sequences are about: each something of its own, or all the same, as clients of a load test
  // are that ask similar questions.
  enum class Topics : uint8_t { kOwn, kOne };
  // Drawn by a RoutingModel with the parameters of published traces; the tables of one seed are the
  // same. An error says what does not fit.
  static Result<RoutingTable> modelled(const Shape& shape, uint64_t seed,
                                       Topics topics = Topics::kOwn);
  // The generated tokens of a trace. A sequence that the trace does not have takes one that it has,
  // from another place on. An error says how the trace's model differs.
  static Result<RoutingTable> recorded(const Shape& shape, const RouteTrace& trace,
                                       const std::string& name);

  // Best first. [top_k]
  std::span<const int16_t> experts(int32_t layer, int32_t sequence, int32_t position) const {
    return at(routed_, layer, sequence, position);
  }
  // What the layer's router would say one layer early. [top_k]; empty: not known.
  std::span<const int16_t> lookahead(int32_t layer, int32_t sequence, int32_t position) const {
    if (early_.empty()) return {};
    return at(early_, layer, sequence, position);
  }
  // From now on a position's routing is that of `tokens` later, so that a sequence that goes back
  // to where it was does not repeat itself.
  void move_on(int32_t tokens) { moved_ = (moved_ + tokens) % shape_.tokens; }

  // For the figures: "modelled routing", "modelled routing, one topic", "routing of FILE".
  const std::string& name() const { return name_; }

 private:
  RoutingTable(const Shape& shape, std::string name, bool early);
  size_t place(int32_t layer, int32_t sequence, int64_t token) const {
    return static_cast<size_t>(
        ((int64_t{sequence} * shape_.tokens + token) * shape_.layers + layer) * shape_.top_k);
  }
  std::span<const int16_t> at(const std::vector<int16_t>& table, int32_t layer, int32_t sequence,
                              int32_t position) const {
    const int64_t token = (int64_t{position} + moved_) % shape_.tokens;
    return std::span(table).subspan(place(layer, sequence % shape_.sequences, token),
                                    static_cast<size_t>(shape_.top_k));
  }
  static Result<void> check(const Shape& shape);
  void put(std::vector<int16_t>& table, size_t to, std::span<const int32_t> chosen);

  Shape shape_;
  std::string name_;
  int32_t moved_ = 0;
  std::vector<int16_t> routed_;  // [sequences, tokens, layers, top_k]
  std::vector<int16_t> early_;   // The same, or nothing.
};

}  // namespace weir::measure
