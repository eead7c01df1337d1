#include "suite/server.h"

#include <chrono>

namespace weir::suite {

namespace {

// What the greeting says before the address (program/start_report.cpp).
constexpr std::string_view kGreeting = "Weir is ready: ";

}  // namespace

Result<Server> Server::start(const Options& options, const std::vector<std::string>& words) {
  std::vector<std::string> all = words_passed_on(options, Command::kServe);
  all.insert(all.end(), {"--host=127.0.0.1", "--port=0", "--log-level=warn"});
  all.insert(all.end(), words.begin(), words.end());
  const auto begin = std::chrono::steady_clock::now();
  all.insert(all.begin(), "serve");
  WEIR_ASSIGN(Child child, Child::start(all));
  std::optional<std::string> line;
  while ((line = child.read_line()) && !line->starts_with(kGreeting)) {
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!line) {
    const int status = child.wait();
    return fail(ErrorCode::kIo, "the server ended with " + std::to_string(status) +
                                    " before it answered: " + child.complaint());
  }
  WEIR_ASSIGN(Endpoint endpoint, Endpoint::at(line->substr(kGreeting.size()), options.api_key));
  return Server(std::move(child), std::move(endpoint), seconds);
}

Result<void> Server::stop() {
  child_.terminate();
  const int status = child_.wait();
  if (status == 0) return {};
  return fail(ErrorCode::kIo, "the server ended with " + std::to_string(status) +
                                  " when it was asked to drain: " + child_.complaint());
}

}  // namespace weir::suite
