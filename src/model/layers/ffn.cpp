#include "model/layers/ffn.h"

namespace weir::model {

FfnWeights FfnWeights::bind(WeightBinder& binder, int layer, std::string_view module,
                            const DenseFfn& spec, int32_t hidden) {
  const std::string path(module);
  const std::string gate = path + ".gate_proj", up = path + ".up_proj";
  FfnWeights w{.spec = spec};
  if (spec.gated) {
    const std::array<WeightBinder::Part, 2> parts = {{{gate, spec.width}, {up, spec.width}}};
    const std::vector<Linear> both = binder.linears(layer, parts, hidden, spec.bias);
    w.gate = both[0], w.up = both[1];
  } else {
    w.up = binder.linear(layer, up, spec.width, hidden, spec.bias);
  }
  w.down = binder.linear(layer, path + ".down_proj", hidden, spec.width, spec.bias);
  return w;
}

void FfnWeights::activate(const Pass& pass, const Activations& in, const int32_t* index,
                          int32_t rows, int32_t begin, int32_t end, const Inner& out) const {
  if (!down.int8) {
    kernels::GemmRange range = {
        .index = index, .rows = rows, .begin = begin, .end = end, .y_stride = spec.width};
    range.y = out.hidden + int64_t{out.row} * spec.width;
    activate_range(pass, in, range, out.spare + int64_t{out.row} * spec.width);
    out.forms->convert(pass.ops, down.forms(), range.y + begin, range.y_stride,
                       {.k = spec.width,
                        .begin = out.row,
                        .end = out.row + rows,
                        .column = begin,
                        .columns = end - begin},
                       out.prompt_begin);
    return;
  }
  // Only the other form is read later: the floats come and go in blocks that stay in the cache.
  for_column_blocks(begin, end, column_multiple(), [&](int32_t first, int32_t last) {
    kernels::GemmRange range = block_range(pass, 0, rows, first, last);
    range.index = index;
    activate_range(pass, in, range, block_range(pass, 1, rows, first, last).y);
    out.forms->convert(pass.ops, down.forms(), range.y + first, range.y_stride,
                       {.k = spec.width,
                        .begin = out.row,
                        .end = out.row + rows,
                        .column = first,
                        .columns = last - first},
                       out.prompt_begin);
  });
}

void FfnWeights::activate_range(const Pass& pass, const Activations& in,
                                const kernels::GemmRange& out, float* spare) const {
  kernels::GemmRange range = out;
  if (spec.gated) {
    multiply(pass.ops, gate, in, range, pass.scratch());
    add_bias(pass.ops, gate, range);
    range.y = spare;
  }
  multiply(pass.ops, up, in, range, pass.scratch());
  add_bias(pass.ops, up, range);
  const int32_t columns = out.end - out.begin;
  for (int64_t row = 0; row < out.rows; ++row) {
    const int64_t at = row * out.y_stride + out.begin;
    if (spec.gated)
      pass.ops.gated_act(out.y + at, spare + at, spec.act, columns, out.y + at);
    else
      pass.ops.act(spec.act, columns, out.y + at);
  }
}

FfnLayer::FfnLayer(WeightBinder& binder, const ModelSpec& spec, int index)
    : hidden_(spec.hidden_size) {
  const LayerSpec& layer = spec.layers[static_cast<size_t>(index)];
  if (layer.pre_ffn) input_.norm = binder.norm(index, "pre_ffn_norm", *layer.pre_ffn, hidden_);
  ffn_ = FfnWeights::bind(binder, index, "mlp", std::get<DenseFfn>(layer.ffn), hidden_);
  if (layer.post_ffn) output_.norm = binder.norm(index, "post_ffn_norm", *layer.post_ffn, hidden_);
  output_.scale = layer.residual_scale;
  input_.forms = ffn_.input_forms();
}

void FfnLayer::raise(WorkspaceSizes& sizes) const {
  sizes.ffn_width = std::max(sizes.ffn_width, ffn_.spec.width);
  sizes.ffn_floats |= !ffn_.down.int8;
  sizes.forms |= input_.forms | ffn_.down.forms();
}

void FfnLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, hidden_, begin, end);
}

void FfnLayer::compute(const Pass& pass) const {
  activate(pass);
  pass.team.barrier();
  project_down(pass);
  pass.team.barrier();
}

void FfnLayer::activate(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "gate_up_proj");
  const Workspace& ws = pass.ws;
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  const FfnWeights::Inner out = {.hidden = ws.gate,
                                 .spare = ws.up,
                                 .forms = &ws.inner_forms,
                                 .prompt_begin = pass.prompt_begin};
  claim_columns(
      pass, std::array{ffn_.spec.width},
      [&](size_t, int32_t begin, int32_t end) {
        ffn_.activate(pass, in, nullptr, pass.rows(), begin, end, out);
      },
      ffn_.column_multiple());
}

void FfnLayer::project_down(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "down_proj");
  const Workspace& ws = pass.ws;
  const Activations inner = {
      .x = ws.gate, .forms = &ws.inner_forms, .prompt_begin = pass.prompt_begin};
  claim_columns(pass, std::array{hidden_}, [&](size_t, int32_t begin, int32_t end) {
    output_.project(pass, ffn_.down, inner, begin, end);
  });
}

void FfnLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  if (!output_.adds_columns()) output_.add_rows(pass, hidden_, begin, end);
}

}  // namespace weir::model
