// FakeModel: a Model whose logits are a hash of the sequence's tokens, as it finds them in the KV
// pages. A wrong page, a page written too early or too late, a stale placeholder or a row in the
// wrong place gives other tokens. reference_answer() computes the same from the tokens alone.
//
// Keys hold the token, values hold the length that a length-dependent rope would have used. Layers
// with a window add a hash of what they see, each from pages of its own, and a state adds one of
// all tokens, which it takes in one by one: a stale slot, or another's, or a checkpoint that is not
// of these tokens, is found out. A row that begins with a vector, or is turned by three positions, or
// sees both ways, leaves a hash of all that in place of its token.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "kernels/cpu_ops.h"
#include "model/model.h"
#include "sample/sampler.h"
#include "sched/request.h"

namespace weir::sched {

inline const kernels::Ops& test_ops() { return kernels::ops_for(kernels::Isa::kScalar); }

inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 33);
}

struct FakeModelOptions {
  int32_t vocab_size = 48;
  int32_t hidden_size = 8;
  int32_t rows_max = 512;
  int32_t context_max = 4096;
  // 0: rope does not depend on the length. Else beyond this length it does, as dynamic NTK.
  int32_t original_context = 0;
  int32_t slab_rows = 0;              // 0: prompts come in batches like other tokens.
  int32_t kv_width = 1;               // Of keys and of values. 16: a page in f32 is a system page.
  std::vector<int32_t> windows = {};  // Layers with a window, besides
  bool whole_context = true;          // the one without.
  bool states = false;
  bool three_positions = false;
  model::BothWays both_ways = model::BothWays::kNone;
};

// What a row begins with: numbers, its vector's and of its levels, or if there are none its token;
// and how it is turned and sees.
struct RowContents {
  int32_t token = 0;
  std::vector<float> numbers = {};
  model::RopePosition turned{};
  model::Mask mask{};
};

class FakeModel final : public model::Model {
 public:
  using Options = FakeModelOptions;

  explicit FakeModel(const Options& options = Options()) : fake_(options) {
    spec_.family = "fake";
    spec_.vocab_size = options.vocab_size;
    spec_.hidden_size = options.hidden_size;
    spec_.context_max = options.context_max;
    model::Attention attention;
    if (options.original_context > 0) {
      attention.rope.scaling = model::Rope::kDynamic;
      attention.rope.original_context = static_cast<float>(options.original_context);
    }
    if (options.three_positions) attention.rope.sections = {2, 1, 1};
    spec_.sublayers.assign(kSublayers, {.op = attention});
    spec_.both_ways = options.both_ways;
    options_.rows_max = options.rows_max;
    options_.context_max = options.context_max;
    options_.slab_rows = options.slab_rows;
    for (int32_t layer = 0; layer < layer_count(); ++layer)
      needs_.push_back(kv::PagedNeed{.heads = 1,
                                     .k_dim = fake_.kv_width,
                                     .v_dim = fake_.kv_width,
                                     .window = window_of(layer)});
    if (fake_.states) needs_.push_back(kv::StateNeed{sizeof(State), sizeof(Cell)});
    options_.draft_rows_max = 40;
    const auto rows = static_cast<size_t>(std::max(options.rows_max, options.slab_rows));
    logits_.assign(rows * static_cast<size_t>(options.vocab_size), 0);
    hidden_.assign(rows * static_cast<size_t>(options.hidden_size), 0);
    states_.assign(static_cast<size_t>(options.rows_max + options.slab_rows), 0);
  }

  model::ModelMemory memory() const override { return {}; }
  model::TokenWork token_work() const override { return {}; }
  model::WeightFiles files() const override { return {.all = {}, .in_place = mapped}; }

