#include "encoder/tower_binder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace weir::encoder {

namespace {

using model::kWholeModel;

constexpr std::string_view kTower = "tower.";
constexpr std::string_view kProjector = "projector.";

// The first root that some tensor's name begins with; the first of all where none does, so that
// messages name it.
std::string root_in(const card::Checkpoint& checkpoint, const std::vector<std::string>& roots) {
  for (const std::string& root : roots)
    if (std::ranges::any_of(checkpoint.tensors(), [&](const card::StoredTensor& stored) {
          return stored.name.starts_with(root);
        }))
      return root;
  return roots.empty() ? "" : roots.front();
}

std::string with_root(const std::string& name, const std::string& tower,
                      const std::string& projector) {
  if (name.starts_with(kTower)) return tower + name.substr(kTower.size());
  if (name.starts_with(kProjector)) return projector + name.substr(kProjector.size());
  return name;
}

std::vector<int64_t> shape_of(const card::StoredTensor& stored) {
  const auto& shape = stored.tensor.shape;
  return {shape.begin(), shape.begin() + stored.tensor.rank};
}

}  // namespace

TowerBinder::TowerBinder(const card::Checkpoint& checkpoint, const EncoderSpec& spec,
                         const card::WeightFormat& format,
                         const model::WeightBinder::Arithmetic& arithmetic,
                         model::WeightStore& store)
    : checkpoint_(checkpoint),
      tower_(root_in(checkpoint, spec.tower_roots)),
      projector_(root_in(checkpoint, spec.projector_roots)),
      names_(names_of(checkpoint, spec)),
      bf16_prompts_(arithmetic.bf16_prompts),
      store_(store),
      binder_(checkpoint, names_, format, arithmetic, store) {}

model::ModelSpec TowerBinder::names_of(const card::Checkpoint& checkpoint,
                                       const EncoderSpec& spec) {
  model::ModelSpec names;
  names.family = spec.family;
  for (const std::string& unused : spec.unused)
    names.towers.push_back(with_root(unused, root_in(checkpoint, spec.tower_roots),
                                     root_in(checkpoint, spec.projector_roots)));
  return names;
}

std::string TowerBinder::stored(const std::string& name) const {
  return with_root(name, tower_, projector_);
}

model::Linear TowerBinder::linear(const std::string& module, int32_t n, int32_t k, bool bias) {
  model::Linear linear = binder_.linear(kWholeModel, stored(module), n, k, bias);
  if (linear.held == model::Held::kFloats && linear.floats.type != kernels::FloatType::kF32)
    linear.bf16_prompts = bf16_prompts_;
  return linear;
}

model::Linear TowerBinder::turned(const std::string& tensor, int32_t n, int32_t k) {
  model::Linear linear;
  linear.n = n;
  linear.k = k;
  // One strip of all rows is the tensor, turned.
  linear.floats = {
      .n = n,
      .k = k,
      .type = kernels::FloatType::kF32,
      .rows = binder_.strips(kWholeModel, stored(tensor), k, n, k, [](float x) { return x; })};
  return linear;
}

float* TowerBinder::allocate(int64_t count) {
  if (auto taken = store_.allocate(count * 4)) return reinterpret_cast<float*>(*taken);
  refuse({ErrorCode::kCapacity, "no memory for the tower's weights"});
  return nullptr;
}

model::Linear TowerBinder::flattened(const std::string& module, std::span<const int64_t> shape,
                                     bool colour_last, bool wanted_last, bool bias) {
  const int64_t n = shape[0];
  int64_t k = 1;
  for (const int64_t size : shape.subspan(1)) k *= size;
  model::Linear linear;
  const float* weight = tensor(module + ".weight", shape);
  if (weight == nullptr) return linear;
  if (colour_last != wanted_last) {
    float* out = allocate(n * k);
    if (out == nullptr) return linear;
    // Of each row, [places, colours] becomes [colours, places], or the other way about.
    const int64_t colours = colour_last ? shape.back() : shape[1];
    const int64_t outer = colour_last ? k / colours : colours, inner = k / outer;
    for (int64_t row = 0; row < n; ++row)
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; ++j)
          out[row * k + j * outer + i] = weight[row * k + i * inner + j];
    weight = out;
  }
  linear.n = static_cast<int32_t>(n);
  linear.k = static_cast<int32_t>(k);
  linear.floats = {.n = linear.n, .k = linear.k, .type = kernels::FloatType::kF32, .rows = weight};
  if (bias) linear.bias = vector(module + ".bias", linear.n);
  return linear;
}

model::Linear TowerBinder::along_time(const TimeConv& op, int32_t channels) {
  std::vector<int64_t> first = {op.channels, channels, op.time.taps};
  std::vector<int64_t> last = {op.channels, op.time.taps, channels};
  if (op.bands > 1) {
    first.push_back(op.band.taps);
    last.insert(last.begin() + 2, op.band.taps);
  }
  const card::StoredTensor* found = find(op.module + ".weight");
  const bool stored_last =
      found != nullptr && shape_of(*found) == last && shape_of(*found) != first;
  return flattened(op.module, stored_last ? last : first, stored_last, /*wanted_last=*/true,
                   op.bias);
}

