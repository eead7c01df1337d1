// memory: what a server takes under load beside what it planned, and what it gives back when its
// model goes.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "load/runner.h"
#include "suite/child.h"
#include "suite/json_value.h"
#include "suite/parts.h"
#include "suite/small_kv.h"

namespace weir::suite {

namespace {

using std::chrono::steady_clock;

constexpr int32_t kClients = 64;
// Beyond the plan: what the plan does not know of (product goal: 5 %).
constexpr double kBeyond = 1.05;
// A process that has loaded and unloaded keeps its allocator's remains (product goal).
constexpr double kKeptMibMax = 64;
// Memory that is not used goes back after a minute.
constexpr auto kGiveBackMax = std::chrono::seconds(75);
constexpr auto kLookPeriod = std::chrono::milliseconds(200);

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

Result<void> measure_peak(Run& run) {
  WEIR_ASSIGN(const SmallKv small, small_kv(run));
  WEIR_ASSIGN(Server server, Server::start(run.options(), small.words));
  run.say("load of 64 clients");
  load::LoadOptions options = server.endpoint().load_options();
  options.chat = false;
  options.clients = kClients;
  options.duration_s = run.quick() ? 8 : 30;
  const int32_t words_max = std::clamp(run.model().context / 4, 8, 600);
  options.prompt_words = {std::min(100, words_max), words_max};
  options.output_tokens = {32, 128};
  load::Runner runner(options, server.endpoint().target());
  WEIR_TRY(runner.run());
  if (runner.figures().interrupted) return fail(ErrorCode::kCancelled, "interrupted");
  const double plan = mib(small.planned);
  run.add({.name = "plan", .value = plan, .unit = "MiB"});
  run.add({.name = "most resident under load",
           .value = mib(server.usage().resident_bytes_max),
           .unit = "MiB",
           .limit = at_most(kBeyond * plan),
           .better = Better::kLess,
           .tolerance = 0.1});
  run.add({.name = "failed",
           .value = static_cast<double>(runner.figures().all().failed),
           .limit = at_most(0)});
  return server.stop();
}

// A file that names one model, which goes after a second without a request.
class ModelsFile {
 public:
  static Result<ModelsFile> write(const std::string& model) {
    ModelsFile file;
    file.path_ = "/tmp/weir-suite-XXXXXX";
    const int handle = ::mkstemp(file.path_.data());
    const std::string text = "[suite]\nmodel = \"" + model + "\"\nidle-unload = 1\n";
    const bool written =
        handle >= 0 && ::write(handle, text.data(), text.size()) == std::ssize(text);
    if (handle >= 0) ::close(handle);
    if (!written) return fail(ErrorCode::kIo, file.path_ + ": cannot be written");
    return file;
  }
  ModelsFile(ModelsFile&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ModelsFile& operator=(ModelsFile&&) = delete;
  ~ModelsFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  ModelsFile() = default;
  std::string path_;
};

Result<void> wait_until_unloaded(const Endpoint& at) {
  const auto end = steady_clock::now() + kGiveBackMax;
  while (steady_clock::now() < end) {
    WEIR_ASSIGN(const JsonDoc doc, at.ask_json({.path = "/v1/models", .body = {}}));
    const auto state = doc.root()["data"].at(0)["status"]["value"];
    if (value_or(state, std::string_view()) == "unloaded") return {};
    std::this_thread::sleep_for(kLookPeriod);
  }
  return fail(ErrorCode::kIo, "the model was not unloaded after a second without requests");
}

// Resident bytes once they are within `allowed`, or when the time to give back is over.
int64_t settled_bytes(const Server& server, int64_t allowed) {
  const auto end = steady_clock::now() + kGiveBackMax;
  int64_t bytes = server.usage().resident_bytes;
  while (bytes > allowed && steady_clock::now() < end) {
    std::this_thread::sleep_for(kLookPeriod);
    bytes = server.usage().resident_bytes;
  }
  return bytes;
}

Result<void> measure_unloading(Run& run) {
  const std::string name = "kept after the model was unloaded";
  if (run.options().model.empty())
    return run.skip(name, "the built-in model is none that comes and goes; --model names one"),
           Result<void>();
  WEIR_ASSIGN(const ModelsFile file, ModelsFile::write(run.options().model));
  Options options = run.options();
  std::erase_if(options.passed_on, [](const auto& given) { return given.first == "model"; });
  WEIR_ASSIGN(Server server, Server::start(options, {"--models=" + file.path(), "--load-stay=0"}));
  const int64_t before = server.usage().resident_bytes;
  const auto allowed = before + static_cast<int64_t>(kKeptMibMax) * (1 << 20);
  const int32_t cycles = run.quick() ? 3 : 10;
  for (int32_t i = 0; i < cycles; ++i) {
    run.say("load and unload, " + std::to_string(i + 1) + " of " + std::to_string(cycles));
    WEIR_ASSIGN(const JsonDoc answer,
                server.endpoint().ask_json(
                    completion({.model = "suite", .prompt = words(50, 1), .max_tokens = 16})));
    WEIR_TRY(wait_until_unloaded(server.endpoint()));
  }
  run.add({.name = name,
           .value = mib(settled_bytes(server, allowed) - before),
           .unit = "MiB",
           .limit = at_most(kKeptMibMax)});
  return server.stop();
}

}  // namespace

Result<void> measure_memory(Run& run) {
  if (!run.needs_inside("plan, peak, what is kept")) return {};
  WEIR_TRY(run.stop_server());
  WEIR_TRY(measure_peak(run));
  return measure_unloading(run);
}

}  // namespace weir::suite
