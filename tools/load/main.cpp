// weir-load: load for an OpenAI-compatible server over HTTP, and the figures of how it bore it.
#include <cstdio>
#include <fstream>

#include "load/runner.h"
#include "net/file_limit.h"
#include "options.h"

namespace {

bool write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "weir-load: cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

// 2 if the figures cannot be written.
int tell(const weir::load::LoadOptions& options, const weir::load::Figures& figures) {
  if (options.json_path == "-") {
    std::fputs(figures.json().c_str(), stdout);
  } else {
    std::fputs(figures.table().c_str(), stdout);
    if (!write_file(options.json_path, figures.json())) return 2;
  }
  if (!write_file(options.log_path, figures.log())) return 2;
  return figures.has_failures() ? 1 : 0;
}

weir::Result<weir::net::HttpTarget> find_target(const weir::load::LoadOptions& options) {
  using weir::net::HttpTarget;
  if (!options.unix_path.empty()) return HttpTarget::unix_socket(options.unix_path);
  WEIR_ASSIGN(HttpTarget target, HttpTarget::tcp(options.host, options.port));
  if (options.tls) {
    WEIR_ASSIGN(auto trust, weir::net::TlsTrust::load(options.ca_file, options.insecure));
    target.use_tls(std::move(trust), options.host);
  }
  return target;
}

}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  auto options = weir::load::parse_options(argc, argv, &status);
  if (!options) return status;
  const uint64_t files = weir::net::raise_file_limit();
  const bool open_loop = options->rate > 0;
  const uint64_t beside = static_cast<uint64_t>(options->idle) + 64;
  // An open loop needs as many connections as the server lets pile up: with fewer files than
  // --connections-max arrivals would fail for a reason that is not the server's.
  if (open_loop && files > beside &&
      files - beside < static_cast<uint64_t>(options->connections_max)) {
    options->connections_max = static_cast<int32_t>(files - beside);
    std::fprintf(stderr,
                 "weir-load: %llu files allowed: --connections-max is %d; raise ulimit -n\n",
                 static_cast<unsigned long long>(files), options->connections_max);
  }
  const uint64_t wanted = beside + static_cast<uint64_t>(open_loop ? 1 : options->clients);
  if (files < wanted) {
    std::fprintf(stderr, "weir-load: %llu files needed, %llu allowed: raise ulimit -n\n",
                 static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(files));
    return 2;
  }
  const auto target = find_target(*options);
  if (!target) {
    std::fprintf(stderr, "weir-load: %s\n", target.error().message.c_str());
    return 2;
  }
  weir::load::Runner runner(*options, *target);
  if (const auto ran = runner.run(); !ran) {
    std::fprintf(stderr, "weir-load: %s\n", ran.error().message.c_str());
    return 2;
  }
  return tell(*options, runner.figures());
}