const float* TowerBinder::each_by_itself(const std::string& module, int32_t n, int32_t taps) {
  const std::array<int64_t, 3> first = {n, 1, taps}, last = {n, taps, 1};
  const card::StoredTensor* found = find(module + ".weight");
  const bool stored_last = found != nullptr && std::ranges::equal(shape_of(*found), last);
  const float* weight = tensor(module + ".weight", stored_last ? last : first);
  float* out = weight == nullptr ? nullptr : allocate(int64_t{n} * taps);
  if (out == nullptr) return nullptr;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t tap = 0; tap < taps; ++tap) out[tap * n + i] = weight[i * taps + tap];
  return out;
}

model::Linear TowerBinder::patches(const std::string& module, int32_t n, const EncoderSpec& spec,
                                   bool bias) {
  const int64_t side = spec.patch, frames = spec.frames;
  const card::StoredTensor* found = find(module + ".weight");
  // A matrix may be quantised like others.
  if (found == nullptr || found->tensor.rank == 2)
    return linear(module, n, static_cast<int32_t>(3 * frames * side * side), bias);
  std::vector<int64_t> first = {n, 3, frames, side, side}, last = {n, frames, side, side, 3};
  if (found->tensor.rank == 4) {
    first.erase(first.begin() + 2);
    last.erase(last.begin() + 1);
  }
  const bool colour_last = shape_of(*found) == last && shape_of(*found) != first;
  return flattened(module, colour_last ? last : first, colour_last,
                   spec.layout == media::PixelLayout::kPatches, bias);
}

model::Linear TowerBinder::squares(const std::string& module, int32_t n, int32_t k, int side,
                                   bool bias) {
  const int64_t channels = k / (side * side);
  const std::vector<int64_t> first = {n, channels, side, side}, last = {n, side, side, channels};
  const card::StoredTensor* found = find(module + ".weight");
  if (found == nullptr || found->tensor.rank == 2) return linear(module, n, k, bias);
  const bool channels_last =
      found != nullptr && shape_of(*found) == last && shape_of(*found) != first;
  return flattened(module, channels_last ? last : first, channels_last, false, bias);
}

model::Linear TowerBinder::pixels(const PixelConv& op, int32_t n) {
  const card::StoredTensor* teller = find(op.tells_layout + ".weight");
  const bool colour_last = teller != nullptr && teller->tensor.rank == 4 &&
                           teller->tensor.shape[1] != 1 && teller->tensor.shape[3] == 1;
  const std::array<int64_t, 4> first = {n, 3, op.kernel, op.kernel};
  const std::array<int64_t, 4> last = {n, op.kernel, op.kernel, 3};
  return flattened(op.module, colour_last ? last : first, colour_last, false, true);
}

TowerBinder::DepthwiseWeights TowerBinder::depthwise(const Depthwise& conv, int32_t n) {
  // Torch's [n, 1, kernel, kernel] and MLX's [n, kernel, kernel, 1] lie alike.
  const card::StoredTensor* found = find(conv.module + ".weight");
  const bool last = found != nullptr && found->tensor.rank == 4 && found->tensor.shape[1] != 1;
  const int64_t side = conv.kernel, taps = side * side;
  const std::array<int64_t, 4> shape = {n, last ? side : 1, side, last ? 1 : side};
  const float* weight = tensor(conv.module + ".weight", shape);
  const float* bias = conv.bias ? vector(conv.module + ".bias", n) : nullptr;
  std::array<const float*, 4> norm{};  // Weight, bias, mean, variance.
  if (!conv.batch_norm.empty()) {
    static constexpr std::array kParts = {".weight", ".bias", ".running_mean", ".running_var"};
    for (size_t i = 0; i < kParts.size(); ++i) norm[i] = vector(conv.batch_norm + kParts[i], n);
  }
  float* out = failed() ? nullptr : allocate((taps + 1) * n);
  if (out == nullptr) return {};
  for (int32_t c = 0; c < n; ++c) {
    // torch's epsilon, which no file says.
    const float factor = norm[0] == nullptr ? 1 : norm[0][c] / std::sqrt(norm[3][c] + 1e-5f);
    for (int64_t t = 0; t < taps; ++t) out[t * n + c] = weight[c * taps + t] * factor;
    float& shift = out[taps * n + c];
    shift = bias == nullptr ? 0 : bias[c] * factor;
    if (norm[0] != nullptr) shift += norm[1][c] - norm[2][c] * factor;
  }
  return {out, out + taps * n};
}

model::NormWeights TowerBinder::norm(const Norm& norm, int32_t n) {
  Norm named = norm;
  named.module = stored(norm.module);
  return binder_.norm(kWholeModel, named, n);
}

const float* TowerBinder::vector(const std::string& tensor, int32_t n) {
  return binder_.vector(kWholeModel, stored(tensor), n, 0, /*bare=*/true);
}

const float* TowerBinder::tensor(const std::string& tensor, std::span<const int64_t> shape) {
  return binder_.tensor(kWholeModel, stored(tensor), shape);
}

Result<void> TowerBinder::finish() const {
  WEIR_TRY(binder_.finish(tower_));
  // Whisper's encoder has no projector.
  const bool more = !projector_.empty() && projector_ != tower_;
  return more ? binder_.finish(projector_) : Result<void>{};
}

}  // namespace weir::encoder
