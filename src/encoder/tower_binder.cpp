#include "encoder/tower_binder.h"

#include <algorithm>
#include <array>
#include <cstring>
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
  return binder_.linear(kWholeModel, stored(module), n, k, bias);
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

model::Linear TowerBinder::patches(const std::string& module, int32_t n, const EncoderSpec& spec,
                                   bool bias) {
  const int64_t side = spec.patch, frames = spec.frames;
  const int rank = this->rank(module + ".weight");
  // A matrix may be quantised like others.
  if (rank == 0 || rank == 2)
    return linear(module, n, static_cast<int32_t>(3 * frames * side * side), bias);
  const std::array extent = {frames, side, side};
  return convolution(module, n, 3, std::span(extent).subspan(rank == 4 ? 1 : 0),
                     spec.layout == media::PixelLayout::kPatches, bias);
}

model::Linear TowerBinder::squares(const std::string& module, int32_t n, int32_t k, int side,
                                   bool bias) {
  const std::array<int64_t, 2> extent = {side, side};
  return convolution(module, n, k / (side * side), extent, /*channels_last=*/false, bias);
}

model::Linear TowerBinder::convolution(const std::string& module, int32_t n, int32_t channels,
                                       std::span<const int64_t> extent, bool channels_last,
                                       bool bias) {
  std::vector<int64_t> first = {n, channels}, last = {n};
  first.insert(first.end(), extent.begin(), extent.end());
  last.insert(last.end(), extent.begin(), extent.end());
  last.push_back(channels);
  int64_t k = channels;
  for (const int64_t side : extent) k *= side;
  const card::StoredTensor* found = find(module + ".weight");
  const bool stored_last =
      found != nullptr && shape_of(*found) == last && shape_of(*found) != first;
  const float* weight = tensor(module + ".weight", stored_last ? last : first);
  model::Linear linear;
  if (weight == nullptr) return linear;
  if (stored_last != channels_last) {
    float* out = allocate(module, n * k);
    if (out == nullptr) return linear;
    // Of each row, [places, channels] becomes [channels, places], or the other way about.
    const int64_t outer = stored_last ? k / channels : channels, inner = k / outer;
    for (int64_t row = 0; row < n; ++row)
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; ++j)
          out[row * k + j * outer + i] = weight[row * k + i * inner + j];
    weight = out;
  }
  linear.n = n;
  linear.k = static_cast<int32_t>(k);
  linear.floats = {.n = n, .k = linear.k, .type = kernels::FloatType::kF32, .rows = weight};
  if (bias) linear.bias = vector(module + ".bias", n);
  return linear;
}

model::Linear TowerBinder::along_time(const TimeConv& op, int32_t channels) {
  const std::array<int64_t, 2> extent = {op.time.taps, op.band.taps};
  return convolution(op.module, op.channels, channels,
                     std::span(extent).first(op.bands > 1 ? 2 : 1),
                     /*channels_last=*/true, op.bias);
}

const float* TowerBinder::each_by_itself(const std::string& module, int32_t n, int32_t taps) {
  const std::array<int64_t, 3> first = {n, 1, taps}, last = {n, taps, 1};
  const card::StoredTensor* found = find(module + ".weight");
  const bool stored_last = found != nullptr && std::ranges::equal(shape_of(*found), last);
  const float* weight = tensor(module + ".weight", stored_last ? last : first);
  float* out = weight == nullptr ? nullptr : allocate(module, int64_t{n} * taps);
  if (out == nullptr) return nullptr;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t tap = 0; tap < taps; ++tap) out[tap * n + i] = weight[i * taps + tap];
  return out;
}

float* TowerBinder::allocate(const std::string& module, int64_t count) {
  if (auto taken = store_.allocate(count * 4)) return reinterpret_cast<float*>(*taken);
  refuse({ErrorCode::kCapacity, "no memory for tensor '" + stored(module) + ".weight'"});
  return nullptr;
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
