// Memory that a request takes from a budget: what it may take, and the error where it may not.
// `field` names in errors what needs it.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "api/memory/memory_lease.h"
#include "base/result.h"

namespace weir::api {

// What could never be served is refused for good: "try again later" would be a lie. `expected`:
// what would need less memory.
Result<void> check_memory(const MemoryBudget& budget, const std::string& field, size_t bytes,
                          const std::string& expected);
// Checks in the same way what a request takes bit by bit.
Result<void> check_growing_memory(const MemoryBudget& budget, const std::string& field,
                                  size_t bytes, const std::string& expected);
// kOverloaded when the budget is used up.
Result<MemoryLease> lease(MemoryBudget& budget, uint64_t caller, size_t bytes);
Result<void> extend(MemoryBudget& budget, MemoryLease& lease, size_t bytes);
Result<void> grow(MemoryBudget& budget, MemoryLease& lease, size_t bytes);

}  // namespace weir::api
