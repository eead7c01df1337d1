#include "card/checkpoint.h"

#include "base/json.h"

namespace weir::card {

std::string shown_name(std::string_view name) {
  constexpr size_t kShown = 120;
  std::string out;
  append_json_string(out, name.substr(0, kShown));
  return name.size() > kShown ? out + "..." : out;
}

Result<void> Checkpoint::add(FileView file, std::vector<StoredTensor> tensors) {
  for (StoredTensor& t : tensors) {
    t.file = static_cast<int32_t>(files_.size());
    const auto [found, fresh] = by_name_.emplace(t.name, tensors_.size());
    if (!fresh) {
      const StoredTensor& other = tensors_[found->second];
      // Of a GGUF file several names may mean the same.
      return fail(ErrorCode::kConfig,
                  file.name() + ": tensor " + shown_name(t.name) + ": expected " +
                      (other.file == t.file
                           ? "one, found two"
                           : "in one file, found in " + this->file(other).name() + " too"));
    }
    tensors_.push_back(std::move(t));
  }
  files_.push_back(std::move(file));
  return {};
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace weir::card
