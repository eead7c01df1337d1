// Batch: the flat inputs of one forward pass. Plain views; what they point to stays in place until
// the pass has ended. BatchBuilder (model/batch_builder.h) makes batches; nothing else does.
//
// A row is one token's place in a pass. It comes from a token's id, from the place where the step
// before leaves a token, or from a vector that takes the place of an embedding.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kv/memory_view.h"

namespace weir::model {

class Adapter;

// What a step leaves of one sequence for the step after it: the last token that it took, and how
// many of the drafts in its slice it took before that one.
struct Taken {
  int32_t token = 0;
  int32_t drafts = 0;
};

// Positions [begin, end) of a sequence that see each other, whichever comes first: an image's, for
// example. Empty: every position sees those before it and itself. REQUIRES: a slice that has some
// of them has the last one; those before it are computed, with the same mask.
struct Mask {
  int32_t begin = 0;
  int32_t end = 0;
};

// Consecutive tokens of one sequence within a batch. No two slices are of one sequence: what layers
// keep of it changes from token to token, in order.
struct BatchSlice {
  int32_t row_begin = 0;  // Its first row in the batch.
  int32_t rows = 0;
  // Position of its first token in the sequence. Where `after` >= 0 it is known late: so much, and
  // on top of it the drafts that the step before has taken at that place (Batch::before). Such a
  // slice has generated tokens only, and the memory of its sequence covers the last position that
  // it may have.
  int32_t first_position = 0;
  int32_t after = -1;
  // Its last rows are drafts: states do not take them, they leave what they bring on their tapes
  // (kv::StateNeed). `replays`: drafts of an earlier slice that were right, and which states take
  // from there before the first row; where `after` >= 0 they are as many as were taken there.
  int32_t drafts = 0;
  int32_t replays = 0;
  // Tokens from here on were generated. Length-dependent rope (decision 20) takes
  // max(prompt_length, p + 1) as the length at p.
  int32_t prompt_length = 0;
  kv::MemoryView memory;  // The sequence's, covering all positions of the slice.
  Mask mask{};
  // Where the angles of its rows are not those of their positions: by row from this entry of
  // Batch::rope_positions on, or, -1, those of the positions that lie so much further on.
  int32_t rope_first = -1;
  int32_t rope_shift = 0;
  // No row of it attends to a position before this one: of a drafter, which may not have computed
  // what comes first. At most first_position.
  int32_t first_key = 0;
  // What its weights come with (Model::bind_adapter()), and by what the adapter's own scale is
  // multiplied; null: nothing. It outlives the pass.
  const Adapter* adapter = nullptr;
  float adapter_scale = 1;
  // Tells sequences apart from batch to batch; below ssd::StoreOptions::sequences_max.
  int32_t sequence = 0;
};

// Rows that begin with these vectors [rows, hidden_size] instead of embedded tokens: as they enter
// the first sublayer, after the embedding's scale. Level i, as many vectors, begins
// (i + 1) * level_stride numbers after them and is added to the rows after layer i.
struct VectorRows {
  int32_t row_begin = 0;
  int32_t rows = 0;
  const float* vectors = nullptr;
  int32_t levels = 0;
  int64_t level_stride = 0;
};

// Rows that begin with a token and with what another model has left of the position before
// (ModelSpec::features).
struct FeatureRows {
  std::span<const float* const> of_row = {};  // By row: [FeatureInput::width]; empty: none of it.
  bool projected = false;  // They are as wide as the model, and come from its own last rows.
};

// What is wanted of consecutive rows of one slice. RowSink::on_rows() gets it.
struct Wanted {
  enum Kind : uint8_t {
    kNext,    // One row's logits: the token after it is chosen.
    kVerify,  // The logits of a token and of the drafts after it: the tokens after them, in order,
              // as long as they are the drafts.
    kScore,   // Logits: how likely each row's next token is, which the caller knows.
    kHidden,  // Hidden states after the final norm.
  } kind = kNext;
  int32_t slice = 0;
  int32_t row_begin = 0;
  int32_t rows = 0;
};

// Of cross attention: how much rows of a slice attend to each of the first `keys` rows of the
// encoder, in one head: a softmax over those.
struct WantedWeights {
  int32_t slice = 0;
  int32_t first = 0;  // Of the slice's rows,
  int32_t rows = 0;   // and how many.
  int32_t layer = 0;  // Of those with cross attention.
  int32_t head = 0;
  int32_t keys = 0;
  float* weights = nullptr;  // [rows, keys]
};

// The angles of a row's rotary embedding where they are not its position's: time, height, width.
using RopePosition = std::array<int32_t, 3>;

// Which of a model's scratch memories a batch is computed in. A slab may be begun while steps run
// between its sublayers.
enum class Lane : uint8_t { kStep, kSlab };

struct Batch {
  // Token ids; a negative entry t stands for before[-t - 1].token (decision 19). Rows of `vectors`
  // may have any.
  std::span<const int32_t> tokens;
  const Taken* before = nullptr;       // What the step before leaves.
  std::span<const BatchSlice> slices;  // Ascending and contiguous in rows.
  std::span<const VectorRows> vectors = {};
  FeatureRows features = {};
  std::span<const RopePosition> rope_positions = {};  // Of slices that say so.
  std::span<const Wanted> wanted = {};  // Ascending in rows; no row is in two of them.
  std::span<const WantedWeights> weights = {};

