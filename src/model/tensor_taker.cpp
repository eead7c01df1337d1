#include "model/tensor_taker.h"

#include <algorithm>

namespace weir::model {

namespace {

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::string types_text(std::span<const DType> types) {
  std::string out;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i > 0) out += i + 1 == types.size() ? " or " : ", ";
    out += dtype_name(types[i]);
  }
  return out;
}

}  // namespace

const card::StoredTensor* TensorTaker::take(const std::string& name) {
  const card::StoredTensor* tensor = checkpoint_.find(name);
  if (tensor != nullptr) taken_.insert(name);
  return tensor;
}

const card::StoredTensor* TensorTaker::take(const std::string& name, std::span<const DType> types,
                                            std::span<const int64_t> shape, std::string_view note) {
  const std::string expected = types_text(types) + " " + shape_text(shape) + std::string(note);
  const card::StoredTensor* stored = take(name);
  if (stored == nullptr) {
    reject(checkpoint_.name() + ": tensor '" + name + "': expected " + expected +
           ", found no such tensor");
    return nullptr;
  }
  const Tensor& t = stored->tensor;
  const std::span<const int64_t> found(t.shape.data(), static_cast<size_t>(t.rank));
  if (std::ranges::count(types, t.type) == 0 || !std::ranges::equal(found, shape)) {
    reject(*stored, expected, to_string(t));
    return nullptr;
  }
  return stored;
}

void TensorTaker::reject(const card::StoredTensor& tensor, const std::string& expected,
                         const std::string& found) {
  reject(checkpoint_.file(tensor).name() + ": tensor '" + tensor.name + "': expected " + expected +
         ", found " + found);
}

}  // namespace weir::model
