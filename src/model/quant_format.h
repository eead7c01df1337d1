// QuantFormat: how a checkpoint's linear layers are stored, from config.json's `quantization` (MLX
// affine; per-module overrides by path). A module is quantised iff the file has its `.scales`.
//
// Threads: immutable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace weir::model {

struct QuantParams {
  int32_t group = 64;
  int32_t bits = 4;
};

class QuantFormat {
 public:
  // kUnsupported for formats that we do not read (GPTQ, AWQ, FP8, MXFP4, ...).
  static Result<QuantFormat> from_config(JsonValue config);

  bool quantised() const { return quantised_; }
  // The numbers for a module by its path in the checkpoint.
  QuantParams of(std::string_view module) const;

 private:
  bool quantised_ = false;
  QuantParams default_;
  std::map<std::string, QuantParams, std::less<>> overrides_;
};

}  // namespace weir::model
