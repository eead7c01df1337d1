#include "model/layers/ffn.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/adapted_product.h"

namespace weir::model {

namespace {

// Stored are numbers of which softplus makes positive ones.
kernels::Xielu bind_xielu(WeightBinder& binder, int layer, const std::string& path) {
  const auto softplus = [](float x) {
    return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x)));
  };
  kernels::Xielu act;
  act.beta = binder.number(layer, path + "beta", act.beta);
  // It counts for numbers up to 0 alone.
  act.least = std::min(binder.number(layer, path + "eps", act.least), 0.0f);
  act.positive = softplus(binder.number(layer, path + "alpha_p"));
  act.negative = act.beta + softplus(binder.number(layer, path + "alpha_n"));
  return act;
}

}  // namespace

FfnWeights FfnWeights::bind(WeightBinder& binder, int layer, std::string_view module,
                            const Dense& spec, int32_t hidden) {
  const std::string path(module);
  const std::string gate = path + ".gate_proj", up = path + ".up_proj";
  FfnWeights w{.spec = spec};
  if (spec.up_by_token) {
    w.gate = binder.linear(layer, gate, spec.width, hidden, spec.bias);
  } else if (spec.gated) {
    const std::array<WeightBinder::Part, 2> parts = {{{gate, spec.width}, {up, spec.width}}};
    const std::vector<Linear> both = binder.linears(layer, parts, hidden, spec.bias);
    w.gate = both[0], w.up = both[1];
  } else {
    w.up = binder.linear(layer, up, spec.width, hidden, spec.bias);
  }
  if (spec.xielu) w.xielu = bind_xielu(binder, layer, path + ".act_fn.");
  if (spec.inner_norm) w.inner_norm = binder.norm(layer, *spec.inner_norm, spec.width);
  w.down = binder.linear(layer, path + ".down_proj", hidden, spec.width, spec.bias);
  return w;
}

void FfnWeights::activate(const Pass& pass, const Activations& in, const Rows& rows,
                          const ColumnRange& columns, const kernels::NextWeights& after,
                          const Inner& out) const {
  const auto convert = [&](const kernels::GemmRange& range) {
    out.forms->convert(pass.ops, down.forms(), range.y + range.begin, range.y_stride,
                       {.k = spec.width,
                        .begin = out.row,
                        .end = out.row + range.rows,
                        .column = range.begin,
                        .columns = range.end - range.begin},
                       out.prompt_begin);
  };
  if (keeps_floats(pass)) {
    const kernels::GemmRange range = {.index = rows.index,
                                      .rows = rows.count,
                                      .begin = columns.begin,
                                      .end = columns.end,
                                      .y = out.hidden + int64_t{out.row} * spec.width,
                                      .y_stride = spec.width};
    activate_range(pass, in, rows, range, after, out.spare + int64_t{out.row} * spec.width);
    if (!finishes_rows()) convert(range);
    return;
  }
  // Only the other form is read later: the floats come and go in blocks that stay in the cache.
  for_column_blocks(columns, Workspace::kBlockColumns, [&](int32_t first, int32_t last) {
    kernels::GemmRange range = block_range(pass, 0, rows.count, first, last);
    range.index = rows.index;
    activate_range(pass, in, rows, range,
                   last < columns.end ? first_weights({0, last, columns.end}) : after,
                   block_range(pass, 1, rows.count, first, last).y);
    convert(range);
  });
}

kernels::NextWeights FfnWeights::first_weights(const ColumnRange& columns) const {
  const int32_t width = down.reads_floats() ? spec.width : Workspace::kBlockColumns;
  return next_weights(first(), columns.begin, std::min(columns.begin + width, columns.end));
}

void FfnWeights::activate_range(const Pass& pass, const Activations& in, const Rows& rows,
                                const kernels::GemmRange& out, const kernels::NextWeights& after,
                                float* spare) const {
  kernels::GemmRange range = out;
  if (spec.gated) {
    range.next = spec.up_by_token ? after : next_weights(up, out.begin, out.end);
    multiply(pass, gate, in, range);
    add_bias(pass.ops, gate, range);
    range.y = spare;
  }
  if (!spec.up_by_token) {
    Activations of_up = in;
    if (spec.gated && in.prepared >= 0) ++of_up.prepared;
    range.next = after;
    multiply(pass, up, of_up, range);
    add_bias(pass.ops, up, range);
  }
  if (spec.linear || spec.gate_cut) return;
  const int32_t columns = out.end - out.begin;
  const kernels::GatedAct gated = {
      .act = spec.act, .limit = spec.limit, .up_offset = spec.up_offset};
  for (int64_t row = 0; row < out.rows; ++row) {
    const int64_t at = row * out.y_stride + out.begin;
    const float* by = spare + at;
    if (spec.up_by_token) by = rows.up + row * rows.up_stride + out.begin;
    if (spec.gate_factor != 1) pass.ops.scale(spec.gate_factor, columns, out.y + at);
    if (rows.weight != nullptr) {  // What multiplies the input multiplies its products.
      pass.ops.scale(rows.weight[row], columns, out.y + at);
      if (spec.gated) pass.ops.scale(rows.weight[row], columns, spare + at);
    }
    if (spec.gated)
      pass.ops.gated_act(out.y + at, by, gated, columns, out.y + at);
    else if (spec.xielu)
      pass.ops.xielu(xielu, columns, out.y + at);
    else
      pass.ops.act(spec.act, columns, out.y + at);
  }
}

