#include "model/layers/media_embedding.h"

#include <algorithm>

namespace weir::model {

MediaEmbedding::MediaEmbedding(WeightBinder& binder, std::span<const MediaTokens> all,
                               int32_t hidden, ScratchPlan& scratch) {
  int32_t widest = 0;
  for (const MediaTokens& tokens : all) {
    const auto module = std::ranges::find_if(tokens.modules, [&](const std::string& name) {
      return binder.has_weight(kWholeModel, name + ".embedding");
    });
    if (module == tokens.modules.end()) continue;  // Files of the text alone leave projectors out.
    const Norm norm = {
        .kind = Norm::kRms, .eps = tokens.eps, .module = *module + ".hard_embedding_norm"};
    tables_.push_back(
        {.first = tokens.first,
         .rows = binder.linear(kWholeModel, *module + ".embedding", tokens.count, tokens.width),
         .projection = binder.linear(kWholeModel, *module + ".embedding_projection", hidden,
                                     tokens.width, /*bias=*/false, Precision::kFloatActivations),
         .norm = binder.norm(kWholeModel, norm, tokens.width),
         .eps = tokens.eps});
    widest = std::max<int32_t>(widest, tokens.width);
  }
  row_ = scratch.ask<float>(BufferUse::kWholePass, {.fixed = widest, .per_member = true});
}

bool MediaEmbedding::embed(const Pass& pass, int32_t row, int32_t token) const {
  for (const Table& table : tables_) {
    if (token < table.first || token >= table.first + table.rows.n) continue;
    float* x = pass.ws.at(row_, pass.member);
    float* out = pass.ws.residual.begin_row(row);
    read_row(pass.ops, table.rows, token - table.first, x);
    pass.ops.rms_norm(x, table.norm.weight, table.norm.eps, table.rows.k, x);
    multiply_floats(pass.ops, table.projection, x, table.projection.k,
                    {.rows = 1,
                     .begin = 0,
                     .end = table.projection.n,
                     .y = out,
                     .y_stride = table.projection.n},
                    pass.scratch());
    pass.ops.rms_norm(out, nullptr, table.eps, table.projection.n, out);
    return true;
  }
  return false;
}

}  // namespace weir::model
