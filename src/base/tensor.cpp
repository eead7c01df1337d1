#include "base/tensor.h"

namespace weir {

std::string to_string(const Tensor& tensor) {
  std::string text = dtype_name(tensor.type);
  text += " [";
  for (int i = 0; i < tensor.rank; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(tensor.shape[static_cast<size_t>(i)]);
  }
  return text + "]";
}

}  // namespace weir
