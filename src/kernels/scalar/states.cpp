// Kernels of states, the reference: the equations of ops.h in their plainest form.
#include <cmath>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/ops.h"

namespace weir::kernels::scalar {

namespace {

void conv_step(const ConvStep& conv, int32_t n, float* x) {
  const int32_t before = conv.taps - 1;
  for (int32_t c = 0; c < n; ++c) {
    float* const history = conv.history + c;
    float sum = 0;
    for (int32_t t = 0; t < before; ++t)
      sum =
          std::fma(conv.weights[t * conv.weight_stride + c], history[t * conv.history_stride], sum);
    sum = std::fma(conv.weights[before * conv.weight_stride + c], x[c], sum);
    for (int32_t t = 1; t < before; ++t)
      history[(t - 1) * conv.history_stride] = history[t * conv.history_stride];
    history[(before - 1) * conv.history_stride] = x[c];
    x[c] = sum;
  }
}

void delta_step(const DeltaStep& step) {
  for (int32_t c = 0; c < step.dv; ++c) {
    float* const column = step.state + c;
    float expected = 0, out = 0;
    for (int64_t i = 0; i < step.dk; ++i)
      expected = std::fma(step.k[i], step.decay * column[i * step.dv], expected);
    const float change = step.beta * (step.v[c] - expected);
    for (int64_t i = 0; i < step.dk; ++i) {
      float& s = column[i * step.dv];
      s = std::fma(step.k[i], change, step.decay * s);
      out = std::fma(step.q[i], s, out);
    }
    step.out[c] = out;
  }
}

}  // namespace

void fill_states(Ops& ops) {
  ops.conv_step = conv_step;
  ops.delta_step = delta_step;
}

}  // namespace weir::kernels::scalar
