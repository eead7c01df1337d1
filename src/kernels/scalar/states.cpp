// Kernels of states, the reference: the equations of ops.h in their plainest form.
#include <algorithm>
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

void delta_column(const DeltaRun& run, int64_t token, int32_t c, float* column, int64_t stride) {
  const float* const q = run.q.of(token);
  const float* const k = run.k.of(token);
  const float* const decay = run.decay.of(token);
  const auto decayed = [&](int64_t i) {
    return decay[run.key_decays ? i : 0] * column[i * stride];
  };
  float expected = 0, out = 0;
  for (int64_t i = 0; i < run.dk; ++i) expected = std::fma(k[i], decayed(i), expected);
  const float change = *run.beta.of(token) * (run.v.of(token)[c] - expected);
  for (int64_t i = 0; i < run.dk; ++i) {
    const float s = std::fma(k[i], change, decayed(i));
    column[i * stride] = s;
    out = std::fma(q[i], s, out);
  }
  run.out[token * run.out_stride + c] = out;
}

void delta_run(const DeltaRun& run) {
  for (int64_t token = 0; token < run.tokens; ++token)
    for (int32_t c = 0; c < run.dv; ++c) {
      const int32_t first = c - c % kDeltaStrip;
      float* const strip = run.state + int64_t{first} * run.dk;
      delta_column(run, token, c, strip + (c - first), std::min(run.dv - first, kDeltaStrip));
    }
}

void delta_decays(const float* rate, const float* bias, int32_t n, float* x) {
  for (int32_t i = 0; i < n; ++i) {
    const float sum = x[i] + bias[i];
    const float softplus = std::max(sum, 0.0f) + std::log1p(std::exp(-std::abs(sum)));
    x[i] = std::exp(-rate[i] * softplus);
  }
}

void decay_run(const DecayRun& run) {
  for (int64_t t = 0; t < run.tokens; ++t) {
    const float decay = *run.decay.of(t), gain = *run.gain.of(t);
    for (int32_t c = 0; c < run.dv; ++c) {
      float* const column = run.state + c;
      const float value = gain * run.v.of(t)[c];
      float out = 0;
      for (int64_t i = 0; i < run.dk; ++i) {
        float& s = column[i * run.dv];
        s = std::fma(run.k.of(t)[i], value, decay * s);
        out = std::fma(run.q.of(t)[i], s, out);
      }
      run.out[t * run.out_stride + c] = out;
    }
  }
}

void selective_scan(const SelectiveScan& scan) {
  for (int64_t token = 0; token < scan.tokens; ++token)
    for (int32_t channel = 0; channel < scan.channels; ++channel) {
      const int64_t in_strip = channel % kScanStrip, strip = channel - in_strip;
      const float raw = scan.step.of(token)[channel], x = scan.x.of(token)[channel];
      const float step = std::max(raw, 0.0f) + std::log1p(std::exp(-std::abs(raw)));
      const float fed = step * x;
      float out = 0;
      for (int64_t i = 0; i < scan.states; ++i) {
        const int64_t at = strip * scan.states + i * kScanStrip + in_strip;
        float& h = scan.state[at];
        h = std::fma(scan.b.of(token)[i], fed, std::exp2(step * scan.rate[at]) * h);
        out = std::fma(scan.c.of(token)[i], h, out);
      }
      scan.out[token * scan.out_stride + channel] = std::fma(scan.skip[channel], x, out);
    }
}

}  // namespace

void fill_states(Ops& ops) {
  ops.conv_step = conv_step;
  ops.delta_run = delta_run;
  ops.delta_decays = delta_decays;
  ops.decay_run = decay_run;
  ops.selective_scan = selective_scan;
}

}  // namespace weir::kernels::scalar