  // Of a pass in pieces, keys are written with the second of three sublayers, read with the last: a
  // step that writes to the slab's pages meanwhile, or reads them, is found out.
  using Model::forward;
  void forward(const model::Forward& pass, int member) override {
    const bool slab = pass.lane == model::Lane::kSlab;
    uint64_t* const states = states_.data() + (slab ? fake_.rows_max : 0);
    const model::Batch& batch = pass.batch;
    // Sometimes member 0 publishes and plans before it stores, sometimes after: both are allowed.
    const bool plan_first = batch.rows() % 2 == 0;
    if (pass.begin == 0) {
      if (on_forward) on_forward(member);
      if (member == 0) check(batch, slab ? fake_.slab_rows : fake_.rows_max);
      if (member == 0 && plan_first) meet(pass.sink);
    }
    if (pass.begin <= 1 && pass.end > 1)
      for (int32_t i; (i = pass.team.claim()) < std::ssize(batch.slices);)
        store(batch, batch.slices[static_cast<size_t>(i)], pass.kv, states);
    if (pass.begin == 0 && member == 0 && !plan_first) meet(pass.sink);
    pass.team.barrier(member);
    if (pass.end == kSublayers) answer(pass, states, member);
  }

  bool has_states() const { return fake_.states; }
  int64_t rows() const { return rows_; }
  int64_t steps() const { return steps_; }
  int32_t most_rows() const { return most_rows_; }
  // Called by every member, and on member 0, at the start of each pass.
  std::function<void(int)> on_forward;
  std::function<void(const model::Batch&)> on_batch;
  // Slices of which a pass says that they cannot be computed: what they leave is wrong. Any member
  // asks.
  std::function<bool(const model::BatchSlice&)> fails;
  // Slices whose logits and hidden states are no numbers.
  std::function<bool(const model::BatchSlice&)> without_numbers;
  // What files() says that weights are used from in place.
  std::vector<const FileView*> mapped;

 private:
  static void meet(model::RowSink& sink) {
    sink.while_beginning();
    sink.while_ending();
  }

  // What a sequence's slot holds.
  struct State {
    uint64_t hash = 0;
    int64_t tokens = 0;
  };

  // `states`: of each row.
  void answer(const model::Forward& pass, const uint64_t* states, int member) {
    const model::Batch& batch = pass.batch;
    if (member == 0 && fails)
      for (size_t i = 0; i < batch.slices.size(); ++i)
        if (fails(batch.slices[i])) pass.sink.on_failed(static_cast<int32_t>(i), "disk on fire");
    for (int32_t i; (i = pass.team.claim()) < std::ssize(batch.wanted);) {
      const model::Wanted& wanted = batch.wanted[static_cast<size_t>(i)];
      const model::BatchSlice& slice = batch.slices[static_cast<size_t>(wanted.slice)];
      const bool hidden = wanted.kind == model::Wanted::kHidden;
      const int32_t width = hidden ? fake_.hidden_size : fake_.vocab_size;
      const model::Rows rows = {
          .data = (hidden ? hidden_ : logits_).data() + int64_t{wanted.row_begin} * width,
          .count = wanted.rows,
          .width = width};
      for (int32_t r = 0; r < wanted.rows; ++r) {
        const int32_t row = wanted.row_begin + r;
        uint64_t hash = read(slice, batch.first(slice) + row - slice.row_begin, pass.kv);
        if (fake_.states) hash = mix(hash, states[row]);
        if (hidden)
          fill_hidden(hash, rows.row(r));
        else
          fill_logits(hash, rows.row(r));
        if (without_numbers && without_numbers(slice))
          std::ranges::fill(rows.row(r), std::numeric_limits<float>::quiet_NaN());
      }
      give(pass, i, wanted, rows, member);
    }
  }

  // As a model does: an entry at once, but scored rows one by one.
  static void give(const model::Forward& pass, int32_t entry, const model::Wanted& wanted,
                   const model::Rows& rows, int member) {
    if (wanted.kind != model::Wanted::kScore) return pass.sink.on_rows(entry, 0, rows, member);
    for (int32_t i = 0; i < rows.count; ++i)
      pass.sink.on_rows(entry, i, {rows.row(i).data(), 1, rows.width}, member);
  }

 public:
  // The length that rope uses at `position`, as far as it matters.
  int32_t rope_length(int32_t prompt_length, int32_t position) const {
    if (fake_.original_context == 0) return 0;
    return std::max({prompt_length, position + 1, fake_.original_context});
  }

