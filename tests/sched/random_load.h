// A random load on an engine with a fake model: requests of all kinds, submitted in bursts, some of
// them cancelled; every answer is compared with the one that the request gets alone.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "grammar/forced_tokens.h"
#include "grammar/source.h"
#include "sched/engine_runner.h"
#include "sched/fake_model.h"
#include "sched/made_up_drafts.h"

namespace weir::sched {

using Requests = std::vector<std::unique_ptr<Request>>;

inline sample::SamplingParams greedy(std::vector<int32_t> stop = {}) {
  sample::SamplingParams params;
  params.temperature = 0;
  params.stop_token_ids = std::move(stop);
  return params;
}

inline sample::SamplingParams seeded(uint64_t seed) {
  sample::SamplingParams params;
  params.seed = seed;
  return params;
}

inline std::unique_ptr<Request> make_request(std::vector<int32_t> prompt, int32_t max_tokens,
                                             sample::SamplingParams params = greedy(),
                                             bool logprobs = false) {
  auto request =
      std::make_unique<Request>(std::move(prompt), std::move(params), max_tokens, logprobs);
  request->arrived = Clock::now();
  return request;
}

inline std::vector<int32_t> random_tokens(std::mt19937& rng, int32_t count, int32_t vocab) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = static_cast<int32_t>(rng() % static_cast<unsigned>(vocab));
  return tokens;
}

// Of reasoning that the prompt has begun, with a closing of more or fewer tokens than a step
// forces.
inline std::shared_ptr<const sample::ReasoningLimit> random_limit(std::mt19937& rng) {
  sample::ReasoningLimit limit{.tokens_max = static_cast<int32_t>(rng() % 20),
                               .open = "<",
                               .close = ">",
                               .begun = true,
                               .closing = std::vector<int32_t>(rng() % 50 + 1, 7),
                               .text_of = [](int32_t token) -> std::string_view {
                                 return token == 7 ? "." : token == 9 ? ">" : "a";
                               }};
  limit.closing.push_back(9);
  return std::make_shared<const sample::ReasoningLimit>(std::move(limit));
}

// Greedy, seeded, penalised, with stop tokens and log-probabilities, in all mixtures.
inline sample::SamplingParams random_params(std::mt19937& rng) {
  sample::SamplingParams params;
  params.temperature = rng() % 2 == 0 ? 0.0f : 0.7f;
  params.seed = rng();
  if (rng() % 4 == 0) params.repetition_penalty = 1.2f;
  if (rng() % 4 == 0) params.frequency_penalty = 0.5f;
  if (rng() % 4 == 0) params.top_logprobs = 3;
  if (rng() % 2 == 0) params.stop_token_ids = {0, 5};
  if (rng() % 8 == 0) params.min_tokens = 9;
  if (rng() % 4 == 0) params.dry_multiplier = 0.8f;
  if (rng() % 4 == 0) params.xtc_probability = 0.5f;
  if (rng() % 4 == 0) params.repeat_last_n = 10;
  if (rng() % 4 == 0) params.reasoning = random_limit(rng);
  return params;
}

// Over the fake model's vocabulary, one letter a token: choices, and texts that leave none.
inline const grammar::Matcher& letters_grammar() {
  static const grammar::Matcher matcher = [] {
    std::vector<std::string> letters;
    for (char c = 'A'; c < 'A' + FakeModel::Options().vocab_size; ++c) letters.emplace_back(1, c);
    const auto trie = std::make_shared<const grammar::TokenTrie>(
        std::vector<std::string_view>(letters.begin(), letters.end()));
    auto automaton = grammar::compile(grammar::GrammarSource{
        .kind = grammar::GrammarSource::Kind::kRegex,
        .text = "((AB|C)DEFGHIJKLMNOPQRSTUVWXYZDEFGHIJKLMNOPQRSTUVW[A-F]{1,3}JKLMX?)*",
        .choices = {}});
    CHECK(automaton.has_value());
    grammar::add_forced_tokens(**automaton, *trie, [](std::string_view text) {
      std::vector<int32_t> tokens;
      for (const char c : text) tokens.push_back(c - 'A');
      return tokens;
    });
    return grammar::Matcher(std::move(*automaton), trie);
  }();
  return matcher;
}

struct LoadOptions {
  uint32_t seed = 1;
  int32_t requests = 200;
  int32_t prompt_max = 150;
  int32_t output_max = 60;
  int32_t cancel_one_in = 0;
  int32_t shared_prefixes = 3;  // Prompts begin with one of so many texts.
  int32_t bound_one_in = 0;     // To a grammar.
  int32_t callers = 1;
  // Steps have drafts, from none to seven of a request.
  std::optional<MadeUpDrafts::Way> drafts = {};
  bool measured_drafts = false;  // As many as pay, else all.
};

