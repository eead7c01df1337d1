#include "model/layers/block_keys.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/dtype.h"

namespace weir::model {

namespace {

using kernels::kPageTokens;

// Channels whose gates and inputs are looked at together: those of 128 tokens fit the L2 cache.
constexpr int32_t kChannels = 64;

void put(kernels::FloatType type, uint8_t* begin, int64_t index, float value) {
  if (type == kernels::FloatType::kF32) {
    std::memcpy(begin + index * 4, &value, 4);
  } else {
    const uint16_t half = float_to_half(value);
    std::memcpy(begin + index * 2, &half, 2);
  }
}

}  // namespace

// Heads: a token's inputs for each block that it counts for, then its gates.
kv::PagedNeed BlockKeys::Shape::tokens_need() const {
  return {
      .heads = 2 * blocks, .k_dim = dim, .v_dim = dim, .window = tokens(), .values_in_keys = true};
}

kv::PagedNeed BlockKeys::Shape::keys_need() const {
  return {.heads = 1, .k_dim = dim, .v_dim = dim, .values_in_keys = true, .tokens_per_key = ratio};
}

BlockKeys::BlockKeys(const LayerSource& source, const std::string& module, const Shape& shape,
                     int32_t memory, const std::vector<RopeTable>& ropes, int rope_index)
    : shape_(shape), memory_(memory), ropes_(ropes), rope_index_(rope_index) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  inputs_ = binder.linear(layer, module + ".kv_proj", shape.width(), source.hidden);
  gates_ = binder.linear(layer, module + ".gate_proj", shape.width(), source.hidden);
  const std::array<int64_t, 2> places = {shape.ratio, shape.width()};
  places_ = binder.tensor(layer, module + ".position_bias", places);
  norm_ = binder.vector(layer, module + ".kv_norm", shape.dim, 0);

  ScratchPlan& scratch = source.scratch;
  for (Buffer<float>* const rows : {&input_rows_, &gate_rows_})
    *rows = scratch.ask<float>(BufferUse::kComputing, {.per_row = shape.width()});
  own_key_ = scratch.ask<float>(BufferUse::kComputing, {.fixed = shape.dim, .per_member = true});
  // Besides, a key's angles, and a token's channels.
  const int64_t some = int64_t{shape.tokens()} * kChannels;
  own_gates_ = scratch.ask<float>(
      BufferUse::kComputing, {.fixed = std::max<int64_t>(some, shape.dim), .per_member = true});
  own_inputs_ =
      scratch.ask<float>(BufferUse::kComputing, {.fixed = some + kChannels, .per_member = true});
}

void BlockKeys::place(const Pass& pass, int32_t row) const {
  const int32_t width = shape_.width(), position = pass.ws.position[row];
  float* gates = gates_of(pass.ws) + int64_t{row} * width;
  pass.ops.add_scaled(places_ + int64_t{position % shape_.ratio} * width, 1, width, gates);
  if (pass.kept(row)) return;
  const kernels::KvPages& kv = pass.kv.layer(memory_);
  const int32_t page = pass.page_of(memory_, row), slot = position % kPageTokens;
  pass.ops.store_keys(kv, page, slot, 0, shape_.blocks, inputs_of(pass.ws) + int64_t{row} * width);
  pass.ops.store_keys(kv, page, slot, shape_.blocks, shape_.blocks, gates);
}

void BlockKeys::complete(const Pass& pass, int32_t row) const {
  const int32_t position = pass.ws.position[row];
  if ((position + 1) % shape_.ratio != 0 || pass.kept(row)) return;
  const int32_t block = position / shape_.ratio;
  float* key = pass.ws.at(own_key_, pass.member);
  for (int32_t channel = 0; channel < shape_.dim; channel += kChannels)
    weigh(pass, row, block, channel, std::min(kChannels, shape_.dim - channel), key);
  pass.ops.rms_norm(key, norm_, shape_.norm_eps, shape_.dim, key);
  turn(pass, block * shape_.ratio, key);
  store(pass, row, block, key);
}

// Some channels of a block's key. Tokens ascend; the own block's inputs are the last of a token's.
void BlockKeys::weigh(const Pass& pass, int32_t row, int32_t block, int32_t channel,
                      int32_t channels, float* key) const {
  const kernels::KvPages& kv = pass.kv.layer(memory_);
  const int32_t* pages = pass.pages_of(memory_, row);
  float* gates = pass.ws.at(own_gates_, pass.member);
  float* inputs = pass.ws.at(own_inputs_, pass.member);
  float* spare = inputs + int64_t{shape_.tokens()} * kChannels;  // [kChannels]
  // Channels of head `head` of what token `position` has left.
  const auto read = [&](int32_t position, int32_t head, float* to) {
    const int64_t element = kv::element_bytes(kv.type);
    const uint8_t* from = kv.base + pages[position / kPageTokens] * kv.page_bytes +
                          head * kv.head_bytes +
                          (int64_t{position % kPageTokens} * shape_.dim + channel) * element;
    pass.ops.widen_row({.n = 1, .k = channels, .type = kv.type, .rows = from}, 0, to);
  };
  // The first block has none before it.
  const int32_t first = std::max(block - shape_.blocks + 1, 0) * shape_.ratio;
  const int32_t count = (block + 1) * shape_.ratio - first;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t half = shape_.blocks - 1 - (block - (first + i) / shape_.ratio);
    read(first + i, half, inputs + int64_t{i} * kChannels);
    read(first + i, shape_.blocks + half, spare);
    for (int32_t c = 0; c < channels; ++c) gates[int64_t{c} * count + i] = spare[c];
  }
  for (int32_t c = 0; c < channels; ++c) {
    float* weights = gates + int64_t{c} * count;
    pass.ops.softmax(weights, count, weights);
    float sum = 0;
    for (int32_t i = 0; i < count; ++i) sum += weights[i] * inputs[int64_t{i} * kChannels + c];
    key[channel + c] = sum;
  }
}

void BlockKeys::turn(const Pass& pass, int32_t position, float* key) const {
  const RopeTable& rope = ropes_[static_cast<size_t>(rope_index_)];
  const int32_t dim = rope.rope().dim;
  if (dim == 0) return;
  const std::span own(pass.ws.at(own_gates_, pass.member), static_cast<size_t>(dim));
  const Angles angles = rope.angles(position, position + 1, own);
  pass.ops.rope(key + shape_.dim - dim, 1, dim, dim, angles.cos, angles.sin,
                rope.rope().layout == Rope::kInterleaved);
}

void BlockKeys::store(const Pass& pass, int32_t row, int32_t block, const float* key) const {
  const kernels::KvPages& kv = pass.kv.layer(memory());
  uint8_t* page = kv.base + pass.pages_of(memory(), row)[page_of(block)] * kv.page_bytes;
  const int32_t slot = slot_of(block), slots = shape_.keys_need().page_keys();
  for (int64_t d = 0; d < shape_.dim; ++d)
    put(kv.type, page, shape_.transposed ? d * slots + slot : int64_t{slot} * shape_.dim + d,
        key[d]);
}

}  // namespace weir::model
