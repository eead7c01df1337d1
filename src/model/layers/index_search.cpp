#include "model/layers/index_search.h"

#include <algorithm>

namespace weir::model {

namespace {

using kernels::kPageTokens;

// Keys that are scored at once: their scores stay in L1.
constexpr int32_t kScored = 1024;
static_assert(kScored % kPageTokens == 0);

}  // namespace

IndexSearch::IndexSearch(ScratchPlan& scratch, const Shape& shape, int32_t memory, int rope_index)
    : shape_(shape), memory_(memory), rope_index_(rope_index) {
  const int64_t width = int64_t{shape.heads} * shape.dim;
  const auto rows = [&](int64_t n) {
    return scratch.ask<float>(BufferUse::kComputing, {.per_row = n});
  };
  const auto own = [&](int64_t n) { return BufferSize{.fixed = n, .per_member = true}; };
  queries_ = rows(width);
  row_weights_ = rows(shape.heads);
  chosen_ = scratch.ask<int32_t>(BufferUse::kComputing, {.per_row = shape.top_k});
  own_queries_ = scratch.ask<float>(BufferUse::kComputing, own(width));
  own_scores_ = scratch.ask<float>(BufferUse::kComputing, own(kScored));
  best_ = scratch.ask<ScoredPosition>(BufferUse::kComputing, own(int64_t{2} * shape.top_k));
  best_count_ = scratch.ask<int32_t>(BufferUse::kComputing, own(1));
}

void IndexSearch::turn(const Pass& pass, int32_t row, float* x, int32_t heads) const {
  if (shape_.rope_dim == 0) return;
  const Angles angles = pass.ws.angles[int64_t{rope_index_} * pass.rows() + row];
  pass.ops.rope(x + shape_.rope_first, heads, shape_.dim, shape_.rope_dim, angles.cos, angles.sin,
                shape_.interleaved);
}

// Few rows are cut into parts, which are searched for as many of the best as a row may choose, and
// then what was found in them.
void IndexSearch::choose(const Pass& pass, const RowRange& rows) const {
  bool any = false;
  for (int32_t row = rows.begin; row < rows.end && !any; ++row) any = chooses(pass, row);
  if (!any) return;
  const Workspace& ws = pass.ws;
  const int32_t parts = std::max(pass.team.members() / rows.count(), 1);
  claim_blocks(pass, int64_t{rows.count()} * parts, [&](int64_t item) {
    const trace::Scope scope(trace::Kind::kKernel, "index");
    const auto row = static_cast<int32_t>(rows.begin + item / parts);
    if (!chooses(pass, row)) return;
    const int place = parts > 1 ? static_cast<int>(item) : pass.member;
    ScoredPosition* best = ws.at(best_, place);
    const int32_t count = search(pass, row, static_cast<int32_t>(item % parts), parts, best);
    if (parts == 1) return keep(pass, row, best, count);
    *ws.at(best_count_, place) = count;
  });
  pass.team.barrier(pass.member);
  if (parts == 1) return;
  claim_blocks(pass, rows.count(), [&](int64_t item) {
    const auto row = static_cast<int32_t>(rows.begin + item);
    if (!chooses(pass, row)) return;
    const auto first = static_cast<int>(item * parts);
    BestPositions best(ws.at(best_, first), shape_.top_k, *ws.at(best_count_, first));
    for (int place = first + 1; place < first + parts; ++place)
      std::for_each_n(ws.at(best_, place), *ws.at(best_count_, place),
                      [&](const ScoredPosition& found) { best.offer(found); });
    keep(pass, row, ws.at(best_, first), best.finish());
  });
  pass.team.barrier(pass.member);
}

// Without the factors that all scores have in common, dim^-1/2 and heads^-1/2: which are the best
// does not depend on them.
int32_t IndexSearch::search(const Pass& pass, int32_t row, int32_t part, int32_t parts,
                            ScoredPosition* best) const {
  const int32_t width = shape_.heads * shape_.dim;
  float* queries = pass.ws.at(own_queries_, pass.member);
  std::copy_n(queries_of(pass.ws) + int64_t{row} * width, width, queries);
  turn(pass, row, queries, shape_.heads);

  const kernels::KvPages kv = pass.kv.layer(memory_);
  float* scores = pass.ws.at(own_scores_, pass.member);
  const int32_t keys = seen(pass, row);
  const int64_t blocks = (keys + kPageTokens - 1) / kPageTokens;
  const auto begin = static_cast<int32_t>(blocks * part / parts * kPageTokens);
  const auto end =
      static_cast<int32_t>(std::min<int64_t>(blocks * (part + 1) / parts * kPageTokens, keys));
  BestPositions kept(best, shape_.top_k);
  for (int32_t first = begin; first < end; first += kScored) {
    const int32_t last = std::min(end, first + kScored);
    pass.ops.index_scores({.q = queries,
                           .weights = weights_of(pass.ws) + int64_t{row} * shape_.heads,
                           .heads = shape_.heads,
                           .dim = shape_.dim,
                           .keys = kv.base,
                           .page_bytes = kv.page_bytes,
                           .slots = kPageTokens / shape_.tokens_per_key,
                           .type = kv.type,
                           .pages = pass.pages_of(memory_, row),
                           .begin = first,
                           .end = last,
                           .scores = scores,
                           .scratch = pass.scratch()});
    for (int32_t i = first; i < last; ++i) kept.offer({scores[i - first], i});
  }
  return kept.finish();
}

void IndexSearch::keep(const Pass& pass, int32_t row, ScoredPosition* best, int32_t count) const {
  int32_t* chosen = pass.ws.at(chosen_) + int64_t{row} * shape_.top_k;
  std::transform(best, best + count, chosen, [](const auto& found) { return found.position; });
  std::sort(chosen, chosen + count);
}

}  // namespace weir::model
