#include "encoder/layers/layer.h"

namespace weir::encoder {

std::unique_ptr<Layer> make_layer(const LayerSource& source, int32_t& width) {
  return std::visit([&](const auto& op) { return make(source, op, width); }, source.stage.op);
}

}  // namespace weir::encoder
