// ShortConv: a short gated convolution over the tokens before.
//
// Threads: plain data and free functions.
#pragma once

#include <string>

#include "base/result.h"
#include "model/operations/rope.h"

namespace weir::model {

// Linear layers of the input give a, b and x:
//   y = b * conv(a * x), channel by channel over the last `taps` tokens; then a linear layer.
struct ShortConv {
  int channels = 0;
  int taps = 0;
  bool bias = false;  // Of both linear layers and the convolution.
};

std::string text(const ShortConv& c);               // Its part of a line of describe().
Result<void> check(const ShortConv& c, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const ShortConv&) { return nullptr; }

}  // namespace weir::model
