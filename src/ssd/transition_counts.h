// TransitionCounts: how often an expert of one layer was followed by an expert of the
// layers one and two further on, for the same token. Counted while running, old counts fade.
//
// Threads: owned by the engine's leader. Allocates nothing after construction.
//
// Invariant: a pair's count never exceeds its row's, the times its first expert was routed to since
// the row last faded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::ssd {

class TransitionCounts {
 public:
  // Two layers are the time of a read of 2 MiB. Guesses further ahead know less, and cost a token
  // as much arithmetic each.
  static constexpr int32_t kDepthMax = 2;
  // The bytes of all counts together. 48 layers of 128 experts need 1.5 MiB for both distances, 48
  // layers of 512 experts have room for one.
  static constexpr int64_t kBytesMax = int64_t{16} << 20;

  static constexpr int32_t kShareOne = 4096;

  TransitionCounts(int32_t layers, int32_t experts);

  // Distances that fit: 0 where not even one does, or the model has one layer.
  int32_t depth() const { return depth_; }

  // The layer `distance` after `layer` was routed to `to` when `layer` was routed to `from`.
  void count(int32_t layer, int32_t distance, std::span<const int16_t> from,
             std::span<const int32_t> to);
  // Adds to shares[e], for each expert of the layer `distance` further on, the mean share of the
  // times that it followed the experts `from` of `layer`, at most kShareOne. shares: [experts].
  void add_shares(int32_t layer, int32_t distance, std::span<const int16_t> from,
                  std::span<uint16_t> shares) const;

 private:
  size_t row(int32_t layer, int32_t distance, int32_t from) const {
    return (static_cast<size_t>(layer) * static_cast<size_t>(depth_) +
            static_cast<size_t>(distance - 1)) *
               static_cast<size_t>(experts_) +
           static_cast<size_t>(from);
  }

  const int32_t experts_;
  const int32_t depth_;
  std::vector<uint8_t> pairs_;  // [layers, depth, experts (from), experts (to)]
  std::vector<uint8_t> rows_;   // [layers, depth, experts (from)]
};

}  // namespace weir::ssd
