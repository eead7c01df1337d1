#include "commands/pack.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/byte_size.h"
#include "model/expert_pack.h"
#include "program/expert_streaming.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"

namespace weir {

namespace {

using std::chrono::steady_clock;

// In the model's folder; where that may not be written, in the user's cache.
Result<std::string> destination(const Options& options, const model::StreamedBank& bank,
                                const ssd::SourceHash& source) {
  if (!options.output.empty()) return options.output;
  const std::vector<std::string> paths = model::bundle_paths(bank, source);
  if (::access(bank.folder().c_str(), W_OK) == 0) return paths[0];
  if (paths.size() < 2)
    return fail(ErrorCode::kIo, bank.folder() +
                                    ": expected a folder that can be written, or HOME or "
                                    "XDG_CACHE_HOME; found neither (--output FILE names a place)");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(paths[1]).parent_path(), error);
  if (error) return fail(ErrorCode::kIo, paths[1] + ": " + error.message());
  return paths[1];
}

// A bar on a terminal, lines elsewhere.
class Progress {
 public:
  Progress(int32_t begun, uint64_t bytes) : begun_(begun), bytes_(bytes) {}
  void operator()(int32_t done, int32_t layers) {
    const double seconds = std::chrono::duration<double>(steady_clock::now() - start_).count();
    const double written =
        static_cast<double>(bytes_) * (done - begun_) / static_cast<double>(layers);
    char text[160];
    std::snprintf(text, sizeof text, "layer %d of %d, %.2f GB/s, %.0f s left", done, layers,
                  written * 1e-9 / seconds, seconds / (done - begun_) * (layers - done));
    if (!terminal_) {
      std::printf("%s\n", text);
      std::fflush(stdout);
      return;
    }
    constexpr int kWidth = 30;
    const int full = static_cast<int>(int64_t{kWidth} * done / layers);
    std::printf("\r[%s%s] %s \033[K", std::string(static_cast<size_t>(full), '#').c_str(),
                std::string(static_cast<size_t>(kWidth - full), ' ').c_str(), text);
    if (done == layers) std::printf("\n");
    std::fflush(stdout);
  }

 private:
  const int32_t begun_;
  const uint64_t bytes_;
  const bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  const steady_clock::time_point start_ = steady_clock::now();
};

bool is_there(const std::string& path, const ssd::SourceHash& source) {
  const Result<ssd::ExpertBundle> bundle = ssd::ExpertBundle::open(path);
  return bundle && bundle->head.complete && bundle->head.source == source;
}

}  // namespace

Result<void> pack_model(const Options& options) {
  std::signal(SIGXFSZ, SIG_IGN);  // A limit on files' sizes is an error like a full disk.
  WEIR_ASSIGN(ModelChoice choice, choose_model(options));
  ThreadTeam team(choice.threads);
  WEIR_ASSIGN(const std::unique_ptr<model::Model> model,
              model::Model::bind(choice.model_card, {.rows_max = 1, .stream_experts = true},
                                 kernels::ops_for(choice.isa), team.members()));
  const model::StreamedBank& bank = *model->streamed_bank();
  WEIR_ASSIGN(const ssd::SourceHash source, bank.source());
  WEIR_ASSIGN(const std::string path, destination(options, bank, source));
  if (is_there(path, source)) {
    std::printf("%s is there and up to date\n", path.c_str());
    return {};
  }
  ssd::ExpertBundle plan = ssd::plan_bundle(bank.catalogue(), source);
  const uint64_t bytes = plan.head.file_bytes;
  std::printf("%s: %llu experts, %s\n", path.c_str(),
              static_cast<unsigned long long>(plan.head.count()),
              human_bytes(static_cast<int64_t>(bytes)).c_str());
  WEIR_ASSIGN(const std::unique_ptr<ssd::BundleWriter> writer,
              ssd::BundleWriter::create(path, std::move(plan),
                                        static_cast<uint64_t>(options.disk_reserve)));
  const int32_t begun = writer->layers_done();
  if (begun > 0) std::printf("going on after layer %d\n", begun);
  std::fflush(stdout);
  WEIR_ASSIGN(std::unique_ptr<ssd::Disk> disk, ssd::Disk::create(disk_options(options.ssd_io)));
  WEIR_TRY(model->open_experts(
      std::move(disk), {.memory = model::pack_memory(bank.catalogue()), .sequences_max = 1}));
  const auto start = steady_clock::now();
  Progress progress(begun, bytes);
  WEIR_TRY(model::pack_experts(bank, *writer, team,
                               [&](int32_t done, int32_t of) { progress(done, of); }));
  std::printf("done in %.1f s\n",
              std::chrono::duration<double>(steady_clock::now() - start).count());
  return {};
}

}  // namespace weir
