// cache: prompts that come again are found, whatever came between, and are answered as before.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "suite/parts.h"

namespace weir::suite {

namespace {

// A coding agent's first prompt, about (product goal); shorter where the context is.
constexpr int32_t kBigTokens = 5500;
constexpr int32_t kSmallWords = 20;
constexpr int32_t kAnswerTokens = 16;
constexpr int32_t kTimesAgain = 3;
// Of the first time's first token, and of the prompt (product goals).
constexpr double kFirstShareMax = 10, kCachedShareMin = 95;
// From disk (product goal), where the prompt took a second at least: in less, the disk's first answer
// and a server that has just begun count as much.
constexpr double kRestartShareMax = 15, kJudgedSeconds = 1;

struct Asked {
  std::string text;
  double first_s = 0;
  int64_t prompt = 0, cached = 0;
};

Result<Asked> ask(const Run& run, const Endpoint& at, const std::string& prompt) {
  const Answer answer =
      at.ask(run.completion({.prompt = prompt, .max_tokens = kAnswerTokens, .stream = true}));
  if (!answer.error.empty()) return fail(ErrorCode::kIo, answer.error);
  return Asked{text_of(answer), first_text_of(answer), usage_of(answer, "prompt_tokens"),
               cached_tokens_of(answer)};
}

// The same prompt again: of three times the one that was answered the soonest, for what others take
// of the machine only adds.
Result<Asked> ask_again(const Run& run, const Endpoint& at, const std::string& prompt) {
  Asked best;
  for (int32_t i = 0; i < kTimesAgain; ++i) {
    WEIR_ASSIGN(Asked again, ask(run, at, prompt));
    if (i == 0 || again.first_s < best.first_s) best = std::move(again);
  }
  return best;
}

void add_return(Run& run, const std::string& name, const Asked& first, const Asked& again,
                std::optional<Limit> first_share = at_most(kFirstShareMax)) {
  run.add({.name = name + ": first token, of the first's",
           .value = 100 * again.first_s / std::max(first.first_s, 1e-9),
           .unit = "%",
           .limit = first_share});
  run.add({.name = name + ": prompt found",
           .value = 100 * static_cast<double>(again.cached) /
                    static_cast<double>(std::max<int64_t>(again.prompt, 1)),
           .unit = "%",
           .limit = at_least(kCachedShareMin)});
  run.add({.name = name + ": answers that differ",
           .value = first.text == again.text ? 0.0 : 1.0,
           .limit = at_most(0)});
}

// A folder that goes with its owner.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::string path = (std::filesystem::temp_directory_path() / "weir-suite-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) 
      return fail(ErrorCode::kIo, path + ": cannot make this folder: " + std::strerror(errno));
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A prompt that a server before this one has written to disk.
Result<void> measure_restart(Run& run, const std::string& prompt) {
  const std::string name = "restart";
  if (!run.needs_inside(name)) return {};
  run.say(name);
  WEIR_TRY(run.stop_server());
  WEIR_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  const std::vector<std::string> words = {"--disk-cache=1G", "--disk-reserve=0",
                                          "--disk-cache-dir=" + folder.path()};
  WEIR_ASSIGN(Server before, Server::start(run.options(), words));
  WEIR_ASSIGN(const Asked first, ask(run, before.endpoint(), prompt));
  WEIR_TRY(before.stop());
  WEIR_ASSIGN(Server after, Server::start(run.options(), words));
  if (after.endpoint().metric("weir_disk_cache_bytes") == 0) {
    run.skip(name, "what this model remembers is not kept on disk (docs/disk-cache.md)");
    return after.stop();
  }
  WEIR_ASSIGN(const Asked again, ask(run, after.endpoint(), prompt));
  add_return(run, name, first, again,
             first.first_s >= kJudgedSeconds ? std::optional(at_most(kRestartShareMax)) : std::nullopt);
  return after.stop();
}

}  // namespace

Result<void> measure_cache(Run& run) {
  WEIR_ASSIGN(const double per_word, run.tokens_per_word());
  WEIR_ASSIGN(const Endpoint* at, run.endpoint());
  // Prompts that a server which has borne this before has not seen.
  const auto seed =
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const int32_t room = run.model().context > 0 ? run.model().context : kBigTokens;
  // A twentieth is left for what words of another seed have more.
  const int32_t tokens = std::min(kBigTokens, room * 19 / 20 - kAnswerTokens);
  const auto words_of = [&](int32_t count) { return static_cast<int32_t>(count / per_word); };
  const std::string big = words(words_of(tokens), seed);
  const std::string small = words(kSmallWords, seed + 1);

  run.say("big, small, big, big");
  WEIR_ASSIGN(const Asked first, ask(run, *at, big));
  WEIR_TRY(ask(run, *at, small));
  WEIR_TRY(ask(run, *at, big));
  WEIR_ASSIGN(const Asked third, ask_again(run, *at, big));
  run.add({.name = "big prompt, the first time: first token",
           .value = 1000 * first.first_s,
           .unit = "ms"});
  add_return(run, "big, small, big, big", first, third);

  run.say("A, B, A");
  const std::string a = words(words_of(tokens), seed + 2);
  WEIR_ASSIGN(const Asked a_first, ask(run, *at, a));
  WEIR_TRY(ask(run, *at, words(words_of(tokens), seed + 3)));
  WEIR_ASSIGN(const Asked a_again, ask_again(run, *at, a));
  add_return(run, "A, B, A", a_first, a_again);
  return measure_restart(run, words(words_of(tokens), seed + 4));
}

}  // namespace weir::suite
