// FakeModel: a Model whose logits are a hash of the sequence's tokens, as it finds them in the KV
// pages. A wrong page, a page written too early or too late, a stale placeholder or a row in the
// wrong place gives other tokens. reference_answer() computes the same from the tokens alone.
//
// Keys hold the token, values hold the length that a length-dependent rope would have used. Layers
// with a window add a hash of what they see, each from pages of its own, and a state adds one of
// all tokens, which it takes in one by one: a stale slot, or another's, or a checkpoint that is not
// of these tokens, is found out.
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
    spec_.sublayers.push_back({.op = attention});
    options_.rows_max = options.rows_max;
    options_.context_max = options.context_max;
    options_.slab_rows = options.slab_rows;
    logits_.assign(static_cast<size_t>(kSamplesMax) * static_cast<size_t>(options.vocab_size), 0);
    hidden_.assign(static_cast<size_t>(options.rows_max) * static_cast<size_t>(options.hidden_size),
                   0);
    states_.assign(static_cast<size_t>(options.rows_max + options.slab_rows), 0);
  }

  const model::ModelSpec& spec() const override { return spec_; }
  const model::ModelOptions& options() const override { return options_; }
  model::ModelMemory memory() const override { return {}; }
  int32_t context_max() const override { return fake_.context_max; }
  std::span<const FileView* const> mapped_files() const override { return files; }
  int64_t weight_bytes_per_token() const override { return 0; }
  int64_t macs_per_token() const override { return 0; }
  std::vector<kv::MemoryNeed> memory_needs() const override {
    std::vector<kv::MemoryNeed> needs;
    for (int32_t layer = 0; layer < layer_count(); ++layer)
      needs.push_back(kv::PagedNeed{.heads = 1,
                                    .k_dim = fake_.kv_width,
                                    .v_dim = fake_.kv_width,
                                    .window = window_of(layer)});
    if (fake_.states) needs.push_back(kv::StateNeed{sizeof(State)});
    return needs;
  }

  void forward(const model::Batch& batch, const kv::KvCache& kv, model::ForwardClient& client,
               ThreadTeam& team, int member) override {
    if (on_forward) on_forward(member);
    if (member == 0) check(batch, fake_.rows_max);
    // Sometimes member 0 plans before it stores, sometimes after: both are allowed.
    const bool plan_first = batch.tokens.size() % 2 == 0;
    if (member == 0 && plan_first) client.while_computing();
    for (int32_t i; (i = team.claim()) < std::ssize(batch.slices);)
      store(batch, batch.slices[static_cast<size_t>(i)], kv, states_.data());
    if (member == 0 && !plan_first) client.while_computing();
    team.barrier(member);
    answer(batch, kv, states_.data(), client, team, member);
  }

  // Keys are written in the second of three steps, read in the last: who writes to the slab's pages
  // meanwhile, or reads them, is found out.
  int32_t slab_steps() const override { return 3; }
  void forward_slab(const model::Batch& batch, const kv::KvCache& kv, model::ForwardClient& client,
                    ThreadTeam& team, int member, int32_t step) override {
    if (member == 0 && step == 0) check(batch, fake_.slab_rows);
    uint64_t* const states = states_.data() + fake_.rows_max;
    if (step == 1)
      for (int32_t i; (i = team.claim()) < std::ssize(batch.slices);)
        store(batch, batch.slices[static_cast<size_t>(i)], kv, states);
    if (step == 2) answer(batch, kv, states, client, team, member);
  }

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
  // What mapped_files() says.
  std::vector<const FileView*> files;

 private:
  // What a sequence's slot holds.
  struct State {
    uint64_t hash = 0;
    int64_t tokens = 0;
  };

  // `states`: of each row.
  void answer(const model::Batch& batch, const kv::KvCache& kv, const uint64_t* states,
              model::ForwardClient& client, ThreadTeam& team, int member) {
    if (member == 0 && fails)
      for (size_t i = 0; i < batch.slices.size(); ++i)
        if (fails(batch.slices[i])) client.on_failed(static_cast<int32_t>(i), "disk on fire");
    const auto slice_of = [&](int32_t row) {
      return std::ranges::find_if(batch.slices, [row](const model::BatchSlice& s) {
        return row >= s.row_begin && row < s.row_begin + s.rows;
      });
    };
    const auto hash_of = [&](int32_t row) {
      const auto slice = slice_of(row);
      const uint64_t hash = read(*slice, slice->first_position + row - slice->row_begin, kv);
      return fake_.states ? mix(hash, states[row]) : hash;
    };
    const auto spoil = [&](int32_t row, std::span<float> numbers) {
      if (without_numbers && without_numbers(*slice_of(row)))
        std::ranges::fill(numbers, std::numeric_limits<float>::quiet_NaN());
    };
    const auto samples = static_cast<int32_t>(batch.sample_rows.size());
    for (int32_t i; (i = team.claim()) < samples + std::ssize(batch.hidden_rows);) {
      if (i >= samples) {
        give_hidden(batch, i - samples, hash_of, spoil, client, member);
        continue;
      }
      const std::span<float> logits = std::span(logits_).subspan(
          static_cast<size_t>(i * fake_.vocab_size), static_cast<size_t>(fake_.vocab_size));
      const int32_t row = batch.sample_rows[static_cast<size_t>(i)];
      fill_logits(hash_of(row), logits);
      spoil(row, logits);
      client.on_logits(i, logits, member);
    }
  }

 public:
  // The length that rope uses at `position`, as far as it matters.
  int32_t rope_length(int32_t prompt_length, int32_t position) const {
    if (fake_.original_context == 0) return 0;
    return std::max({prompt_length, position + 1, fake_.original_context});
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
  static constexpr int32_t kSamplesMax = 512;

  template <class HashOf, class Spoil>
  void give_hidden(const model::Batch& batch, int32_t index, const HashOf& hash_of,
                   const Spoil& spoil, model::ForwardClient& client, int member) {
    const model::HiddenRows& part = batch.hidden_rows[static_cast<size_t>(index)];
    const auto width = static_cast<size_t>(fake_.hidden_size);
    const std::span<float> states = std::span(hidden_).subspan(
        static_cast<size_t>(part.row_begin) * width, static_cast<size_t>(part.rows) * width);
    for (int32_t i = 0; i < part.rows; ++i)
      fill_hidden(hash_of(part.row_begin + i),
                  states.subspan(static_cast<size_t>(i) * width, width));
    spoil(part.row_begin, states);
    client.on_hidden(index, states, member);
  }

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

  void store(const model::Batch& batch, const model::BatchSlice& slice, const kv::KvCache& kv,
             uint64_t* states) const {
    const auto slot_state = [&](int32_t slot) { return kv.state(layer_count(), slot); };
    const kv::MemoryView& memory = slice.memory;
    const int32_t from = memory.restored_from >= 0 ? memory.restored_from : memory.state;
    State state;
    if (fake_.states && slice.first_position > 0)
      std::memcpy(&state, slot_state(from), sizeof state);
    CHECK(!fake_.states || state.tokens == slice.first_position);
    std::span<const kv::StateMark> marks = slice.memory.marks;
    for (int32_t i = 0; i < slice.rows; ++i) {
      int32_t token = batch.tokens[static_cast<size_t>(slice.row_begin + i)];
      if (token < 0) token = batch.sampled[-token - 1];
      if (fails && fails(slice)) token = -1;
      const int32_t position = slice.first_position + i;
      const int32_t length = rope_length(slice.prompt_length, position);
      for (int32_t layer = 0; layer < layer_count() && position >= slice.memory.kept; ++layer) {
        std::memcpy(slot(kv, layer, slice, position, false), &token, sizeof token);
        std::memcpy(slot(kv, layer, slice, position, true), &length, sizeof length);
      }
      state = {.hash = add(state.hash, {token, length}), .tokens = position + 1};
      states[slice.row_begin + i] = state.hash;
      if (marks.empty() || marks.front().position != position + 1) continue;
      std::memcpy(slot_state(marks.front().slot), &state, sizeof state);
      marks = marks.subspan(1);
    }
    CHECK(marks.empty());
    if (fake_.states) std::memcpy(slot_state(slice.memory.state), &state, sizeof state);
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
    CHECK(std::ssize(batch.sample_rows) <= kSamplesMax);
    int32_t row = 0;
    for (const model::BatchSlice& slice : batch.slices) {
      CHECK(slice.row_begin == row && slice.rows > 0 && slice.memory.tables != nullptr);
      CHECK(slice.first_position >= 0 && slice.prompt_length > 0);
      CHECK(slice.first_position + slice.rows <= fake_.context_max);
      row += slice.rows;
    }
    CHECK(row == std::ssize(batch.tokens));
    CHECK(std::ranges::is_sorted(batch.sample_rows, std::less_equal<>()));
    int32_t hidden_end = 0;
    for (const model::HiddenRows& part : batch.hidden_rows) {
      CHECK(part.rows > 0 && part.row_begin >= hidden_end);
      hidden_end = part.row_begin + part.rows;
    }
    CHECK(hidden_end <= row);
    rows_ += row;
    most_rows_ = std::max(most_rows_, row);
    ++steps_;
    if (on_batch) on_batch(batch);
  }

  const Options fake_;
  model::ModelSpec spec_;
  model::ModelOptions options_;
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
inline Answer reference_answer(const FakeModel& model, const Request& request,
                               std::unique_ptr<sample::grammar::Matcher> matcher = nullptr) {
  const int32_t vocab = model.spec().vocab_size;
  sample::Sampler sampler(request.sampling, request.prompt, vocab, request.max_tokens);
  sampler.constrain(std::move(matcher));
  sample::SamplerScratch scratch(vocab);
  std::vector<float> logits(static_cast<size_t>(vocab));
  const auto prompt_length = static_cast<int32_t>(request.prompt.size());
  uint64_t whole = 0;
  std::vector<FakeModel::Cell> text;
  const auto add = [&](int32_t token) {
    const auto position = static_cast<int32_t>(text.size());
    text.push_back({token, model.rope_length(prompt_length, position)});
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