  // What the row at `position` leaves in place of its token: of a text that.
  int32_t left_by(const RowContents& row, int32_t position) const {
    const bool turned =
        fake_.three_positions && row.turned != model::RopePosition{position, position, position};
    if (row.numbers.empty() && !turned && row.mask.end == 0) return row.token;
    uint64_t hash = row.numbers.empty() ? mix(1, static_cast<uint64_t>(row.token)) : 2;
    for (const float number : row.numbers) hash = mix(hash, std::bit_cast<uint32_t>(number));
    for (const int32_t axis : row.turned) hash = mix(hash, static_cast<uint64_t>(turned ? axis : 0));
    hash = mix(mix(hash, static_cast<uint64_t>(row.mask.begin)),
               static_cast<uint64_t>(row.mask.end));
    return static_cast<int32_t>(hash >> 34) + fake_.vocab_size;
  }

  // What the token at the end of `text` gives. `whole`: the hash of all of it.
  struct Cell {
    int32_t token = 0;
    int32_t length = 0;
  };
  static uint64_t add(uint64_t hash, const Cell& cell) {
    return mix(mix(hash, static_cast<uint64_t>(cell.token)), static_cast<uint64_t>(cell.length));
  }
  uint64_t hash_of(uint64_t whole, std::span<const Cell> text) const {
    uint64_t hash = fake_.whole_context ? whole : 0;
    for (const int32_t window : fake_.windows) {
      uint64_t part = 0;
      for (const Cell& cell : text.last(std::min(text.size(), static_cast<size_t>(window))))
        part = add(part, cell);
      hash = mix(hash, part);
    }
    return fake_.states ? mix(hash, whole) : hash;
  }

  void fill_logits(uint64_t hash, std::span<float> logits) const {
    for (size_t i = 0; i < logits.size(); ++i)
      logits[i] = static_cast<float>(mix(hash, i) % 4096) / 512.0f;
  }

  void fill_hidden(uint64_t hash, std::span<float> state) const {
    for (size_t i = 0; i < state.size(); ++i)
      state[i] = static_cast<float>(mix(hash, 1000 + i) % 4096) / 512.0f - 4;
  }

 private:
  static constexpr int32_t kSublayers = 3;

  int32_t layer_count() const {
    return static_cast<int32_t>(fake_.windows.size()) + (fake_.whole_context ? 1 : 0);
  }
  int32_t window_of(int32_t layer) const {
    if (fake_.whole_context && layer == 0) return 0;
    return fake_.windows[static_cast<size_t>(layer - (fake_.whole_context ? 1 : 0))];
  }

  static void* slot(const kv::KvCache& kv, int32_t layer, const model::BatchSlice& slice,
                    int32_t position, bool value) {
    const kernels::KvPages& pages = kv.layer(layer);
    const int32_t page = slice.memory.pages(kv.group_of(layer))[position / kernels::kPageTokens];
    const int32_t lane = position % kernels::kPageTokens + (value ? kernels::kPageTokens : 0);
    return pages.base + page * pages.page_bytes + lane * int64_t{sizeof(int32_t)};
  }

  RowContents contents(const model::Batch& batch, const model::BatchSlice& slice, int32_t row,
                       int32_t position) const {
    RowContents contents = {.turned = batch.rope_position(slice, row, position)};
    if (position >= slice.mask.begin && position < slice.mask.end) contents.mask = slice.mask;
    for (const model::VectorRows& part : batch.vectors) {
      if (row < part.row_begin || row >= part.row_begin + part.rows) continue;
      const int64_t at = int64_t{row - part.row_begin} * fake_.hidden_size;
      for (int64_t level = 0; level <= part.levels; ++level) {
        const float* const from = part.vectors + level * part.level_stride + at;
        contents.numbers.insert(contents.numbers.end(), from, from + fake_.hidden_size);
      }
      return contents;
    }
    contents.token = batch.token_of(row);
    return contents;
  }

