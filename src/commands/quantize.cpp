#include "commands/quantize.h"

#include <csignal>
#include <cstdio>

#include "commands/progress_bar.h"
#include "model/checkpoint_quantiser.h"
#include "model/decoder.h"
#include "program/model_choice.h"

namespace weir {

namespace {

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
  ProgressBar bar;
  WEIR_TRY(model::quantise_checkpoint(choice.model_card, model->modules(), rules, options.to, team,
                                      [&](int64_t done, int64_t total) { bar.show(done, total); }));
  return {};
}

}  // namespace weir
