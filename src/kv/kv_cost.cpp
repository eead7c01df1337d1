#include "kv/kv_cost.h"

#include <algorithm>
#include <limits>

namespace weir::kv {

namespace {

// What the engine keeps of a page of the spine beside its memory: an entry of the prefix cache (216
// bytes), its places among the hashes (up to 16), counts and times (17).
constexpr int64_t kPageTableBytes = 256;
// Of a window's page: counts and times (17), its place in the cache's lists (16), and of the
// entries of the spine, eight times as many at the most, a number each (4).
constexpr int64_t kWindowTableBytes = 72;
// The positions of one sequence are numbers of 32 bits.
constexpr int32_t kBlocksMax = std::numeric_limits<int32_t>::max() / kPageTokens;

}  // namespace

std::vector<int32_t> KvCost::page_counts(int32_t blocks, int32_t running) const {
  return kv::page_counts(groups_, blocks,
                         {.running_max = running, .rows_max = rows_max_, .loads = loads_});
}

int64_t KvCost::bytes_of(size_t group, int32_t pages) const {
  return pages * (groups_[group].page_bytes + (group == 0 ? kPageTableBytes : kWindowTableBytes));
}

int64_t KvCost::bytes(int32_t blocks, int32_t running) const {
  const std::vector<int32_t> counts = page_counts(blocks, running);
  int64_t bytes = state_bytes_ * running;
  for (size_t g = 0; g < counts.size(); ++g) bytes += bytes_of(g, counts[g]);
  return bytes;
}

int32_t KvCost::blocks_within(int64_t bytes, int32_t running) const {
  int64_t fits = 0, too_many = int64_t{kBlocksMax} + 1;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (this->bytes(static_cast<int32_t>(middle), running) <= bytes ? fits : too_many) = middle;
  }
  return static_cast<int32_t>(fits);
}

}  // namespace weir::kv
