// Norm: how a row is normalised.
//
// Threads: plain data and free functions.
#pragma once

#include <cstdint>
#include <string>

namespace weir::model {

struct Norm {
  enum Kind : uint8_t { kRms, kLayer } kind = kRms;
  float eps = 1e-6f;
  float weight_offset = 0;  // Gemma stores w and means w + 1.
  bool bias = false;
  bool weight = true;
  std::string module{};  // Its name in the checkpoint, within the layer: "input_layernorm".
};

}  // namespace weir::model
