#include "encoder/layers/products.h"

namespace weir::encoder {

void Products::add(const LayerSource& source, const std::string& module, int32_t n, bool bias,
                   bool clipped) {
  TowerBinder& binder = source.binder;
  Weight& added = weights_.emplace_back();
  added.weight = binder.linear(clipped ? module + ".linear" : module, n, k_, bias);
  if (!clipped) return;
  clipped_ = true;
  added.in_least = binder.number(module + ".input_min");
  added.in_most = binder.number(module + ".input_max");
  added.out_least = binder.number(module + ".output_min");
  added.out_most = binder.number(module + ".output_max");
}

void Products::finish_adding(const LayerSource& source) {
  using model::BufferUse;
  const auto of_rows = [&](int64_t numbers) {
    return kept_ > 0 ? model::BufferSize{.fixed = kept_ * numbers}
                     : model::BufferSize{.per_row = numbers};
  };
  // A checkpoint that stores float32 wants its precision; tiles have forms of their own.
  const auto meets_pairs = [](const Weight& weight) {
    return weight.weight.held == model::Held::kFloats && !weight.weight.bf16_prompts &&
           weight.weight.floats.type != kernels::FloatType::kF32;
  };
  in_pairs_ = source.pairs && std::ranges::all_of(weights_, meets_pairs);
  for (const Weight& weight : weights_) {
    pointers_.push_back(&weight.weight);
    forms_ |= weight.weight.forms();
  }
  model::ScratchPlan& scratch = source.scratch;
  if (forms_ != 0) buffer_ = scratch.ask_forms(k_, 1, forms_);
  if (in_pairs_)
    rounded_ = scratch.ask<uint16_t>(BufferUse::kComputing, of_rows(kernels::pair_stride(k_)));
  block_ = scratch.ask<float>(BufferUse::kComputing,
                              {.fixed = kFloatBlock.numbers(), .per_member = true});
  if (clipped_) clipped_rows_ = scratch.ask<float>(BufferUse::kComputing, of_rows(k_));
  const auto reads_form = [](const Weight& weight) {
    return weight.weight.order == nullptr && (weight.weight.bf16_prompts || weight.weight.int8);
  };
  takes_parts_ = prepares() && (in_pairs_ || std::ranges::all_of(weights_, reads_form));
}

void Products::convert(const Pass& pass, const float* x, int32_t begin, int32_t end) const {
  prepare_part(pass, x + int64_t{begin} * k_, k_, begin, end, 0, k_);
}

void Products::prepare_part(const Pass& pass, const float* x, int64_t stride, int32_t begin,
                            int32_t end, int32_t column, int32_t columns) const {
  if (forms_ != 0)
    pass.ws.at(buffer_).convert(
        pass.ops, forms_, x, stride,
        {.k = k_, .begin = begin, .end = end, .column = column, .columns = columns}, 0);
  if (!in_pairs_) return;
  kernels::PairRows out = pairs(pass);
  out.x += begin * out.stride + column;
  out.k = columns;
  pass.pairs.round(x, stride, end - begin, out);
}

void Products::clip_rows(const Pass& pass, const float* x, int32_t first, int32_t rows,
                         const Weight& weight) const {
  float* clipped = pass.ws.at(clipped_rows_);
  claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
    float* to = clipped + int64_t{begin} * k_;
    const int64_t count = int64_t{end - begin} * k_;
    std::copy_n(x + int64_t{first + begin} * k_, count, to);
    clip(to, count, weight.in_least, weight.in_most);
    if (converts()) convert(pass, clipped, begin, end);
  });
  pass.barrier();
}

}  // namespace weir::encoder
