// weir: reads the options and runs the subcommand; serve when none is named. Exit codes: 0 fine, 1
// the command failed, 2 the options are wrong.
#include <chrono>
#include <cstdio>

#include "base/log.h"
#include "base/mapping_guard.h"
#include "commands/bench.h"
#include "commands/calibrate.h"
#include "commands/health.h"
#include "commands/info.h"
#include "commands/list.h"
#include "commands/pack.h"
#include "commands/perplexity.h"
#include "commands/pull.h"
#include "commands/quantize.h"
#include "commands/rm.h"
#include "commands/search.h"
#include "commands/suite.h"
#include "commands/verify.h"
#include "program/options.h"
#include "server.h"

namespace {

// With a model that is here.
weir::Result<void> run_model(const weir::Options& options) {
  switch (options.command) {
    case weir::Command::kBench:
      return weir::run_bench(options);
    case weir::Command::kPerplexity:
      return weir::measure_perplexity(options);
    case weir::Command::kCalibrate:
      return weir::calibrate_machine(options);
    case weir::Command::kPack:
      return weir::pack_model(options);
    case weir::Command::kQuantize:
      return weir::quantize_model(options);
    case weir::Command::kSuite:
      return weir::run_suite(options);
    default:
      return {};
  }
}

weir::Result<void> run(const weir::Options& options) {
  switch (options.command) {
    case weir::Command::kServe:  // Which answers while it pulls.
      return weir::serve(options);
    case weir::Command::kPull:
      return weir::run_pull(options);
    case weir::Command::kList:
      return weir::list_cache(options);
    case weir::Command::kRm:
      return weir::remove_from_cache(options);
    case weir::Command::kVerify:
      return weir::verify_cached(options);
    case weir::Command::kHealth:
      return weir::check_health(options);
    case weir::Command::kSearch:
      return weir::search_models(options);
    case weir::Command::kInfo:  // Of a model that need not be here.
      return weir::show_info(options);
    case weir::Command::kSuite:
      if (!options.url.empty()) return weir::run_suite(options);  // Of the model that is there.
      break;
    default:
      break;
  }
  WEIR_ASSIGN(const weir::Options here, weir::with_model_here(options));
  return run_model(here);
}

}  // namespace

int main(int argc, char** argv) {
  const weir::Result<weir::ParsedOptions> parsed = weir::parse_options(argc, argv);
  if (!parsed) {
    std::fprintf(stderr, "weir: %s\n", parsed.error().message.c_str());
    return 2;
  }
  if (!parsed->print.empty()) {
    std::fputs(parsed->print.c_str(), stdout);
    return 0;
  }
  weir::MappingGuard::install();
  const weir::Result<void> done = run(parsed->options);
  if (!done) {
    weir::log::flush(std::chrono::seconds(1));  // Before what it came to.
    std::fprintf(stderr, "weir: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
