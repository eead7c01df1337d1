// needles: seven digits in a long prompt, asked for at its end. What is retrieved tells whether a
// model uses its context; and types of keys are compared by it.
#include <algorithm>
#include <string>
#include <vector>

#include "suite/parts.h"

namespace weir::suite {

namespace {

constexpr int32_t kPlaces[] = {10, 30, 50, 70, 90};  // Percent of the prompt.
constexpr int32_t kLengths[] = {1000, 4000, 16'000, 64'000, 128'000};
constexpr int32_t kQuickLengthMax = 4000;
// Seven digits, a space, and what some models write before them.
constexpr int32_t kAnswerTokens = 24;
// What stands around the words, in tokens, about.
constexpr int32_t kFrameTokens = 60;
constexpr int32_t kAtOnce = 4;

struct Needle {
  std::string digits;
  Request request;
};

Needle needle(const Run& run, int32_t words_total, int32_t place, uint64_t seed) {
  uint64_t state = seed * 1000 + static_cast<uint64_t>(place);
  Needle out;
  out.digits = std::to_string(pick(state, 1'000'000, 9'999'999));
  const int32_t before = words_total * place / 100;
  const std::string prompt = "Read this text and remember the pass key in it.\n\n" +
                             words(before, seed) + ".\n\nThe pass key is " + out.digits +
                             ". Remember it: " + out.digits + " is the pass key.\n\n" +
                             words(words_total - before, seed + 7) +
                             ".\n\nQuestion: what is the pass key in the text?\nAnswer: the pass "
                             "key is";
  out.request = run.completion({.prompt = prompt, .max_tokens = kAnswerTokens});
  return out;
}

Result<void> measure_length(Run& run, const Endpoint& at, int32_t tokens, double per_word) {
  const std::string name = "found in " + std::to_string(tokens) + " tokens";
  const int32_t seeds = run.quick() ? 1 : 5;
  const auto words_total = static_cast<int32_t>((tokens - kFrameTokens) / per_word);
  std::vector<Needle> needles;
  for (int32_t seed = 1; seed <= seeds; ++seed)
    for (const int32_t place : kPlaces)
      needles.push_back(needle(run, words_total, place, static_cast<uint64_t>(seed)));
  run.say(name);
  std::vector<Request> requests;
  for (const Needle& each : needles) requests.push_back(each.request);
  const std::vector<Answer> answers = at.ask(requests, kAtOnce);
  int32_t found = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].error.empty()) return fail(ErrorCode::kIo, answers[i].error);
    found += text_of(answers[i]).find(needles[i].digits) != std::string::npos ? 1 : 0;
  }
  run.add({.name = name + ", of " + std::to_string(answers.size()),
           .value = static_cast<double>(found),
           .better = Better::kMore,
           .tolerance = 0.2});
  return {};
}

}  // namespace

Result<void> measure_needles(Run& run) {
  WEIR_ASSIGN(const double per_word, run.tokens_per_word());
  WEIR_ASSIGN(const Endpoint* at, run.endpoint());
  for (const int32_t tokens : kLengths) {
    const std::string name = "found in " + std::to_string(tokens) + " tokens";
    if (!run.needs_context(name, tokens + kAnswerTokens)) continue;
    if (run.quick() && tokens > kQuickLengthMax)
      run.skip(name, "not with --quick");
    else
      WEIR_TRY(measure_length(run, *at, tokens, per_word));
  }
  run.skip("compressed keys beside f16", "there are no compressed keys yet");
  return {};
}

}  // namespace weir::suite