inline Requests random_load(const LoadOptions& options, int32_t vocab) {
  std::mt19937 rng(options.seed);
  std::vector<std::vector<int32_t>> prefixes;
  for (int32_t i = 0; i < options.shared_prefixes; ++i)
    prefixes.push_back(random_tokens(rng, options.prompt_max / 2, vocab));
  Requests requests;
  for (int32_t i = 0; i < options.requests; ++i) {
    const auto length = 1 + static_cast<int32_t>(rng() % static_cast<unsigned>(options.prompt_max));
    std::vector<int32_t> prompt = random_tokens(rng, length, vocab);
    if (rng() % 2 == 0) {
      const std::vector<int32_t>& prefix = prefixes[rng() % prefixes.size()];
      std::copy_n(prefix.begin(), std::min(prefix.size(), prompt.size()), prompt.begin());
    }
    const auto outputs =
        1 + static_cast<int32_t>(rng() % static_cast<unsigned>(options.output_max));
    requests.push_back(
        make_request(std::move(prompt), outputs, random_params(rng), rng() % 3 == 0));
    requests.back()->id = static_cast<uint64_t>(i);
    if (options.callers > 1)
      requests.back()->caller = 1 + rng() % static_cast<unsigned>(options.callers);
    if (options.bound_one_in > 0 && rng() % static_cast<unsigned>(options.bound_one_in) == 0)
      requests.back()->matcher = std::make_unique<grammar::Matcher>(letters_grammar());
  }
  return requests;
}

// Submits everything, in bursts, cancels some, and compares every answer.
inline void run_load(FakeModel& model, EngineRunner::Options options, const LoadOptions& load,
                     EngineStats* stats = nullptr) {
  SCOPED_TRACE("seed " + std::to_string(load.seed));
  Requests requests = random_load(load, model.spec().vocab_size);
  std::vector<Answer> answers;
  std::vector<std::vector<int32_t>> texts;
  for (const auto& request : requests) {
    const auto matcher = [&] { return std::make_unique<grammar::Matcher>(letters_grammar()); };
    answers.push_back(reference_answer(model, *request, request->matcher ? matcher() : nullptr));
    std::vector<int32_t>& text = texts.emplace_back();
    for (const TokenLogprob& token : answers.back().tokens) text.push_back(token.token);
  }
  MadeUpDrafts drafts(
      load.drafts.value_or(MadeUpDrafts::Way::kRandom), model.spec().vocab_size,
      [&](const Request& request) -> const std::vector<int32_t>& { return texts[request.id]; },
      [](const Request& request) { return static_cast<int32_t>(request.id % 8); });
  if (load.drafts)
    options.engine.speculation = {
        .sources = {&drafts}, .drafts_max = 15, .measured = load.measured_drafts};
  std::mt19937 rng(load.seed + 1000);
  EngineRunner runner(model, test_ops(), options);
  for (const auto& request : requests) {
    while (true) {
      const Result<void> submitted = runner.handle().submit(request.get());
      if (submitted) break;
      ASSERT_EQ(submitted.error().code, ErrorCode::kOverloaded) << submitted.error().message;
      std::this_thread::yield();
    }
    if (rng() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng() % 500));
    if (load.cancel_one_in == 0 || rng() % static_cast<unsigned>(load.cancel_one_in) != 0) continue;
    if (rng() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng() % 300));
    runner.handle().cancel(request.get());
  }
  for (const auto& request : requests) runner.wait(*request);
  if (stats != nullptr) {
    stats->preemptions.add(runner.handle().stats().preemptions.value());
    stats->prefix_hits.add(runner.handle().stats().prefix_hits.value());
    stats->forced_tokens.add(runner.handle().stats().forced_tokens.value());
  }
  runner.stop();
  EXPECT_EQ(runner.handle().open(), 0);
  for (size_t i = 0; i < requests.size(); ++i)
    ASSERT_TRUE(has_answer(*requests[i], answers[i])) << "request " << i;
  EXPECT_EQ(drafts.wrong_pending(), 0);
  EXPECT_EQ(drafts.wrong_positions(), 0);
  EXPECT_EQ(drafts.asked() > 0, load.drafts.has_value());
}

inline EngineRunner::Options runner_options(int members, int32_t page_count, bool prefix_cache) {
  EngineRunner::Options options;
  options.members = members;
  options.page_count = page_count;
  options.engine.prefix_cache = prefix_cache;
  options.engine.step_tokens_max = 64;
  options.engine.running_max = 12;
  options.engine.queue_max = 64;
  return options;
}

}  // namespace weir::sched
