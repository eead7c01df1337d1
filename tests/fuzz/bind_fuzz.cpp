// A checkpoint as config.json (the first line) and a safetensors header (the rest), with zeros for
// data: binding gives a model that says what it is and packs its weights, or an error, in bounded
// memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/thread_team.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/decoder.h"
#include "safetensors_data.h"

namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kHeaderBytesMax = size_t{1} << 20;
constexpr size_t kDataBytesMax = size_t{4} << 20;

// The file's bytes in front of data that stay zero.
std::span<const std::byte> checkpoint(std::string_view header) {
  static std::vector<std::byte> memory(kLengthBytes + kHeaderBytesMax + kDataBytesMax);
  const uint64_t length = header.size();
  std::byte* begin = memory.data() + kHeaderBytesMax - header.size();
  std::memcpy(begin, &length, kLengthBytes);
  std::memcpy(begin + kLengthBytes, header.data(), header.size());
  return {begin, kLengthBytes + header.size() + weir::safetensors_data_bytes(header, kDataBytesMax)};
}

// What an error says of any input: that of an unknown architecture lists those there are.
void check_error(const weir::Error& error) {
  constexpr size_t kBytesMax = 8000;
  CHECK(!error.message.empty() && error.message.size() < kBytesMax);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  if (line == std::string_view::npos || input.size() > kHeaderBytesMax) return 0;
  const auto config = std::as_bytes(std::span(data, line));
  const auto card = weir::card::ModelCard::open(weir::card::ModelFiles::embedded(
      "fuzz",
      {{"config.json", config}, {"model.safetensors", checkpoint(input.substr(line + 1))}}));
  if (!card) {
    check_error(card.error());
    return 0;
  }
  const weir::model::ModelOptions options = {.rows_max = 4, .context_max = 64};
  const auto& ops = weir::kernels::ops_for(weir::kernels::Isa::kScalar);
  const auto model = weir::model::Decoder::bind(*card, options, ops, 1);
  if (!model) {
    check_error(model.error());
    return 0;
  }
  weir::ThreadTeam team(1);
  (*model)->pack(team, {});
  CHECK(!(*model)->memory().formats.empty());
  CHECK((*model)->token_work().weight_bytes > 0 && (*model)->token_work().macs > 0);
  CHECK((*model)->memory_needs().size() <= (*model)->spec().sublayers.size());
  return 0;
}
