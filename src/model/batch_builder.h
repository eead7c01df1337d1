// BatchBuilder makes a Batch: slices one after another, each with its rows, then what is wanted of
// them. Whatever computes a batch has it from here: the engine, `weir bench`, `weir perplexity`,
// weir-check and tests.
//
// Threads: one. Takes memory at construction, and no more as long as a batch stays within it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/batch.h"

namespace weir::model {

class BatchBuilder {
 public:
  // Memory for so many rows and slices.
  explicit BatchBuilder(int32_t rows = 0, int32_t slices = 0);

  void clear();

  // Opens a slice: the rows added from here on are its own. Its row_begin and rows are counted
  // here. `marks` of its memory are copied: their owner may change them. Returns its number.
  int32_t add_slice(const BatchSlice& slice);
  void add_token(int32_t id) { add_row(id); }
  void add_tokens(std::span<const int32_t> ids) {
    for (const int32_t id : ids) add_row(id);
  }
  // The token that the step before leaves at `place`.
  void add_place(int32_t place) { add_row(-1 - place); }
  // Rows of vectors; where they begin is filled in here. `tokens`: what they stand for, or empty.
  void add_vectors(const VectorRows& vectors, std::span<const int32_t> tokens = {});
  // A token with a feature (FeatureRows). REQUIRES: so it is for every row of the batch.
  void add_feature(int32_t id, const float* feature) {
    add_row(id);
    features_.push_back(feature);
  }
  // The features come from the model's own last rows.
  void set_projected() { projected_ = true; }
  // Of the open slice's rows, one after another: what their angles are those of, in place of their
  // positions. REQUIRES: it is said of every row of the slice, and none of them is a draft.
  void set_rope_position(const RopePosition& position);

  // Wants something of rows [first, first + rows) of the open slice, counted from its beginning;
  // returns the entry's index in Batch::wanted.
  int32_t want(Wanted::Kind kind, int32_t first, int32_t rows);
  // Wants the next token, of its last row.
  int32_t want_next();

  // Wants weights of the open slice's rows; the slice is filled in here. For it memory is taken.
  void want_weights(WantedWeights wanted);

  // As Batch::tokens has it.
  int32_t token(int32_t row) const { return tokens_[static_cast<size_t>(row)]; }
  // A row whose token was not known when it was added.
  void set_token(int32_t row, int32_t id) { tokens_[static_cast<size_t>(row)] = id; }
  // Of each slice so many of its last rows go, never all of them, and what was wanted of those; an
  // entry of one row that is left is wanted as kNext. REQUIRES: those rows have ids, not vectors.
  void cut(std::span<const int32_t> rows_of_slices);
  // Every slice stands `tokens` further on: for the same rows, a step later.
  void move_on(int32_t tokens) {
    for (BatchSlice& slice : slices_) slice.first_position += tokens;
  }

  bool empty() const { return slices_.empty(); }
  int32_t rows() const { return static_cast<int32_t>(tokens_.size()); }
  std::span<const BatchSlice> slices() const { return slices_; }
  std::span<const Wanted> wanted() const { return wanted_; }
  // Views of what this builder holds: until clear() or the next add. `before` as Batch::before.
  Batch batch(const Taken* before = nullptr) const;

 private:
  void add_row(int32_t token);

  std::vector<int32_t> tokens_;
  std::vector<BatchSlice> slices_;
  std::vector<kv::StateMark> marks_;  // Of the slices; never more than it was made for.
  std::vector<VectorRows> vectors_;
  std::vector<const float*> features_;
  bool projected_ = false;
  std::vector<RopePosition> rope_positions_;
  std::vector<Wanted> wanted_;
  std::vector<WantedWeights> weights_;
};

}  // namespace weir::model
