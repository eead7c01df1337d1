// A server with little room for keys and values: with all that the machine has free, nothing could be
// taken beyond the plan, and what is taken would grow for as long as prompts are kept.
//
// Threads: one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "suite/run.h"

namespace weir::suite {

struct SmallKv {
  std::vector<std::string> words;  // For Server::start(). None: --kv-memory says, or no context
                                   // finds room in so little.
  int64_t planned = 0;             // Bytes, of the plan with these words.
};
Result<SmallKv> small_kv(const Run& run);

}  // namespace weir::suite
