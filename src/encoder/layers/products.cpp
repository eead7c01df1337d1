#include "encoder/layers/products.h"

namespace weir::encoder {

Products::Products(const LayerSource& source, int32_t k, int32_t kept)
    : binder_(source.binder), scratch_(source.scratch), k_(k), kept_(kept) {}

void Products::add(const std::string& module, int32_t n, bool bias, bool clipped) {
  Weight& added = weights_.emplace_back();
  added.weight = binder_.linear(clipped ? module + ".linear" : module, n, k_, bias);
  if (!clipped) return;
  clipped_ = true;
  added.in_least = binder_.number(module + ".input_min");
  added.in_most = binder_.number(module + ".input_max");
  added.out_least = binder_.number(module + ".output_min");
  added.out_most = binder_.number(module + ".output_max");
}

void Products::finish_adding() {
  for (const Weight& weight : weights_) {
    pointers_.push_back(&weight.weight);
    forms_ |= weight.weight.forms();
  }
  if (forms_ != 0) buffer_ = scratch_.ask_forms(k_, 1, forms_);
  block_ = scratch_.ask<float>(model::BufferUse::kComputing,
                               {.fixed = int64_t{kBlockRows} * kBlockColumns, .per_member = true});
  if (!clipped_) return;
  clipped_rows_ = scratch_.ask<float>(model::BufferUse::kComputing,
                                      kept_ > 0 ? model::BufferSize{.fixed = int64_t{kept_} * k_}
                                                : model::BufferSize{.per_row = k_});
}

void Products::convert(const Pass& pass, const float* x, int32_t begin, int32_t end) const {
  pass.ws.at(buffer_).convert(pass.ops, forms_, x + int64_t{begin} * k_, k_,
                              {.k = k_, .begin = begin, .end = end, .columns = k_}, 0);
}

void Products::clip_rows(const Pass& pass, const float* x, int32_t first, int32_t rows,
                         const Weight& weight) const {
  float* clipped = pass.ws.at(clipped_rows_);
  claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
    float* to = clipped + int64_t{begin} * k_;
    const int64_t count = int64_t{end - begin} * k_;
    std::copy_n(x + int64_t{first + begin} * k_, count, to);
    clip(to, count, weight.in_least, weight.in_most);
    if (forms_ != 0) convert(pass, clipped, begin, end);
  });
  pass.barrier();
}

}  // namespace weir::encoder