  int32_t rows() const { return static_cast<int32_t>(tokens.size()); }
  // By how much a slice's position is more than is said of it.
  int32_t drafts_before(const BatchSlice& slice) const {
    return slice.after < 0 ? 0 : before[slice.after].drafts;
  }
  // Where a slice's first token stands. Not before the step before has ended.
  int32_t first(const BatchSlice& slice) const {
    return slice.first_position + drafts_before(slice);
  }
  int32_t replays_of(const BatchSlice& slice) const {
    return slice.after < 0 ? slice.replays : before[slice.after].drafts;
  }
  // Of all slices before it together.
  int32_t replays_before(const BatchSlice& slice) const {
    int32_t replays = 0;
    for (const BatchSlice* other = slices.data(); other != &slice; ++other)
      replays += replays_of(*other);
    return replays;
  }
  // The vector that a row begins with; null: its token's embedding.
  const float* vector_of(int32_t row, int32_t width) const {
    for (const VectorRows& part : vectors)
      if (row >= part.row_begin && row < part.row_begin + part.rows)
        return part.vectors + int64_t{row - part.row_begin} * width;
    return nullptr;
  }
  // Some of its rows have no tokens.
  bool has_vectors(const BatchSlice& slice) const {
    for (const VectorRows& part : vectors)
      if (part.row_begin < slice.row_begin + slice.rows &&
          slice.row_begin < part.row_begin + part.rows)
        return true;
    return false;
  }
  // What its angles are those of. `position`: its own, in the slice.
  RopePosition rope_position(const BatchSlice& slice, int32_t row, int32_t position) const {
    if (slice.rope_first >= 0)
      return rope_positions[static_cast<size_t>(slice.rope_first + row - slice.row_begin)];
    const int32_t shifted = position + slice.rope_shift;
    return {shifted, shifted, shifted};
  }
  // The row's token. REQUIRES: the row has one, and no vector.
  int32_t token_of(int32_t row) const {
    const int32_t token = tokens[static_cast<size_t>(row)];
    return token >= 0 ? token : before[static_cast<size_t>(-token - 1)].token;
  }
  // The first row of a prompt, where all generated tokens come before
  // (Model::prompts_differ_from()).
  int32_t prompt_begin() const {
    for (const BatchSlice& slice : slices)
      if (slice.first_position < slice.prompt_length) return slice.row_begin;
    return rows();
  }
};

}  // namespace weir::model
