#include "model/layers/head.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace weir::model {

namespace {

ColumnShares<1> shares_of(const Pass& pass, const Linear& weight) { return {pass, {&weight}, 16}; }

bool wants_logits(const Wanted& wanted) { return wanted.kind != Wanted::kHidden; }

int32_t logit_rows(std::span<const Wanted> wanted) {
  int32_t rows = 0;
  for (const Wanted& entry : wanted)
    if (wants_logits(entry)) rows += entry.rows;
  return rows;
}

}  // namespace

// The rows from a place in Batch::wanted on, as many whole entries as there is room for; one whose
// rows stand each for itself may be cut, and each of its rows is a part.
struct Head::Chunk {
  std::array<Part, kLogitRowsMax> parts;
  int32_t count = 0;  // Of parts.
  int32_t rows = 0;
  size_t entry = 0;   // Where the next chunk begins,
  int32_t first = 0;  // and with which of its rows.

  void take(std::span<const Wanted> wanted) {
    count = rows = 0;
    for (; entry < wanted.size(); ++entry, first = 0) {
      const Wanted& next = wanted[entry];
      if (!wants_logits(next)) continue;
      if (next.kind == Wanted::kScore) {
        for (; first < next.rows && rows < kLogitRowsMax; ++first) add(1);
        if (first < next.rows) return;
      } else {
        CHECK(next.rows <= kLogitRowsMax);
        if (rows + next.rows > kLogitRowsMax) return;
        add(next.rows);
      }
    }
  }

  // Which row of the pass each of its rows is.
  std::array<int32_t, kLogitRowsMax> pass_rows(std::span<const Wanted> wanted) const {
    std::array<int32_t, kLogitRowsMax> out{};
    for (const Part& part : std::span(parts).first(static_cast<size_t>(count)))
      for (int32_t i = 0; i < part.rows; ++i)
        out[static_cast<size_t>(part.place + i)] =
            wanted[static_cast<size_t>(part.wanted)].row_begin + part.first + i;
    return out;
  }

 private:
  void add(int32_t part_rows) {
    parts[static_cast<size_t>(count++)] = {
        .wanted = static_cast<int32_t>(entry), .first = first, .rows = part_rows, .place = rows};
    rows += part_rows;
  }
};

Head::Head(WeightBinder& binder, const ModelSpec& spec, const Embedding& embedding,
           const StreamTable* streams, const HyperStreams* hyper, const Head* shared)
    : norm_(binder.norm(kWholeModel, spec.final_norm, spec.hidden_size)),
      streams_(streams),
      hyper_(hyper),
      scale_(spec.logit_scale),
      softcap_(spec.logit_softcap) {
  if (shared != nullptr) {
    share(*shared, spec.head_rows);
    return;
  }
  const bool stored = binder.has_weight(kWholeModel, "lm_head");
  if (spec.tied_head && !(spec.tied_unless_stored && stored)) {
    weight_ = binder.shared(embedding.weight(), "lm_head");
    binder.ignore(kWholeModel, "lm_head");  // Some files repeat the embedding under this name.
  } else {
    const int32_t rows = spec.head_rows > 0 ? spec.head_rows : spec.vocab_size;
    weight_ = binder.linear(kWholeModel, "lm_head", rows, spec.hidden_size, spec.head_bias);
    if (spec.unit_head)
      row_scales_ = binder.row_scales(kWholeModel, "lm_head", spec.vocab_size, spec.hidden_size);
  }
}

// Rows lie in blocks one after another, so the first ones are a matrix by themselves.
void Head::share(const Head& other, int32_t rows) {
  weight_ = other.weight_;
  row_scales_ = other.row_scales_;
  weight_.target = -1;
  if (rows == 0 || rows >= weight_.n) return;
  weight_.n = weight_.floats.n = weight_.quant.n = weight_.float8.n = rows;
}

void Head::scale_columns(const kernels::GemmRange& range) const {
  if (row_scales_ == nullptr) return;
  for (int64_t row = 0; row < range.rows; ++row)
    for (int32_t c = range.begin; c < range.end; ++c)
      range.y[row * range.y_stride + c] *= row_scales_[c];
}

void Head::compute_logits(const Pass& pass, int32_t first, const Chunk& chunk) const {
  const trace::Scope scope(trace::Kind::kKernel, "lm_head");
  const Workspace& ws = pass.ws;
  const int32_t rows = chunk.rows;
  const auto pass_rows = chunk.pass_rows(pass.batch.wanted);
  // Few rows: in int8 whether they end a prompt or not.
  const Activations in = {
      .x = ws.normed, .forms = &ws.normed_forms, .pass_rows = pass_rows.data()};
  // The rows of this chunk among all that were normalised.
  std::array<int32_t, kLogitRowsMax> index;
  for (int32_t i = 0; i < rows; ++i) index[static_cast<size_t>(i)] = first + i;
  const auto compute = [&](const ColumnRange& columns, const kernels::NextWeights& next) {
    const kernels::GemmRange range = {.index = index.data(),
                                      .rows = rows,
                                      .begin = columns.begin,
                                      .end = columns.end,
                                      .y = ws.logits,
                                      .y_stride = weight_.n,
                                      .next = next};
    multiply(pass, weight_, in, range);
    scale_columns(range);
    add_bias(pass.ops, weight_, range);
    const int32_t width = columns.end - columns.begin;
    for (int64_t row = 0; row < rows; ++row) {
      float* logits = ws.logits + row * weight_.n + columns.begin;
      if (scale_ != 1) pass.ops.scale(scale_, width, logits);
      if (softcap_ > 0) pass.ops.softcap(softcap_, width, logits);
    }
  };
  claim_columns(pass, shares_of(pass, weight_), {}, compute);
}

