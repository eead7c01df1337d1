#include "kv/hash128.h"

#include <xxhash.h>

namespace weir::kv {

std::array<uint64_t, 2> hash128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace weir::kv
