// The number of files (so of connections) this process may hold open.
#pragma once

#include <cstdint>

namespace weir::net {

// Raises the soft limit of open files to the hard one; returns the limit in force afterwards.
uint64_t raise_file_limit();

}  // namespace weir::net
