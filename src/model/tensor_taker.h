// TensorTaker: the tensors of a checkpoint, as they are asked for: each with the types and the
// shape that are expected of it. It remembers which were taken, and the first error.
//
// Threads: one, at load.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "card/checkpoint.h"

namespace weir::model {

inline constexpr std::array kFloatTypes = {DType::kF32, DType::kF16, DType::kBF16};

class TensorTaker {
 public:
  explicit TensorTaker(const card::Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  const card::Checkpoint& checkpoint() const { return checkpoint_; }
  // Null: there is none. Does not count as taking.
  const card::StoredTensor* find(std::string_view name) const { return checkpoint_.find(name); }
  // Null: there is none, which is no error.
  const card::StoredTensor* take(const std::string& name);
  // Null after an error. `note` says in its message why the shape is expected.
  const card::StoredTensor* take(const std::string& name, std::span<const DType> types,
                                 std::span<const int64_t> shape, std::string_view note = {});
  bool taken(std::string_view name) const { return taken_.contains(name); }

  // The first error stays.
  void reject(std::string message) { refuse(Error{ErrorCode::kConfig, std::move(message)}); }
  // What is expected of a tensor and found in it or beside it.
  void reject(const card::StoredTensor& tensor, const std::string& expected,
              const std::string& found);
  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const card::Checkpoint& checkpoint_;
  std::set<std::string, std::less<>> taken_;
  std::optional<Error> error_;
};

}  // namespace weir::model
