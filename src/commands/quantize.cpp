#include "commands/quantize.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "base/byte_size.h"
#include "model/checkpoint_quantiser.h"
#include "model/decoder.h"
#include "program/model_choice.h"

namespace weir {

namespace {

using std::chrono::steady_clock;

// A bar on a terminal, a line for each tenth elsewhere.
class Progress {
 public:
  void operator()(int64_t done, int64_t total) {
    const auto now = steady_clock::now();
    const bool last = done >= total;
    const int64_t tenth = total == 0 ? 10 : 10 * done / total;
    if (!last && (terminal_ ? now - printed_ < std::chrono::milliseconds(100) : tenth == tenth_))
      return;
    printed_ = now;
    tenth_ = tenth;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>(done) / seconds;
    char text[160];
    std::snprintf(text, sizeof text, "%s of %s, %.2f GB/s, %.0f s left", human_bytes(done).c_str(),
                  human_bytes(total).c_str(), rate * 1e-9,
                  static_cast<double>(total - done) / rate);
    if (!terminal_) {
      std::printf("%s\n", text);
    } else {
      constexpr int kWidth = 30;
      const auto full = static_cast<size_t>(total == 0 ? kWidth : kWidth * done / total);
      std::printf("\r[%s%s] %s \033[K%s", std::string(full, '#').c_str(),
                  std::string(kWidth - full, ' ').c_str(), text, last ? "\n" : "");
    }
    std::fflush(stdout);
  }

 private:
  const bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  const steady_clock::time_point start_ = steady_clock::now();
  steady_clock::time_point printed_{};
  int64_t tenth_ = -1;
};

Result<model::QuantiseRules> rules_of(const Options& options) {
  if (!options.like.empty()) return model::QuantiseRules::like(options.like);
  return model::QuantiseRules::make({.bits = options.bits, .group = options.group}, options.rule);
}

}  // namespace

Result<void> quantize_model(const Options& options) {
  std::signal(SIGXFSZ, SIG_IGN);  // A limit on files' sizes is an error like a full disk.
  if (options.model.empty() || options.to.empty())
    return fail(ErrorCode::kConfig,
                "expected a model's folder and one to write: weir quantize MODEL OUT; found " +
                    std::string(options.model.empty() ? "neither" : "only the first"));
  WEIR_ASSIGN(const model::QuantiseRules rules, rules_of(options));
  WEIR_ASSIGN(const ModelChoice choice, choose_model(options));
  ThreadTeam team(choice.threads);
  WEIR_ASSIGN(const std::unique_ptr<model::Decoder> model,
              model::Decoder::bind(choice.model_card, {.rows_max = 1}, kernels::ops_for(choice.isa),
                                   team.members()));
  std::printf("%s: %s\n", options.to.c_str(), model->memory().formats.c_str());
  Progress progress;
  WEIR_TRY(model::quantise_checkpoint(choice.model_card, model->modules(), rules, options.to, team,
                                      [&](int64_t done, int64_t total) { progress(done, total); }));
  return {};
}

}  // namespace weir