kernels::NextWeights Head::first_weights(const Pass& pass) const {
  if (logit_rows(pass.batch.wanted) == 0) return {};
  return shares_of(pass, weight_).first_weights(pass.member, 0);
}

// Rows [begin, end) of those that are wanted, into Workspace::normed: first those whose logits are,
// `logits` in all, then the hidden ones.
void Head::normalise_rows(const Pass& pass, const Layer* last, int32_t logits, int32_t begin,
                          int32_t end) const {
  const trace::Scope scope(trace::Kind::kKernel, "norm");
  const Workspace& ws = pass.ws;
  const int32_t hidden = weight_.k;
  int32_t next_logits = 0, next_hidden = logits;
  for (const Wanted& entry : pass.batch.wanted) {
    int32_t& next = wants_logits(entry) ? next_logits : next_hidden;
    const int32_t first = next;
    next += entry.rows;
    for (int32_t to = std::max(first, begin); to < std::min(next, end); ++to) {
      const int32_t row = entry.row_begin + to - first;
      if (last != nullptr) last->leave(pass, row, row + 1);
      if (streams_ != nullptr) streams_->finish_row(pass, row);
      if (hyper_ != nullptr) hyper_->finish_row(pass, row);
      normalise(pass.ops, norm_, ws.residual.row(row), hidden, 0, 1,
                ws.normed + int64_t{to} * hidden);
    }
  }
  const int32_t converted = std::min(logits, end);
  if (begin < converted)
    ws.normed_forms.convert(pass.ops, weight_.forms(), ws.normed + int64_t{begin} * hidden, hidden,
                            {.k = hidden, .begin = begin, .end = converted, .columns = hidden},
                            kNoPrompts);
}

void Head::give_hidden(const Pass& pass, int32_t logits) const {
  const std::span<const Wanted> wanted = pass.batch.wanted;
  const auto entries = std::ranges::count(wanted, Wanted::kHidden, &Wanted::kind);
  claim_blocks(pass, entries, [&](int64_t number) {
    const trace::Scope scope(trace::Kind::kKernel, "pool");
    int64_t first = logits;
    size_t entry = 0;
    for (int64_t left = number;; ++entry) {
      if (wants_logits(wanted[entry])) continue;
      if (left-- == 0) break;
      first += wanted[entry].rows;
    }
    const Rows rows = {.data = pass.ws.normed + first * weight_.k,
                       .count = wanted[entry].rows,
                       .width = weight_.k};
    pass.sink.on_rows(static_cast<int32_t>(entry), 0, rows, pass.member);
  });
}

void Head::give_logits(const Pass& pass, const Chunk& chunk) const {
  claim_blocks(pass, chunk.count, [&](int64_t i) {
    const trace::Scope scope(trace::Kind::kKernel, "sample");
    const Part& part = chunk.parts[static_cast<size_t>(i)];
    const Rows rows = {.data = pass.ws.logits + int64_t{part.place} * weight_.n,
                       .count = part.rows,
                       .width = weight_.n};
    pass.sink.on_rows(part.wanted, part.first, rows, pass.member);
  });
}

void Head::normalise_stream(const Pass& pass, int32_t begin, int32_t end, float* out,
                            int64_t stride) const {
  for (int64_t row = begin; row < end; ++row)
    normalise(pass.ops, norm_, pass.ws.residual.row(row), weight_.k, 0, 1,
              out + (row - begin) * stride);
}

void Head::forward(const Pass& pass, const Layer* last) const {
  const std::span<const Wanted> wanted = pass.batch.wanted;
  int32_t rows = 0;
  for (const Wanted& entry : wanted) rows += entry.rows;
  if (rows == 0) return;
  const int32_t logits = logit_rows(wanted);
  claim_rows(pass, {0, rows},
             [&](int32_t begin, int32_t end) { normalise_rows(pass, last, logits, begin, end); });
  pass.team.barrier(pass.member);
  // In one phase with the first logits: these are claimed apart.
  give_hidden(pass, logits);
  if (logits == 0) pass.team.barrier(pass.member);
  Chunk chunk;
  for (int32_t first = 0; first < logits; first += chunk.rows) {
    chunk.take(wanted);
    compute_logits(pass, first, chunk);
    pass.team.barrier(pass.member);
    give_logits(pass, chunk);
    pass.team.barrier(pass.member);
  }
}

}  // namespace weir::model
