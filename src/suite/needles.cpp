// needles: seven digits in a long prompt, asked for at its end. What is retrieved tells whether a
// model uses its context; and types of keys are compared by it.
#include <algorithm>
#include <span>
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

// What is found in prompts of so many tokens.
struct Found {
  int32_t tokens = 0;
  int32_t needles = 0, of = 0;
};

Result<Found> find(Run& run, const Endpoint& at, int32_t tokens, double per_word) {
  const int32_t seeds = run.quick() ? 1 : 5;
  const auto words_total = static_cast<int32_t>((tokens - kFrameTokens) / per_word);
  std::vector<Needle> needles;
  for (int32_t seed = 1; seed <= seeds; ++seed)
    for (const int32_t place : kPlaces)
      needles.push_back(needle(run, words_total, place, static_cast<uint64_t>(seed)));
  std::vector<Request> requests;
  for (const Needle& each : needles) requests.push_back(each.request);
  const std::vector<Answer> answers = at.ask(requests, kAtOnce);
  Found found{.tokens = tokens, .of = static_cast<int32_t>(answers.size())};
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].error.empty()) return fail(ErrorCode::kIo, answers[i].error);
    found.needles += text_of(answers[i]).find(needles[i].digits) != std::string::npos ? 1 : 0;
  }
  return found;
}

// Four of five: fewer say little of what compression costs.
bool finds_most(const Found& found) { return 5 * found.needles >= 4 * found.of; }

std::string name_of(int32_t tokens) { return "found in " + std::to_string(tokens) + " tokens"; }

// The same needles with compressed keys, at lengths where the model finds most of them in f16.
Result<void> measure_compressed(Run& run, std::span<const Found> in_f16, double per_word) {
  const std::string name = "found with compressed keys";
  if (!run.needs_inside(name)) return {};
  if (run.setting().kv != "f16") {
    run.skip(name, "keys are stored in " + run.setting().kv + " already");
    return {};
  }
  if (std::ranges::none_of(in_f16, &finds_most)) {
    run.skip(name, "the model does not find four of five in f16");
    return {};
  }
  WEIR_TRY(run.stop_server());
  for (const std::string format : {"tq4", "tq3"}) {
    const Result<Server> server = Server::start(run.options(), {"--kv-cache=" + format});
    if (!server) {
      run.skip(name, server.error().message);
      return {};
    }
    for (const Found& before : in_f16) {
      if (!finds_most(before)) continue;
      run.say(name_of(before.tokens) + " with " + format);
      WEIR_ASSIGN(const Found found, find(run, server->endpoint(), before.tokens, per_word));
      run.add({.name = name_of(before.tokens) + " with " + format + ", of " +
                       std::to_string(found.of),
               .value = static_cast<double>(found.needles),
               .limit = at_least(before.needles - 1)});
    }
  }
  return {};
}

}  // namespace

Result<void> measure_needles(Run& run) {
  WEIR_ASSIGN(const double per_word, run.tokens_per_word());
  WEIR_ASSIGN(const Endpoint* at, run.endpoint());
  std::vector<Found> all;
  for (const int32_t tokens : kLengths) {
    const std::string name = name_of(tokens);
    if (!run.needs_context(name, tokens + kAnswerTokens)) continue;
    if (run.quick() && tokens > kQuickLengthMax) {
      run.skip(name, "not with --quick");
      continue;
    }
    run.say(name);
    WEIR_ASSIGN(const Found found, find(run, *at, tokens, per_word));
    run.add({.name = name + ", of " + std::to_string(found.of),
             .value = static_cast<double>(found.needles),
             .better = Better::kMore,
             .tolerance = 0.2});
    all.push_back(found);
  }
  return measure_compressed(run, all, per_word);
}

}  // namespace weir::suite
