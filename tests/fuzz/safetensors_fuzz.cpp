// The safetensors header: any bytes give tensors that lie within the file, or an error.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "card/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto parsed = weir::card::parse_safetensors("fuzz", bytes);
  if (!parsed) return 0;
  // Every byte is read, for AddressSanitizer to judge; volatile keeps the reads.
  volatile unsigned sum = 0;
  for (const weir::card::StoredTensor& stored : *parsed) {
    const auto begin = static_cast<size_t>(stored.tensor.data - bytes.data());
    const auto length = static_cast<size_t>(stored.tensor.bytes());
    if (begin != stored.offset || begin > size || length > size - begin) std::abort();
    for (size_t i = 0; i < length; ++i) sum = sum + static_cast<unsigned>(stored.tensor.data[i]);
  }
  return 0;
}
