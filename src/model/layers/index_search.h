// IndexSearch: which keys a row attends to: those of best score by small queries and keys of their
// own, of whatever a key stands for (a token, or several).
//
// A row that sees no more keys than it may choose attends to all, and nothing is scored. Scores are
// sums in float32 of keys as the cache holds them, in one order: a row chooses the same among
// whatever rows it is computed.
//
// Threads: as Layer.
#pragma once

#include "model/layers/best_positions.h"
#include "model/layers/norm_embed.h"

namespace weir::model {

class IndexSearch {
 public:
  struct Shape {
    int32_t heads = 0;
    int32_t dim = 0;
    int32_t top_k = 0;
    int32_t tokens_per_key = 1;  // A key is seen from the last of its tokens on.
    // Numbers [rope_first, rope_first + rope_dim) of a query, and of a key, turn.
    int32_t rope_first = 0;
    int32_t rope_dim = 0;
    bool interleaved = false;
  };

  IndexSearch() = default;
  // `memory`: the layer of the cache whose pages begin with the keys, [dim][page_keys];
  // `rope_index`: which of the model's rope tables.
  IndexSearch(ScratchPlan& scratch, const Shape& shape, int32_t memory, int rope_index);

  // Where a step's queries and weights of heads belong: [rows, heads * dim], [rows, heads].
  float* queries_of(const Workspace& ws) const { return ws.at(queries_); }
  float* weights_of(const Workspace& ws) const { return ws.at(row_weights_); }

  // Turns `heads` queries, or a key, by the angles of the row.
  void turn(const Pass& pass, int32_t row, float* x, int32_t heads) const;
  // Phases, of which the last ends with a barrier; none where rows see few keys.
  void choose(const Pass& pass, const RowRange& rows) const;
  // The keys that a row sees.
  int32_t seen(const Pass& pass, int32_t row) const {
    return (pass.ws.position[row] + 1) / shape_.tokens_per_key;
  }
  // The row attends to some of the keys that it sees; else to all.
  bool chooses(const Pass& pass, int32_t row) const { return seen(pass, row) > shape_.top_k; }
  // [top_k], ascending. REQUIRES: choose() has been called, and the row chooses.
  const int32_t* chosen(const Pass& pass, int32_t row) const {
    return pass.ws.at(chosen_) + int64_t{row} * shape_.top_k;
  }

 private:
  // Of `parts` parts of the keys that a row sees, one: offers them, [0, count) of the result.
  int32_t search(const Pass& pass, int32_t row, int32_t part, int32_t parts,
                 ScoredPosition* best) const;
  void keep(const Pass& pass, int32_t row, ScoredPosition* best, int32_t count) const;

  Shape shape_;
  int32_t memory_ = -1;
  int rope_index_ = -1;
  Buffer<float> queries_;      // [rows, heads * dim]
  Buffer<float> row_weights_;  // [rows, heads]
  Buffer<int32_t> chosen_;     // [rows, top_k], ascending.
  // A member's own: a row's queries after their rope, and scores of some keys.
  Buffer<float> own_queries_, own_scores_;
  // A part's of a row's keys, or a member's own: [2 * top_k], and how many are of use.
  Buffer<ScoredPosition> best_;
  Buffer<int32_t> best_count_;
};

}  // namespace weir::model
