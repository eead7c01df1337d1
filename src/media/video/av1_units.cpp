#include "media/video/av1_units.h"

namespace weir::media {
namespace {

// Bits from the highest of the first byte on; after the last one it says so for ever.
class Bits {
 public:
  explicit Bits(std::string_view bytes) : bytes_(bytes) {}

  bool ended() const { return ended_; }

  // REQUIRES: count <= 32.
  uint32_t number(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) value = value << 1 | bit();
    return value;
  }
  bool flag() { return bit() != 0; }
  // A number of varying length: as many zeros as it has bits after a one.
  void skip_uvlc() {
    int zeros = 0;
    while (!ended_ && bit() == 0) ++zeros;
    for (int i = 0; zeros < 32 && i < zeros; ++i) bit();
  }

 private:
  uint32_t bit() {
    if (at_ / 8 >= bytes_.size()) {
      ended_ = true;
      return 0;
    }
    const auto byte = static_cast<uint8_t>(bytes_[at_ / 8]);
    return byte >> (7 - at_++ % 8) & 1u;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool ended_ = false;
};

// The operating points, with what comes before them (5.5.1 of AV1's specification).
void skip_operating_points(Bits& bits) {
  bool has_model = false;
  int delay_bits = 0;
  if (bits.flag()) {  // How time is counted.
    bits.number(32);
    bits.number(32);
    if (bits.flag()) bits.skip_uvlc();
    has_model = bits.flag();
    if (has_model) {
      delay_bits = static_cast<int>(bits.number(5)) + 1;
      bits.number(32);
      bits.number(5 + 5);
    }
  }
  const bool has_delays = bits.flag();
  const uint32_t points = bits.number(5) + 1;
  for (uint32_t i = 0; i < points; ++i) {
    bits.number(12);
    constexpr uint32_t kLevelsOfOneTier = 7;
    if (bits.number(5) > kLevelsOfOneTier) bits.flag();
    if (has_model && bits.flag()) {
      bits.number(delay_bits);
      bits.number(delay_bits);
      bits.flag();
    }
    if (has_delays && bits.flag()) bits.number(4);
  }
}

}  // namespace

std::optional<Av1Unit> first_av1_unit(std::string_view packet) {
  constexpr uint8_t kExtended = 4, kSized = 2, kSequence = 1;
  if (packet.empty()) return std::nullopt;
  const auto head = static_cast<uint8_t>(packet.front());
  size_t begin = (head & kExtended) != 0 ? 2 : 1;
  if (begin > packet.size()) return std::nullopt;
  size_t size = packet.size() - begin;
  if ((head & kSized) != 0) {
    // Seven bits a byte, the lowest first; the highest bit says that more follow. At most eight bytes.
    uint64_t value = 0;
    for (int i = 0;; ++i) {
      if (i == 8 || begin == packet.size()) return std::nullopt;
      const auto byte = static_cast<uint8_t>(packet[begin++]);
      value |= uint64_t{byte & 0x7fu} << (7 * i);
      if ((byte & 0x80) == 0) break;
    }
    if (value > packet.size() - begin) return std::nullopt;
    size = static_cast<size_t>(value);
  }
  return Av1Unit{.bytes = begin + size,
                 .begins_sequence = (head >> 3 & 15) == kSequence,
                 .payload = packet.substr(begin, size)};
}

std::optional<Av1Sequence> read_av1_sequence(std::string_view payload) {
  Bits bits(payload);
  Av1Sequence sequence;
  sequence.profile = static_cast<int>(bits.number(3));
  bits.flag();  // One picture alone.
  if (bits.flag())
    bits.number(5);  // Its level, in a short header.
  else
    skip_operating_points(bits);
  const uint32_t width_bits = bits.number(4) + 1, height_bits = bits.number(4) + 1;
  bits.number(static_cast<int>(width_bits));
  bits.number(static_cast<int>(height_bits));
  if (bits.ended()) return std::nullopt;
  sequence.width_max = int64_t{1} << width_bits;
  sequence.height_max = int64_t{1} << height_bits;
  return sequence;
}

}  // namespace weir::media
