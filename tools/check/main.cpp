// weir-check: compares this build with recorded answers.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "base/byte_size.h"
#include "check.h"
#include "kernels/cpu_ops.h"

namespace weir::check {

namespace {

using Check = Result<void> (*)(const CheckOptions& options, Report& report);

struct Raw {
  CheckOptions options;
  std::string isa, compute, kv_format, expert_memory;
  bool stream_experts = false;
};

void add_command(CLI::App& app, Raw& raw, const char* name, const char* help, bool runs_models) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("DIR", raw.options.paths, "Fixtures, or folders above some")->required();
  if (!runs_models) {
    command->add_option("--npm", raw.options.npm,
                        "Folder whose node_modules has the tokenizers' packages");
    return;
  }
  command->add_option("--isa", raw.isa,
                      "scalar, avx2, avx512 or amx; the best of this machine by default");
  command->add_option("--compute", raw.compute, "exact (default) or fast")
      ->check(CLI::IsMember({"exact", "fast"}));
  command->add_option("--kv-cache", raw.kv_format, "f32 (default with exact) or f16")
      ->check(CLI::IsMember({"f16", "f32"}));
  command->add_option("--threads", raw.options.threads, "All usable cores by default")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--stream-experts", raw.stream_experts,
                    "Also with experts from disk: the same bits");
  command->add_option("--expert-memory", raw.expert_memory,
                      "Memory for experts (2M, 1G); an eighth of them by default");
}

Result<CheckOptions> resolve(const Raw& raw) {
  CheckOptions options = raw.options;
  if (!raw.isa.empty()) {
    options.isa = kernels::parse_isa(raw.isa);
    if (!options.isa)
      return fail(ErrorCode::kConfig,
                  "--isa: expected scalar, avx2, avx512 or amx, found " + raw.isa);
  }
  if (!raw.compute.empty())
    options.compute = raw.compute == "fast" ? model::Compute::kFast : model::Compute::kExact;
  if (!raw.kv_format.empty())
    options.kv_format =
        raw.kv_format == "f16" ? kernels::FloatType::kF16 : kernels::FloatType::kF32;
  if (!raw.stream_experts && !raw.expert_memory.empty())
    return fail(ErrorCode::kConfig, "--expert-memory: expected --stream-experts beside it");
  if (raw.stream_experts) {
    options.expert_memory = raw.expert_memory.empty() ? 0 : parse_byte_size(raw.expert_memory);
    if (!options.expert_memory)
      return fail(ErrorCode::kConfig,
                  "--expert-memory: expected a size such as 2M or 1G, found " + raw.expert_memory);
  }
  return options;
}

int run(int argc, char** argv) {
  const std::map<std::string, Check> checks = {{"model", check_models},
                                               {"families", check_families},
                                               {"images", check_images},
                                               {"quantize", check_quantised},
                                               {"sounds", check_sounds},
                                               {"templates", check_templates},
                                               {"tokenizers", check_tokenizers}};
  CLI::App app("Compares this build with recorded answers.", "weir-check");
  app.require_subcommand(1);
  Raw raw;
  add_command(app, raw, "model", "Models with expected.json: tokens, log-probabilities, likelihood",
              true);
  add_command(app, raw, "families", "Fixtures of model families: logits and greedy tokens", true);
  add_command(app, raw, "images", "Fixtures with pictures: what a tower reads of them", false);
  add_command(app, raw, "quantize", "Checkpoints and their quantised forms: every tensor", true);
  add_command(app, raw, "sounds", "Fixtures with sounds: what an encoder reads of them", false);
  add_command(app, raw, "templates", "Chat templates: rendered bytes", false);
  add_command(app, raw, "tokenizers", "Tokenizers: ids and decoded text", false);
  CLI11_PARSE(app, argc, argv);

  const auto options = resolve(raw);
  if (!options) {
    std::fprintf(stderr, "weir-check: %s\n", options.error().message.c_str());
    return 2;
  }
  Report report;
  const Check check = checks.at(app.get_subcommands().front()->get_name());
  if (const auto done = check(*options, report); !done) {
    std::fprintf(stderr, "weir-check: %s\n", done.error().message.c_str());
    return 2;
  }
  return report.finish();
}

}  // namespace

}  // namespace weir::check

int main(int argc, char** argv) { return weir::check::run(argc, argv); }
