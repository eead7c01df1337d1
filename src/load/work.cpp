// Prompts of plain words, and their requests.
#include "load/work.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace weir::load {

namespace {

constexpr std::array<std::string_view, 64> kWords = {
    "river",  "stone",  "quiet",   "garden", "letter",   "window",   "morning", "copper",
    "paper",  "travel", "winter",  "market", "silver",   "answer",   "bridge",  "candle",
    "doctor", "engine", "forest",  "ground", "harbour",  "island",   "journey", "kitchen",
    "ladder", "mirror", "number",  "orange", "pencil",   "question", "railway", "shadow",
    "table",  "under",  "village", "water",  "yellow",   "between",  "carry",   "dance",
    "early",  "follow", "gather",  "happen", "inside",   "keep",     "listen",  "measure",
    "never",  "often",  "perhaps", "quick",  "remember", "slowly",   "towards", "until",
    "visit",  "wonder", "young",   "above",  "become",   "change",   "decide",  "explain"};

// splitmix64: a full-period generator whose state may be any number, so each request has its own
// stream.
uint64_t next(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int32_t pick(uint64_t& state, int32_t low, int32_t high) {
  return low + static_cast<int32_t>(next(state) % static_cast<uint64_t>(high - low + 1));
}

double unit(uint64_t& state) { return static_cast<double>(next(state) >> 11) * 0x1p-53; }

// Streams of the generator for things that are not requests.
constexpr uint64_t kPrefixStream = ~uint64_t{0};
constexpr uint64_t kClassStream = uint64_t{1} << 63;  // Of request k: this and k.
constexpr uint64_t kTurnStream = uint64_t{1} << 62;   // Of turn k of all conversations together.

uint64_t stream_state(uint64_t seed, uint64_t stream) {
  uint64_t state = seed;
  return next(state) ^ (stream * 0xd1342543de82ef95);
}

void write_prompt(JsonWriter& json, bool chat, const std::vector<std::string>& texts) {
  if (!chat) {
    std::string prompt;
    for (const std::string& text : texts) prompt.append(prompt.empty() ? "" : "\n").append(text);
    json.field("prompt", prompt);
    return;
  }
  json.key("messages").begin_array();
  for (size_t i = 0; i < texts.size(); ++i)
    json.begin_object()
        .field("role", i % 2 == 0 ? "user" : "assistant")
        .field("content", texts[i])
        .end_object();
  json.end_array();
}

}  // namespace

Work::Work(const LoadOptions& options, std::string model)
    : options_(options),
      model_(std::move(model)),
      arrivals_(options.seed),
      gaps_(options.burstiness, options.rate > 0 ? 1 / (options.rate * options.burstiness) : 1) {
  uint64_t state = stream_state(options.seed, kPrefixStream);
  prefix_ = words(state, options.prefix_words);
}

std::string Work::words(uint64_t& state, int32_t count) const {
  std::string text;
  for (int32_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kWords[next(state) % kWords.size()];
  }
  return text;
}

int32_t Work::class_of(uint64_t index) const {
  uint64_t state = stream_state(options_.seed, kClassStream | index);
  double place = unit(state);
  for (size_t i = 0; i < options_.mix.size(); ++i) {
    place -= options_.mix[i].share;
    if (place < 0) return static_cast<int32_t>(i) + 1;
  }
  return 0;
}

// What a conversation has said up to a turn: the user and the assistant by turns, the user last.
// What the server answered does not matter, for the same seed is to make the same work.
std::vector<std::string> Work::conversation(uint64_t session, uint64_t turn) const {
  std::vector<std::string> texts;
  for (uint64_t i = 0; i <= turn; ++i) {
    const uint64_t stream = session * static_cast<uint64_t>(options_.turns) + i;
    uint64_t state = stream_state(options_.seed, kTurnStream | stream);
    const auto text = [&](const Range& range) {
      const int32_t count = pick(state, range.low, range.high);
      return words(state, count);
    };
    texts.push_back(text(options_.prompt_words));
    if (i < turn) texts.push_back(text(options_.output_tokens));
  }
  return texts;
}

Job Work::job(uint64_t index) const {
  uint64_t state = stream_state(options_.seed, index + 1);
  Job job;
  job.class_index = class_of(index);
  const bool rest = job.class_index == 0;
  const MixClass other = rest ? MixClass{} : options_.mix[static_cast<size_t>(job.class_index) - 1];
  const Range tokens = rest ? options_.output_tokens : other.output_tokens;
  const Range prompt_words = rest ? options_.prompt_words : other.prompt_words;
  job.output_tokens = pick(state, tokens.low, tokens.high);
  const int32_t word_count = pick(state, prompt_words.low, prompt_words.high);
  if (unit(state) < options_.abort_share)
    job.abort_after = pick(state, 1, job.output_tokens > 1 ? job.output_tokens / 2 : 1);
  const uint64_t sampling_seed = next(state) >> 33;
  std::vector<std::string> texts = {words(state, word_count)};
  if (options_.sessions > 0) {
    // Each conversation's next turn comes when all others had one.
    const auto sessions = static_cast<uint64_t>(options_.sessions);
    const auto turns = static_cast<uint64_t>(options_.turns);
    const uint64_t session = index / sessions / turns * sessions + index % sessions;
    texts = conversation(session, index / sessions % turns);
    job.session = "session-" + std::to_string(session);
  }
  if (!prefix_.empty()) texts.front().insert(0, prefix_ + " ");

  JsonWriter json(job.body);
  json.begin_object().field("model", model_);
  write_prompt(json, options_.chat, texts);
  json.field("max_tokens", job.output_tokens).field("temperature", options_.temperature);
  json.field("seed", sampling_seed).field("stream", options_.stream);
  if (options_.ignore_eos) json.field("ignore_eos", true);
  if (options_.stream)
    json.key("stream_options").begin_object().field("include_usage", true).end_object();
  json.end_object();
  return job;
}

double Work::next_gap_s() { return gaps_(arrivals_); }

}  // namespace weir::load
