// Session: a few sequences run directly on a model, without scheduler, prefix cache or sampling:
// for weir-check, `weir perplexity` and tests. The caller decides what each pass computes; the
// session keeps positions and pages.
//
// Threads: the thread that built the team; logits arrive on any member.
// Invariants: sequence s owns pages [s * pages, (s + 1) * pages) of its cache; what lies at
// positions [0, length(s)) is computed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "kv/kv_cache.h"
#include "model/batch_builder.h"
#include "model/model.h"

namespace weir::model {

class Session {
 public:
  struct Options {
    int32_t sequences = 1;
    int32_t tokens_max = 0;  // Of one sequence; 0: the model's context.
    kv::Format kv_format = {};
  };
  // Consecutive tokens of one sequence.
  struct Slice {
    int32_t sequence = 0;
    std::span<const int32_t> tokens;
    bool all_logits = false;  // Of every token; false: of the last one.
    // [tokens.size(), hidden_size]: what the rows begin with in place of the tokens, which mean
    // nothing then. Empty: the tokens' embeddings.
    std::span<const float> vectors = {};
    // By token: the one vector that its row begins with, or null for its embedding. Empty: none of
    // it.
    std::span<const VectorRows> rows = {};
    // By token, what its angles are those of; empty: of its position and so much more.
    std::span<const RopePosition> rope_positions = {};
    int32_t rope_shift = 0;
    Mask mask = {};
    const Adapter* adapter = nullptr;  // As BatchSlice::adapter.

    int32_t count() const { return static_cast<int32_t>(tokens.size()); }
  };
  // The logits that follow token `token` of slice `slice`. Called on any member, for different
  // tokens at once; the span may be overwritten and is void after the return.
  using OnLogits = std::function<void(size_t slice, size_t token, std::span<float> logits)>;

  static Result<Session> create(Model& model, ThreadTeam& team, const Options& options);

  // Forgets a sequence's tokens. `prompt_length`: how many tokens its prompt will have in all;
  // later ones count as generated.
  void begin(int32_t sequence, int32_t prompt_length);
  // What the sequence's tokens attend to from here on, of a model with cross attention: the encoder's
  // rows, [cross_rows(), hidden_size].
  void hear(int32_t sequence, std::span<const float> rows);
  // One forward pass, or two where tokens of a prompt and tokens after it are given at once.
  // REQUIRES: each sequence in one slice at most, and no more tokens in all than
  // the model's rows_max; no sequence longer than tokens_max.
  void forward(std::span<const Slice> slices, const OnLogits& on_logits);

  int32_t length(int32_t sequence) const {
    return sequences_[static_cast<size_t>(sequence)].length;
  }
  int64_t kv_bytes() const { return cache_.bytes(); }

 private:
  struct Sequence {
    int32_t length = 0;
    int32_t prompt_length = 0;
    std::vector<int32_t> pages;
  };

  class Collector;

  Session(Model& model, ThreadTeam& team, kv::KvCache cache)
      : model_(&model), team_(&team), cache_(std::move(cache)) {}
  int32_t of_prompt(const Slice& slice) const;
  bool add(const Slice& slice, int32_t begin, int32_t end);

  Model* model_;
  ThreadTeam* team_;
  kv::KvCache cache_;
  std::vector<Sequence> sequences_;
  BatchBuilder batch_;
};

}  // namespace weir::model
