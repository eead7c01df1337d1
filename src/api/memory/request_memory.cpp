#include "api/memory/request_memory.h"

#include <optional>
#include <utility>

namespace weir::api {

namespace {

Result<void> check_bytes(size_t bytes_max, const std::string& field, size_t bytes,
                         const std::string& expected) {
  if (bytes <= bytes_max) return {};
  return fail(ErrorCode::kInvalid,
              "Invalid value for '" + field + "': the answer may need " + std::to_string(bytes) +
                  " bytes of memory, more than the " + std::to_string(bytes_max) +
                  " that this server gives to one request (--queue); expected " + expected + ".",
              field);
}

}  // namespace

Result<void> check_memory(const MemoryBudget& budget, const std::string& field, size_t bytes,
                          const std::string& expected) {
  return check_bytes(budget.most_of_one(), field, bytes, expected);
}

Result<void> check_growing_memory(const MemoryBudget& budget, const std::string& field,
                                  size_t bytes, const std::string& expected) {
  return check_bytes(budget.share_of_one(), field, bytes, expected);
}

namespace {

tl::unexpected<Error> no_memory() {
  return fail(ErrorCode::kOverloaded,
              "The memory for open requests is used up; try again later, or ask for fewer "
              "max_tokens, top_logprobs or n.");
}

}  // namespace

Result<MemoryLease> lease(MemoryBudget& budget, uint64_t caller, size_t bytes) {
  std::optional<MemoryLease> taken = budget.take(caller, bytes);
  if (!taken) return no_memory();
  return std::move(*taken);
}

Result<void> extend(MemoryBudget& budget, MemoryLease& lease, size_t bytes) {
  if (!budget.extend(lease, bytes)) return no_memory();
  return {};
}

Result<void> grow(MemoryBudget& budget, MemoryLease& lease, size_t bytes) {
  if (!budget.grow(lease, bytes)) return no_memory();
  return {};
}

}  // namespace weir::api
