// The units (OBUs) of which a packet of AV1 consists, and what its headers say of the frames to come:
// AV1's decoder asks for neither time nor memory, so that both are known before it gets a unit.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::media {

struct Av1Unit {
  size_t bytes = 0;            // With its head, at least one. It decodes at most one frame.
  bool begins_sequence = false;
  std::string_view payload{};
};
// The first of them; none where it goes beyond the packet, or the packet is empty.
std::optional<Av1Unit> first_av1_unit(std::string_view packet);

struct Av1Sequence {
  int profile = 0;  // 0: 4:2:0, or one colour, of at most 10 bits.
  // Of a frame, by the bits in which frames say their sizes: not what most of them have.
  int64_t width_max = 0, height_max = 0;
};
// Of the payload of a unit that begins a sequence; none where it ends early.
std::optional<Av1Sequence> read_av1_sequence(std::string_view payload);

}  // namespace weir::media
