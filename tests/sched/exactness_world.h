// ExactnessWorld: a real model, requests, and what each of them gets alone; then the same requests
// together, in any way, which must get the same tokens and log-probabilities to the last bit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "sched/engine_runner.h"

namespace weir::sched {

using Requests = std::vector<std::unique_ptr<Request>>;

// Which requests a world makes.
struct RequestKinds {
  int32_t count = 64;
  int32_t shared = 130;              // A third of the prompts begin with the same so many tokens,
  int32_t long_own = 300, own = 60;  // and have so many of their own at most, one in eight or all.
  int32_t answer = 40;               // Tokens at most.
};

// Prompts of 3 tokens and more, of which a third begin alike; greedy and seeded, some with
// penalties.
inline Requests make_requests(const RequestKinds& kinds, int32_t vocab_size) {
  std::mt19937 rng(20261121);
  const auto below = [&](int32_t bound) {
    return static_cast<int32_t>(rng() % static_cast<unsigned>(bound));
  };
  std::vector<int32_t> shared(static_cast<size_t>(kinds.shared));
  for (int32_t& token : shared) token = below(vocab_size);
  Requests requests;
  for (int32_t i = 0; i < kinds.count; ++i) {
    const int32_t own = 3 + below(i % 8 == 0 ? kinds.long_own : kinds.own);
    std::vector<int32_t> prompt(static_cast<size_t>(own));
    for (int32_t& token : prompt) token = below(vocab_size);
    if (i % 3 == 0) prompt.insert(prompt.begin(), shared.begin(), shared.end());
    sample::SamplingParams params;
    params.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    params.top_p = i % 4 == 1 ? 0.9f : 1.0f;
    params.repetition_penalty = i % 5 == 0 ? 1.1f : 1.0f;
    params.top_logprobs = i % 4 == 0 ? 4 : 0;
    params.seed = static_cast<uint64_t>(i) * 77;
    const int32_t max_tokens = 1 + below(kinds.answer);
    requests.push_back(
        std::make_unique<Request>(std::move(prompt), params, max_tokens, /*logprobs=*/true));
    requests.back()->arrived = Clock::now();
    requests.back()->id = static_cast<uint64_t>(i);
  }
  return requests;
}

class ExactnessWorld {
 public:
  // `always`: what is done with each request, also with those that run alone, if anything.
  ExactnessWorld(std::unique_ptr<model::Model> model, const kernels::Ops& ops, int members,
                 RequestKinds kinds, std::optional<kv::Format> format = {},
                 std::function<void(Request&)> always = {})
      : kinds_(kinds),
        always_(std::move(always)),
        members_(members),
        ops_(ops),
        model_(std::move(model)),
        format_(format.value_or(model_->options().compute == model::Compute::kExact
                                    ? kv::Format::kF32
                                    : kv::Format::kF16)) {
    RunnerOptions alone = options(/*page_count=*/64, /*prefix_cache=*/false);
    alone.engine.running_max = 1;
    alone.keeps_all = true;
    expected_ = run(alone);
  }

  RunnerOptions options(int32_t page_count, bool prefix_cache) const {
    RunnerOptions options;
    options.engine.step_tokens_max = model_->options().rows_max;
    options.engine.prefix_cache = prefix_cache;
    options.page_count = page_count;
    options.members = members_;
    options.kv_format = format_;
    return options;
  }

  // Submits all at once; with running_max 1 each runs alone. `callers`: one in so many is another
  // caller's; 0: none is. `prepare`: what is done with each before, if anything. `beside`: what runs
  // with them; it is finished then.
  Requests run(RunnerOptions options, size_t callers = 0,
               const std::function<void(Request&)>& prepare = {}, const Requests& beside = {}) {
    options.held = true;
    Requests requests = make_requests(kinds_, model_->spec().vocab_size);
    for (const auto& request : requests) {
      if (always_) always_(*request);
      if (prepare) prepare(*request);
    }
    for (size_t i = 0; callers > 0 && i < requests.size(); i += callers)
      requests[i]->caller = i + 1;
    EngineRunner runner(*model_, ops_, options);
    for (size_t i = 0; i < std::max(requests.size(), beside.size()); ++i) {
      if (i < beside.size()) submit(runner, *beside[i]);
      if (i < requests.size()) submit(runner, *requests[i]);
    }
    runner.begin();
    for (const Requests* all : {&std::as_const(requests), &beside})
      for (const auto& request : *all) runner.wait(*request);
    runner.stop();
    preemptions_ = runner.handle().stats().preemptions.value();
    hits_ = runner.handle().stats().prefix_hits.value();
    steps_ = runner.handle().stats().steps.value();
    drafts_ = runner.handle().stats().drafts.value();
    drafts_right_ = runner.handle().stats().drafts_taken.value();
    return requests;
  }

  void expect_equal(const Requests& requests) const {
    for (size_t i = 0; i < requests.size(); ++i) {
      const TokenLog& log = requests[i]->log;
      const TokenLog& expected = expected_[i]->log;
      ASSERT_EQ(log.size(), expected.size()) << "request " << i;
      ASSERT_EQ(log.finish_reason(), expected.finish_reason()) << "request " << i;
      for (int32_t t = 0; t < log.size(); ++t) {
        ASSERT_TRUE(same(log[t], expected[t])) << "request " << i << " token " << t;
        for (size_t k = 0; k < static_cast<size_t>(log.top_count()); ++k)
          ASSERT_TRUE(same(log.top(t)[k], expected.top(t)[k])) << "request " << i << " token " << t;
      }
    }
  }

  model::Model& model() { return *model_; }
  const Requests& expected() const { return expected_; }
  // Of the last run.
  uint64_t preemptions() const { return preemptions_; }
  uint64_t hits() const { return hits_; }
  uint64_t steps() const { return steps_; }
  uint64_t drafts() const { return drafts_; }
  uint64_t drafts_right() const { return drafts_right_; }
  // The tokens of each answer.
  std::vector<std::vector<int32_t>> answers() const {
    std::vector<std::vector<int32_t>> answers;
    for (const auto& request : expected_) {
      std::vector<int32_t>& answer = answers.emplace_back();
      for (int32_t t = 0; t < request->log.size(); ++t) answer.push_back(request->log[t].token);
    }
    return answers;
  }

 private:
  static void submit(EngineRunner& runner, Request& request) {
    const Result<void> submitted = runner.handle().submit(&request);
    EXPECT_TRUE(submitted) << submitted.error().message;
  }
  static bool same(const TokenLogprob& a, const TokenLogprob& b) {
    return a.token == b.token &&
           std::bit_cast<uint32_t>(a.logprob) == std::bit_cast<uint32_t>(b.logprob);
  }

  const RequestKinds kinds_;
  const std::function<void(Request&)> always_;
  const int members_;
  const kernels::Ops& ops_;
  std::unique_ptr<model::Model> model_;
  const kv::Format format_;
  Requests expected_;
  uint64_t preemptions_ = 0, hits_ = 0, steps_ = 0, drafts_ = 0, drafts_right_ = 0;
};

}  // namespace weir::sched
