#include "model/batch_builder.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "kv/checkpoints.h"

namespace weir::model {

BatchBuilder::BatchBuilder(int32_t rows, int32_t slices) {
  const auto rows_max = static_cast<size_t>(rows), slices_max = static_cast<size_t>(slices);
  tokens_.reserve(rows_max);
  slices_.reserve(slices_max);
  marks_.reserve(slices_max * kv::Checkpoints::kMarksMax);
  wanted_.reserve(2 * slices_max);  // What its rows are scored or pooled for, and the next token.
}

void BatchBuilder::clear() {
  tokens_.clear();
  slices_.clear();
  marks_.clear();
  vectors_.clear();
  features_.clear();
  projected_ = false;
  rope_positions_.clear();
  wanted_.clear();
  weights_.clear();
}

int32_t BatchBuilder::add_slice(const BatchSlice& slice) {
  slices_.push_back(slice);
  BatchSlice& added = slices_.back();
  added.row_begin = rows();
  added.rows = 0;
  if (const auto marks = slice.memory.marks; !marks.empty()) {
    // The slices before keep their views.
    const size_t first = marks_.size();
    CHECK(first + marks.size() <= marks_.capacity());
    marks_.insert(marks_.end(), marks.begin(), marks.end());
    added.memory.marks = std::span(marks_).subspan(first);
  }
  return static_cast<int32_t>(slices_.size()) - 1;
}

void BatchBuilder::add_row(int32_t token) {
  CHECK(!slices_.empty());
  tokens_.push_back(token);
  ++slices_.back().rows;
}

void BatchBuilder::add_vectors(const VectorRows& vectors, std::span<const int32_t> tokens) {
  CHECK(tokens.empty() || std::ssize(tokens) == vectors.rows);
  vectors_.push_back(vectors);
  vectors_.back().row_begin = rows();
  for (int32_t i = 0; i < vectors.rows; ++i)
    add_row(tokens.empty() ? 0 : tokens[static_cast<size_t>(i)]);
}

void BatchBuilder::set_rope_position(const RopePosition& position) {
  BatchSlice& slice = slices_.back();
  if (slice.rope_first < 0) slice.rope_first = static_cast<int32_t>(rope_positions_.size());
  rope_positions_.push_back(position);
}

int32_t BatchBuilder::want(Wanted::Kind kind, int32_t first, int32_t rows) {
  const BatchSlice& slice = slices_.back();
  CHECK(first >= 0 && rows > 0 && first + rows <= slice.rows);
  wanted_.push_back({.kind = kind,
                     .slice = static_cast<int32_t>(slices_.size()) - 1,
                     .row_begin = slice.row_begin + first,
                     .rows = rows});
  return static_cast<int32_t>(wanted_.size()) - 1;
}

int32_t BatchBuilder::want_next() { return want(Wanted::kNext, slices_.back().rows - 1, 1); }

void BatchBuilder::cut(std::span<const int32_t> rows_of_slices) {
  CHECK(rows_of_slices.size() == slices_.size());
  int32_t row = 0;
  auto wanted = wanted_.begin();
  auto vectors = vectors_.begin();
  for (size_t i = 0; i < slices_.size(); ++i) {
    BatchSlice& slice = slices_[i];
    const int32_t moved = slice.row_begin - row, left = slice.rows - rows_of_slices[i];
    CHECK(left > 0 && left <= slice.rows);
    CHECK(left == slice.rows || slice.rope_first < 0);
    std::copy_n(tokens_.begin() + slice.row_begin, left, tokens_.begin() + row);
    const int32_t end = slice.row_begin + slice.rows;
    for (; vectors != vectors_.end() && vectors->row_begin < end; ++vectors) {
      CHECK(vectors->row_begin + vectors->rows <= slice.row_begin + left);
      vectors->row_begin -= moved;
    }
    for (; wanted != wanted_.end() && wanted->slice == static_cast<int32_t>(i); ++wanted) {
      wanted->row_begin -= moved;
      wanted->rows = std::min(wanted->rows, row + left - wanted->row_begin);
      CHECK(wanted->rows > 0);
      if (wanted->kind == Wanted::kVerify && wanted->rows == 1) wanted->kind = Wanted::kNext;
    }
    slice.row_begin = row;
    slice.rows = left;
    slice.drafts = std::max(slice.drafts - rows_of_slices[i], 0);
    row += left;
  }
  tokens_.resize(static_cast<size_t>(row));
}

void BatchBuilder::want_weights(WantedWeights wanted) {
  wanted.slice = static_cast<int32_t>(slices_.size()) - 1;
  weights_.push_back(wanted);
}

Batch BatchBuilder::batch(const Taken* before) const {
  CHECK(features_.empty() || features_.size() == tokens_.size());
  return {.tokens = tokens_,
          .before = before,
          .slices = slices_,
          .vectors = vectors_,
          .features = {.of_row = features_, .projected = projected_},
          .rope_positions = rope_positions_,
          .wanted = wanted_,
          .weights = weights_};
}

}  // namespace weir::model
