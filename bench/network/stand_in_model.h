// StandInModel: takes no time to compute, but lets each step begin no sooner than a period after
// the one before. From the sampler on everything is the real thing: engine, token logs, text,
// events, sockets.
//
// Threads: as model::Model, on a team of one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace weir::bench {

class StandInModel final : public model::Model {
 public:
  static constexpr int32_t kRowsMax = 2048;
  static constexpr int32_t kContextMax = 4096;

  // Says tokens of `tokenizer` at random, but only such as are whole characters: each is an event.
  StandInModel(const text::Tokenizer& tokenizer, int64_t period_us) : period_(period_us) {
    spec_.vocab_size = tokenizer.vocab_size();
    spec_.context_max = options_.context_max = kContextMax;
    options_.rows_max = kRowsMax;
    spec_.sublayers.push_back({.op = model::Attention{}});
    needs_ = {kv::PagedNeed{.heads = 1, .k_dim = 1, .v_dim = 1}};
    logits_.resize(static_cast<size_t>(spec_.vocab_size));
    for (int32_t id = 0; id < spec_.vocab_size; ++id)
      if (!tokenizer.piece(id).empty() && !tokenizer.is_special(id) &&
          valid_utf8(tokenizer.piece(id)))
        words_.push_back(id);
  }

  model::ModelMemory memory() const override { return {}; }
  model::TokenWork token_work() const override { return {}; }

  using Model::forward;
  void forward(const model::Forward& pass, int) override {
    const std::span<const model::Wanted> wanted = pass.batch.wanted;
    if (on_step) on_step(std::ssize(wanted), pass.batch.rows());
    const auto now = std::chrono::steady_clock::now();
    next_ = std::max(now, next_ + std::chrono::microseconds(period_));
    std::this_thread::sleep_until(next_);
    pass.sink.while_beginning();
    pass.sink.while_ending();
    for (int32_t i = 0; i < std::ssize(wanted); ++i) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator.
      const auto word = static_cast<size_t>(words_[(random_ >> 33) % words_.size()]);
      logits_[word] = 30;
      pass.sink.on_rows(i, 0, {logits_.data(), 1, spec_.vocab_size}, 0);
      logits_[word] = 0;
    }
  }

  // Called with a step's rows that are sampled, and all its rows, before it takes its time.
  std::function<void(int64_t samples, int64_t rows)> on_step;

 private:
  const int64_t period_;
  std::chrono::steady_clock::time_point next_;
  std::vector<float> logits_;
  std::vector<int32_t> words_;
  uint64_t random_ = 1;
};

}  // namespace weir::bench
