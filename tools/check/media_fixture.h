// MediaFiles: the files of a fixture with pictures or a sound, and what is read of them alike.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "card/checkpoint.h"

namespace weir::check {

inline constexpr size_t kFixtureFileMax = size_t{1} << 20;

struct MediaFiles {
  card::Checkpoint expected;
  JsonDoc preprocessor, config;

  static Result<MediaFiles> open(const std::string& folder);

  // Lengths of the runs of the prompt's tokens that stand for media of this kind: placeholder_id().
  std::vector<int64_t> placeholder_runs(std::string_view kind) const;
};

// Empty where there is none of this type.
template <class T>
std::vector<T> read_tensor(const card::Checkpoint& file, std::string_view name, DType type) {
  const card::StoredTensor* stored = file.find(name);
  if (stored == nullptr || stored->tensor.type != type) return {};
  std::vector<T> values(static_cast<size_t>(stored->tensor.elements()));
  std::memcpy(values.data(), stored->tensor.data, values.size() * sizeof(T));
  return values;
}

// What config.json says of "image" or "audio": the prompt's token that a row of features takes the
// place of. -1 where it says nothing.
int64_t placeholder_id(JsonValue config, std::string_view kind);

}  // namespace weir::check
