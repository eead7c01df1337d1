// Prompts of the fixtures with pictures or sounds, the answers that the reference recorded, and how
// an engine's are compared with them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "card/checkpoint.h"
#include "sched/engine_runner.h"
#include "sched/fake_encoder.h"

namespace weir::sched {

// Of the recorded greedy answers the best token leads by more than 0.08 everywhere.
inline constexpr double kBound = 2e-3;

template <class T>
std::vector<T> read_tensor(const card::Checkpoint& file, std::string_view name) {
  const card::StoredTensor* stored = file.find(name);
  EXPECT_NE(stored, nullptr) << name;
  if (stored == nullptr) return {};
  std::vector<T> values(static_cast<size_t>(stored->tensor.elements()));
  std::memcpy(values.data(), stored->tensor.data, values.size() * sizeof(T));
  return values;
}

// A prompt with its media, and the recorded answer.
struct Recorded {
  PicturePrompt prompt;
  std::vector<int64_t> greedy;
  std::vector<float> logits, greedy_logits;  // [tokens, vocab]
  std::vector<float> features;               // Of all media; empty: none are recorded.
};

// The reference was given its processor's numbers rounded to multiples of 2^-13.
inline void as_given(std::vector<float>& numbers) {
  for (float& number : numbers) number = std::nearbyint(number * 0x1p13f) * 0x1p-13f;
}

// Fills the prompt's tokens and the answer. Returns the ids as they were recorded: of `vocab` or
// more only placeholders are.
inline std::vector<int64_t> open_answer(const card::Checkpoint& file, int32_t vocab,
                                        Recorded& out) {
  const std::vector<int64_t> ids = read_tensor<int64_t>(file, "input_ids");
  out.greedy = read_tensor<int64_t>(file, "gen_ids");
  out.logits = read_tensor<float>(file, "logits");
  out.greedy_logits = read_tensor<float>(file, "gen_logits");
  for (const int64_t id : ids)
    out.prompt.tokens.push_back(id < vocab ? static_cast<int32_t>(id) : 0);
  return ids;
}

inline double logprob(std::span<const float> logits, size_t vocab, size_t row, int64_t token) {
  const std::span<const float> of = logits.subspan(row * vocab, vocab);
  const float largest = *std::ranges::max_element(of);
  double sum = 0;
  for (const float logit : of) sum += std::exp(static_cast<double>(logit - largest));
  return of[static_cast<size_t>(token)] - largest - std::log(sum);
}

inline std::unique_ptr<Request> greedy_request(const PicturePrompt& prompt, int32_t max_tokens,
                                               bool scored = false) {
  sample::SamplingParams greedy;
  greedy.temperature = 0;
  auto request = prompt.request(greedy, max_tokens);
  if (scored)
    request->prompt_log =
        std::make_unique<TokenLog>(static_cast<int32_t>(prompt.tokens.size()) - 1, 0);
  return request;
}

inline void expect_same_bits(const TokenLog& found, const TokenLog& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (int32_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(same_bits(found[i], expected[i])) << "token " << i;
}

inline void compare(const Recorded& recorded, const Request& request) {
  const auto& prompt = recorded.prompt.tokens;
  const size_t vocab = recorded.logits.size() / prompt.size();
  for (size_t i = 0; i + 1 < prompt.size(); ++i)
    EXPECT_NEAR((*request.prompt_log)[static_cast<int32_t>(i)].logprob,
                logprob(recorded.logits, vocab, i, prompt[i + 1]), kBound)
        << "after token " << i;
  ASSERT_EQ(request.log.size(), std::ssize(recorded.greedy));
  for (int32_t i = 0; i < request.log.size(); ++i) {
    const int64_t token = recorded.greedy[static_cast<size_t>(i)];
    EXPECT_EQ(request.log[i].token, token);
    EXPECT_NEAR(request.log[i].logprob,
                logprob(recorded.greedy_logits, vocab, static_cast<size_t>(i), token), kBound);
  }
}

// The same prompt within a text, which has it lie otherwise in pages.
inline PicturePrompt within_text(const PicturePrompt& prompt) {
  const std::vector<int32_t> text = {9, 8, 7, 6, 5, 4, 3, 10, 11, 12, 13};
  PicturePrompt out = prompt;
  out.tokens.insert(out.tokens.begin(), text.begin(), text.end());
  for (Medium& medium : out.media.items) {
    medium.first += static_cast<int32_t>(text.size());
    for (FeatureRun& run : medium.runs) run.first += static_cast<int32_t>(text.size());
  }
  out.add_text(text);
  return out;
}

inline void run(EngineRunner& runner, Request& request) {
  const Result<void> submitted = runner.handle().submit(&request);
  ASSERT_TRUE(submitted) << submitted.error().message;
  runner.wait(request);
}

// The medium's tokens are the next `count` that are placeholders, from `at` on.
inline void place(Medium& medium, const std::vector<int64_t>& ids, int64_t placeholder,
                  int64_t count, size_t& at) {
  std::vector<FeatureRun>& runs = medium.runs;
  for (; count > 0; ++at) {
    if (ids.at(at) != placeholder) continue;
    const auto token = static_cast<int32_t>(at);
    if (runs.empty() || runs.back().first + runs.back().count != token) runs.push_back({token, 0});
    ++runs.back().count;
    --count;
  }
  medium.first = runs.front().first;
  medium.tokens = static_cast<int32_t>(at) - medium.first;
}

// The recorded answer; and to the last bit the same alone, among others, in pieces, and from the
// caches. `encoded`: how many media of the prompt's kind were.
inline void expect_recorded_answer(model::Model& model, const kernels::Ops& ops,
                                   RunnerOptions options, const Recorded& recorded,
                                   uint64_t (*encoded)(const EngineStats&)) {
  const PicturePrompt& prompt = recorded.prompt;
  const PicturePrompt later = within_text(prompt);
  const auto media = static_cast<uint64_t>(prompt.media.items.size());

  auto alone = greedy_request(prompt, 16, /*scored=*/true);
  auto later_alone = greedy_request(later, 24);
  {
    options.engine.prefix_cache = false;
    EngineRunner runner(model, ops, options);
    run(runner, *alone);
    run(runner, *later_alone);
    EXPECT_EQ(encoded(runner.handle().stats()), media);
  }
  compare(recorded, *alone);

  // Among others, in pieces; then once more, from the cache.
  options.engine.prefix_cache = true;
  options.engine.step_tokens_max = 21;
  options.held = true;
  EngineRunner runner(model, ops, options);
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 8; ++i) {
    PicturePrompt other = i % 2 == 0 ? prompt : PicturePrompt();
    other.add_text(std::vector<int32_t>(static_cast<size_t>(3 + 5 * i), 20 + i));
    requests.push_back(greedy_request(other, 6 + i));
  }
  requests.push_back(greedy_request(prompt, 16, /*scored=*/true));
  requests.push_back(greedy_request(later, 24));
  for (const auto& request : requests) ASSERT_TRUE(runner.handle().submit(request.get()));
  runner.begin();
  for (const auto& request : requests) runner.wait(*request);
  expect_same_bits(requests[8]->log, alone->log);
  expect_same_bits(*requests[8]->prompt_log, *alone->prompt_log);
  expect_same_bits(requests[9]->log, later_alone->log);
  auto again = greedy_request(later, 24);
  run(runner, *again);
  expect_same_bits(again->log, later_alone->log);
  if (model.spec().both_ways != model::BothWays::kRuns) {  // Else a window may be too short.
    EXPECT_GT(again->cached_tokens, 0);
  }
  EXPECT_EQ(encoded(runner.handle().stats()), media);
}

}  // namespace weir::sched