void FfnWeights::cut_rows(const Pass& pass, const Inner& out, int32_t begin, int32_t end) const {
  const int32_t width = spec.width;
  for (int64_t row = begin; row < end; ++row) {
    float* gates = out.hidden + row * width;
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < width; ++i) sum += static_cast<double>(gates[i]);
    const double mean = sum / width;
    for (int32_t i = 0; i < width; ++i) {
      const double d = static_cast<double>(gates[i]) - mean;
      squares += d * d;
    }
    const auto cut =
        static_cast<float>(mean + std::sqrt(squares / width) * static_cast<double>(*spec.gate_cut));
    for (int32_t i = 0; i < width; ++i) gates[i] = std::max(gates[i] - cut, 0.0f);
    pass.ops.gated_act(gates, out.spare + row * width, {.act = spec.act}, width, gates);
  }
}

void FfnWeights::finish_rows(const Pass& pass, const Inner& out, int32_t begin,
                             int32_t end) const {
  if (spec.gate_cut) cut_rows(pass, out, begin, end);
  const int32_t width = spec.width;
  if (inner_norm) normalise(pass.ops, *inner_norm, out.hidden, width, begin, end, out.hidden);
  out.forms->convert(pass.ops, down.forms(), out.hidden + int64_t{begin} * width, width,
                     {.k = width, .begin = begin, .end = end, .columns = width}, out.prompt_begin);
}

InnerBuffers InnerBuffers::ask(ScratchPlan& scratch, std::span<const FfnWeights> networks,
                               int32_t rows_per_row) {
  bool floats = false;
  uint8_t forms = 0;
  for (const FfnWeights& ffn : networks) {
    floats |= ffn.down.reads_floats() || ffn.finishes_rows() || ffn.down.target >= 0;
    forms |= ffn.down.forms();
  }
  const int64_t width = networks[0].spec.width;
  const BufferSize size = {.per_row = floats ? rows_per_row * width : 0};
  return {.hidden = scratch.ask<float>(BufferUse::kComputing, size),
          .spare = scratch.ask<float>(BufferUse::kComputing, size),
          .forms = scratch.ask_forms(width, rows_per_row, forms)};
}

FfnWeights::Inner InnerBuffers::at(const Pass& pass) const {
  return {.hidden = pass.ws.at(hidden),
          .spare = pass.ws.at(spare),
          .forms = &pass.ws.at(forms),
          .prompt_begin = pass.prompt_begin};
}

FfnLayer::FfnLayer(const LayerSource& source, const Dense& spec)
    : output_(SublayerOutput::bind(source)),
      ffn_(FfnWeights::bind(source.binder, source.stored_layer(),
                            spec.up_by_token ? "token_input"
                            : spec.linear    ? "low_rank"
                                             : "mlp",
                            spec, source.hidden)),
      inner_(InnerBuffers::ask(source.scratch, {&ffn_, 1}, 1)),
      token_inputs_(source.token_inputs),
      token_input_width_(source.token_input_width),
      token_input_(int64_t{source.stored_layer()} * spec.width) {
  input_ = SublayerInput::bind(source, ffn_.input_forms());
}

LayerFacts FfnLayer::facts() const {
  return {.weight_bytes = ffn_.weight_bytes(),
          .macs = ffn_.macs(),
          .leaves_nothing = output_.adds_columns()};
}

void FfnLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
}

void FfnLayer::compute(const Pass& pass, const RowRange&, const kernels::NextWeights& after) const {
  const std::array weights = {&ffn_.first(), &ffn_.up};
  prepare_adapters(pass, std::span(weights).first(ffn_.spec.gated ? 2 : 1), input(pass),
                   pass.all_rows());
  activate(pass);
  pass.team.barrier(pass.member);
  if (ffn_.finishes_rows()) {
    claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
      ffn_.finish_rows(pass, inner_.at(pass), begin, end);
    });
    pass.team.barrier(pass.member);
  }
  project_down(pass, after);
  pass.team.barrier(pass.member);
}

ColumnShares<1> FfnLayer::inner_shares(const Pass& pass) const {
  return {pass, {&ffn_.first()}, ffn_.column_multiple()};
}

kernels::NextWeights FfnLayer::first_weights(const Pass& pass) const {
  const ColumnRange columns = inner_shares(pass).ranges(pass.member, 0)[0];
  return ffn_.first_weights(columns);
}

// Of gate and up, which adapters have prepared.
Activations FfnLayer::input(const Pass& pass) {
  return {.x = pass.normed(),
          .forms = &pass.normed_forms(),
          .prompt_begin = pass.prompt_begin,
          .prepared = 0};
}

void FfnLayer::activate(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "gate_up_proj");
  const Activations in = input(pass);
  const FfnWeights::Inner out = inner_.at(pass);
  FfnWeights::Rows rows = {.count = pass.rows()};
  if (ffn_.spec.up_by_token) {
    rows.up = pass.ws.at(token_inputs_) + token_input_;
    rows.up_stride = token_input_width_;
  }
  claim_columns(pass, inner_shares(pass), SublayerOutput::first_weights(pass, ffn_.down),
                [&](const ColumnRange& columns, const kernels::NextWeights& next) {
                  ffn_.activate(pass, in, rows, columns, next, out);
                });
}

void FfnLayer::project_down(const Pass& pass, const kernels::NextWeights& after) const {
  const FfnWeights::Inner at = inner_.at(pass);
  const Activations inner = {
      .x = at.hidden, .forms = at.forms, .prompt_begin = pass.prompt_begin, .prepared = 0};
  const std::array weights = {&ffn_.down};
  prepare_adapters(pass, weights, inner, pass.all_rows());
  const trace::Scope scope(trace::Kind::kKernel, "down_proj");
  output_.project(pass, ffn_.down, inner, pass.all_rows(), after);
}

void FfnLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  if (!output_.adds_columns()) output_.add_rows(pass, begin, end);
}

}  // namespace weir::model
