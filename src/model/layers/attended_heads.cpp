#include "model/layers/attended_heads.h"

#include <array>

#include "model/adapted_product.h"

namespace weir::model {

AttendedHeads AttendedHeads::bind(const LayerSource& source, int32_t width, int32_t together,
                                  bool bias, std::string_view module,
                                  const std::optional<Norm>& norm) {
  AttendedHeads out;
  out.output_ = SublayerOutput::bind(source);
  out.o_ = source.binder.linear(source.stored_layer(), module, source.hidden, width, bias);
  const int32_t multiple = out.o_.int8 ? out.o_.quant.group : 32;  // Columns that convert() wants.
  out.converts_heads_ = together % multiple == 0 && !norm;
  if (norm) out.norm_ = source.binder.norm(source.stored_layer(), *norm, width);
  out.x_ = source.scratch.ask<float>(BufferUse::kComputing, {.per_row = out.o_.k});
  out.forms_ = source.scratch.ask_forms(out.o_.k, 1, out.o_.forms());
  return out;
}

void AttendedHeads::convert(const Pass& pass, const ActivationForms::Part& part) const {
  const float* x = row(pass, part.begin) + part.column;
  pass.ws.at(forms_).convert(pass.ops, o_.forms(), x, o_.k, part, pass.prompt_begin);
}

void AttendedHeads::finish(const Pass& pass, int32_t begin, int32_t end, int32_t column,
                           int32_t columns) const {
  if (!converts_heads_) return;
  convert(pass, {.k = o_.k, .begin = begin, .end = end, .column = column, .columns = columns});
}

void AttendedHeads::project(const Pass& pass, const RowRange& rows,
                            const kernels::NextWeights& after) const {
  if (norm_ || (o_.forms() != 0 && !converts_heads_)) {
    claim_rows(pass, rows, [&](int32_t begin, int32_t end) {
      const trace::Scope scope(trace::Kind::kKernel, "quantise");
      float* x = pass.ws.at(x_);
      if (norm_) normalise(pass.ops, *norm_, x, o_.k, begin, end, x);
      convert(pass, {.k = o_.k, .begin = begin, .end = end, .columns = o_.k});
    });
    pass.team.barrier(pass.member);
  }
  Activations in = {
      .x = pass.ws.at(x_), .forms = &pass.ws.at(forms_), .prompt_begin = pass.prompt_begin};
  const std::array weights = {&o_};
  prepare_adapters(pass, weights, in, rows);
  in.prepared = 0;
  const auto start = pass.ws.groups.now(pass.reads != nullptr);
  {
    const trace::Scope scope(trace::Kind::kKernel, "o_proj");
    output_.project(pass, o_, in, rows, after);
  }
  pass.team.barrier(pass.member);
  if (pass.reads != nullptr) pass.ws.groups.projected_since(start);
}

void AttendedHeads::leave(const Pass& pass, int32_t begin, int32_t end) const {
  if (!output_.adds_columns()) output_.add_rows(pass, begin, end);
}

}  // namespace weir::model