  void store(const model::Batch& batch, const model::BatchSlice& slice, const kv::KvCache& kv,
             uint64_t* states) const {
    const auto slot_state = [&](int32_t slot) { return kv.state(layer_count(), slot); };
    const kv::MemoryView& memory = slice.memory;
    const int32_t from = memory.restored_from >= 0 ? memory.restored_from : memory.state;
    const int32_t first = batch.first(slice);
    State state;
    if (fake_.states && first > 0) std::memcpy(&state, slot_state(from), sizeof state);
    const int32_t replays = fake_.states ? batch.replays_of(slice) : 0;
    CHECK(!fake_.states || state.tokens == first - replays);
    std::span<const kv::StateMark> marks = slice.memory.marks;
    const auto take = [&](const Cell& cell) {
      state = {.hash = add(state.hash, cell), .tokens = state.tokens + 1};
      if (marks.empty() || marks.front().position != state.tokens) return;
      std::memcpy(slot_state(marks.front().slot), &state, sizeof state);
      marks = marks.subspan(1);
    };
    const auto tape = [&](int32_t token) {
      return kv.tape(layer_count(), slice.memory.state, token);
    };
    for (int32_t i = 0; i < replays; ++i) {
      Cell cell;
      std::memcpy(&cell, tape(i), sizeof cell);
      take(cell);
    }
    const int32_t certain = slice.rows - slice.drafts;
    for (int32_t i = 0; i < slice.rows; ++i) {
      const int32_t position = first + i;
      int32_t token = left_by(contents(batch, slice, slice.row_begin + i, position), position);
      if (fails && fails(slice)) token = -1;
      const int32_t length = rope_length(slice.prompt_length, position);
      for (int32_t layer = 0; layer < layer_count() && position >= slice.memory.kept; ++layer) {
        std::memcpy(slot(kv, layer, slice, position, false), &token, sizeof token);
        std::memcpy(slot(kv, layer, slice, position, true), &length, sizeof length);
      }
      const Cell cell = {token, length};
      if (fake_.states && i >= certain) {
        CHECK(i - certain < kv.tape_tokens());
        std::memcpy(tape(i - certain), &cell, sizeof cell);
      }
      take(cell);
      states[slice.row_begin + i] = state.hash;
      if (fake_.states && i + 1 == certain) {
        CHECK(marks.empty());
        std::memcpy(slot_state(slice.memory.state), &state, sizeof state);
      }
    }
  }

  uint64_t read(const model::BatchSlice& slice, int32_t last, const kv::KvCache& kv) const {
    uint64_t hash = 0;
    for (int32_t layer = 0; layer < layer_count(); ++layer) {
      const int32_t window = window_of(layer);
      uint64_t part = 0;
      for (int32_t i = window == 0 ? 0 : std::max(0, last - window + 1); i <= last; ++i) {
        Cell cell;
        std::memcpy(&cell.token, slot(kv, layer, slice, i, false), sizeof cell.token);
        std::memcpy(&cell.length, slot(kv, layer, slice, i, true), sizeof cell.length);
        part = add(part, cell);
      }
      hash = window == 0 ? part : mix(hash, part);
    }
    return hash;
  }

  void check(const model::Batch& batch, int32_t rows_max) {
    CHECK(!batch.tokens.empty() && std::ssize(batch.tokens) <= rows_max);
    int32_t row = 0;
    for (const model::BatchSlice& slice : batch.slices) {
      CHECK(slice.row_begin == row && slice.rows > 0 && slice.memory.tables != nullptr);
      CHECK(slice.first_position >= 0 && slice.prompt_length > 0);
      CHECK(batch.first(slice) + slice.rows <= fake_.context_max);
      CHECK(slice.mask.end == 0 || slice.first_position + slice.rows >= slice.mask.end);
      row += slice.rows;
    }
    CHECK(row == batch.rows());
    int32_t wanted_end = 0;
    for (const model::Wanted& wanted : batch.wanted) {
      const model::BatchSlice& slice = batch.slices[static_cast<size_t>(wanted.slice)];
      CHECK(wanted.rows > 0 && wanted.row_begin >= wanted_end);
      wanted_end = wanted.row_begin + wanted.rows;
      CHECK(wanted.row_begin >= slice.row_begin && wanted_end <= slice.row_begin + slice.rows);
    }
    rows_ += row;
    most_rows_ = std::max(most_rows_, row);
    ++steps_;
    if (on_batch) on_batch(batch);
  }

