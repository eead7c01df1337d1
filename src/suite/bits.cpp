// bits: what a request is answered does not depend on what runs beside it, nor on how the answer
// is sent. And a hash of all answers with their log-probabilities, by which --against sees a single
// bit that another build computes otherwise.
#include <algorithm>
#include <vector>

#include "net/digest.h"
#include "suite/parts.h"

namespace weir::suite {

namespace {

constexpr int32_t kRequests = 64;
constexpr int32_t kTokens = 24;
// A half of the requests is sampled; of some the prompt is scored, which computes all its rows.
constexpr double kTemperature = 0.9;
constexpr int32_t kEchoEach = 8;

enum class Form : uint8_t { kScored, kWhole, kStream };

std::vector<Request> requests(const Run& run, Form form) {
  std::vector<Request> all;
  for (int32_t i = 0; i < kRequests; ++i) {
    uint64_t state = static_cast<uint64_t>(i) + 1;
    const bool echo = form == Form::kScored && i % kEchoEach == 0;
    all.push_back(run.completion({.prompt = words(pick(state, 4, 160), state),
                                  .max_tokens = kTokens,
                                  .temperature = i % 2 == 0 ? 0 : kTemperature,
                                  .seed = static_cast<uint64_t>(i),
                                  .stream = form == Form::kStream,
                                  .more = [form, echo](JsonWriter& json) {
                                    if (form == Form::kScored) json.field("logprobs", 1);
                                    if (echo) json.field("echo", true);
                                  }}));
  }
  return all;
}

Result<std::vector<std::string>> all_choices(const std::vector<Answer>& answers) {
  std::vector<std::string> all;
  for (const Answer& answer : answers) {
    WEIR_ASSIGN(std::string choices, choices_of(answer));
    all.push_back(std::move(choices));
  }
  return all;
}

std::string hash_of(const std::vector<std::string>& texts) {
  constexpr size_t kDigits = 16;  // 64 bits: enough to tell builds apart, short enough to read.
  net::Digest digest(net::Digest::Kind::kSha256);
  for (const std::string& text : texts) digest.add(text);
  return digest.finish().substr(0, kDigits);
}

Result<std::vector<std::string>> all_texts(const std::vector<Answer>& answers) {
  std::vector<std::string> all;
  for (const Answer& answer : answers) {
    if (!answer.error.empty()) return fail(ErrorCode::kIo, answer.error);
    all.push_back(text_of(answer));
  }
  return all;
}

void add_difference(Run& run, const char* name, const std::vector<std::string>& one,
                    const std::vector<std::string>& other) {
  int32_t differ = 0;
  for (size_t i = 0; i < one.size(); ++i) differ += one[i] != other[i];
  run.add({.name = name, .value = static_cast<double>(differ), .limit = at_most(0)});
}

Result<void> measure(Run& run, const Endpoint& at) {
  const std::vector<Request> scored = requests(run, Form::kScored);
  run.say("64 requests, one after another");
  WEIR_ASSIGN(const std::vector<std::string> alone, all_choices(at.ask(scored, 1)));
  run.say("all at once");
  WEIR_ASSIGN(const std::vector<std::string> together, all_choices(at.ask(scored, kRequests)));
  add_difference(run, "64 requests alone and together: differ", alone, together);
  run.say("whole and as streams");
  WEIR_ASSIGN(const std::vector<std::string> whole,
              all_texts(at.ask(requests(run, Form::kWhole), kRequests)));
  WEIR_ASSIGN(const std::vector<std::string> streamed,
              all_texts(at.ask(requests(run, Form::kStream), kRequests)));
  add_difference(run, "64 answers whole and streamed: differ", whole, streamed);
  run.add({.name = "hash of answers and log-probabilities",
           .text = hash_of(alone),
           .better = Better::kSame});
  return {};
}

}  // namespace

// What is found in the prefix cache would not be computed again: a server without it.
Result<void> measure_bits(Run& run) {
  if (!run.inside()) {
    WEIR_ASSIGN(const Endpoint* at, run.endpoint());
    return measure(run, *at);
  }
  WEIR_TRY(run.stop_server());
  WEIR_ASSIGN(Server server, Server::start(run.options(), {"--no-prefix-cache"}));
  WEIR_TRY(measure(run, server.endpoint()));
  return server.stop();
}

}  // namespace weir::suite
