// lm-evaluation-harness beside a server of ours.
//
// Threads: the caller's, which waits.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "program/options.h"

namespace weir::suite {

// The command that has it run these tasks on the server at `url`.
std::vector<std::string> lm_eval_words(const std::string& url, const std::string& model,
                                       const std::string& tasks);

// Prints the command, and runs it where `lm_eval` is installed: on the server at --url, else on one
// that is started for it.
Result<void> run_lm_eval(const Options& options);

}  // namespace weir::suite