  const Options fake_;
  std::vector<float> logits_;
  std::vector<float> hidden_;
  std::vector<uint64_t> states_;  // By row: after its token. Those of a slab come after the others.
  int64_t rows_ = 0;
  int64_t steps_ = 0;
  int32_t most_rows_ = 0;
};

struct Answer {
  std::vector<TokenLogprob> tokens;
  std::vector<TokenLogprob> tops;
  FinishReason reason = FinishReason::kNone;
};

// What the request must give, whatever runs beside it. `matcher`: the position that it began with.
// `rows`: of its prompt, what they begin with; empty: their tokens.
inline Answer reference_answer(const FakeModel& model, const Request& request,
                               std::unique_ptr<grammar::Matcher> matcher = nullptr,
                               const std::vector<RowContents>& rows = {}) {
  const int32_t vocab = model.spec().vocab_size;
  sample::Sampler sampler(request.sampling, request.prompt, vocab, request.max_tokens);
  sampler.constrain(std::move(matcher));
  sample::SamplerScratch scratch(vocab);
  std::vector<float> logits(static_cast<size_t>(vocab));
  const auto prompt_length = static_cast<int32_t>(request.prompt.size());
  uint64_t whole = 0;
  std::vector<FakeModel::Cell> text;
  const int32_t shift = rows.empty() ? 0 : rows.back().turned[0] + 1 - prompt_length;
  const auto add = [&](int32_t token) {
    const auto position = static_cast<int32_t>(text.size());
    const int32_t shifted = position + shift;
    RowContents row = {.token = token, .turned = {shifted, shifted, shifted}};
    if (position < std::ssize(rows)) row = rows[static_cast<size_t>(position)];
    text.push_back({model.left_by(row, position), model.rope_length(prompt_length, position)});
    whole = FakeModel::add(whole, text.back());
  };
  for (const int32_t token : request.prompt) add(token);
  Answer answer;
  while (std::ssize(answer.tokens) < request.max_tokens) {
    model.fill_logits(model.hash_of(whole, text), logits);
    const sample::SampledToken token =
        sampler.sample(logits, static_cast<int32_t>(answer.tokens.size()), request.want_logprobs,
                       test_ops(), scratch);
    if (std::ranges::count(request.sampling.stop_token_ids, token.chosen.token) > 0) {
      answer.reason = FinishReason::kStop;
      return answer;
    }
    if (token.continuation == sample::Continuation::kStuck) {
      answer.reason = FinishReason::kError;
      return answer;
    }
    answer.tokens.push_back(token.chosen);
    answer.tops.insert(answer.tops.end(), token.top.begin(), token.top.end());
    add(token.chosen.token);
    for (const int32_t forced : token.forced) {
      answer.tokens.push_back({.token = forced});
      add(forced);
    }
    if (token.continuation == sample::Continuation::kComplete) {
      answer.reason = FinishReason::kStop;
      return answer;
    }
  }
  answer.reason = FinishReason::kLength;
  return answer;
}

inline bool same_bits(const TokenLogprob& a, const TokenLogprob& b) {
  return a.token == b.token &&
         std::bit_cast<uint32_t>(a.logprob) == std::bit_cast<uint32_t>(b.logprob);
}

// True if `request` has got exactly this answer, or the beginning of it if it was cancelled.
inline bool has_answer(const Request& request, const Answer& answer) {
  const bool cut = request.log.finish_reason() == FinishReason::kCancelled;
  const int32_t size = request.log.size();
  if (!cut && request.log.finish_reason() != answer.reason) return false;
  if (cut ? size > std::ssize(answer.tokens) : size != std::ssize(answer.tokens)) return false;
  const int32_t tops = request.log.top_count();
  for (int32_t i = 0; i < size; ++i) {
    if (!same_bits(request.log[i], answer.tokens[static_cast<size_t>(i)])) return false;
    for (int32_t t = 0; t < tops; ++t) {
      const TokenLogprob expected = answer.tops[static_cast<size_t>(i * tops + t)];
      if (!same_bits(request.log.top(i)[static_cast<size_t>(t)], expected)) return false;
    }
  }
  return true;
}

}  // namespace weir::sched
