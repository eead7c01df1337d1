#include "suite/lm_eval.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "suite/run.h"

namespace weir::suite {

namespace {

constexpr const char* kProgram = "lm_eval";

bool is_installed() {
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string file = folders.substr(begin, end - begin) + "/" + kProgram;
    if (::access(file.c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

// As a shell would be told it.
std::string as_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

Result<void> run_program(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execvp(kProgram, pointers.data());
    ::_exit(127);
  }
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid)
    return fail(ErrorCode::kIo, std::string(kProgram) + " could not be run");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorCode::kIo, std::string(kProgram) + " failed");
}

}  // namespace

std::vector<std::string> lm_eval_words(const std::string& url, const std::string& model,
                                       const std::string& tasks) {
  return {kProgram,
          "--model",
          "local-completions",
          "--model_args",
          "model=" + model + ",base_url=" + url +
              "/v1/completions,tokenizer_backend=remote,tokenized_requests=True,num_concurrent=8",
          "--tasks",
          tasks};
}

Result<void> run_lm_eval(const Options& options) {
  const bool runs = is_installed();
  if (!runs && options.url.empty()) {
    std::printf(
        "%s is not installed ('pip install lm-eval[api]'). Beside a server ('weir serve'):\n\n%s\n",
        kProgram,
        as_line(lm_eval_words("http://127.0.0.1:5413", "MODEL", options.lm_eval)).c_str());
    return {};
  }
  WEIR_ASSIGN(Run run, Run::begin(options, {.on_figure = [](const Figure&) {},
                                            .on_progress = [](const std::string&) {}}));
  WEIR_ASSIGN(const Endpoint* at, run.endpoint());
  std::vector<std::string> words = lm_eval_words(at->url(), run.model_id(), options.lm_eval);
  std::printf("%s\n", as_line(words).c_str());
  std::fflush(stdout);
  if (!runs) return {};
  WEIR_TRY(run_program(std::move(words)));
  return run.stop_server();
}

}  // namespace weir::suite
