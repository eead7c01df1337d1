#include "model/expert_pack.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.h"

namespace weir::model {

namespace {

// $XDG_CACHE_HOME, which counts only if absolute, else ~/.cache; empty: there is none.
std::string cache_folder() {
  const auto of = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr && value[0] == '/' ? value : "");
  };
  const std::string cache = of("XDG_CACHE_HOME"), home = of("HOME");
  if (!cache.empty()) return cache + "/weir";
  return home.empty() ? "" : home + "/.cache/weir";
}

// The layers of a model through an ExpertStore, as a prompt would ask for them that uses all
// experts; what is unpacked is written from its slot.
class Packing {
 public:
  Packing(const StreamedBank& bank, ssd::BundleWriter& writer, ThreadTeam& team)
      : bank_(bank),
        store_(*bank.store()),
        writer_(writer),
        team_(team),
        errors_(static_cast<size_t>(team.members())) {
    for (ssd::ExpertWave& wave : waves_) wave = store_.make_wave();
    for (int32_t e = 0; e < bank.catalogue().experts(); ++e)
      demands_.push_back({.expert = e, .prompt_rows = 1});
  }

  Result<void> run(int32_t layer) {
    store_.begin_step(0);
    store_.begin_layer(layer, demands_, {});
    store_.next_wave(waves_[0]);
    team_.run([&](int member) { run_member(layer, member); });
    store_.end_layer();
    store_.end_step();
    for (const std::optional<Error>& error : errors_)
      if (error) return tl::unexpected(*error);
    if (!store_.doubt().empty()) return fail(ErrorCode::kIo, store_.doubt());
    return {};
  }

 private:
  void run_member(int32_t layer, int member) {
    bool last = false;
    for (size_t turn = 0; !last; ++turn) {
      const ssd::ExpertWave& wave = waves_[turn & 1];
      last = wave.last;
      const int32_t units = bank_.unpack_units(wave);
      for (int32_t unit = team_.claim(); unit < units; unit = team_.claim()) {
        bank_.unpack(wave, unit);
        if (member == 0) store_.pump();
      }
      team_.barrier(member);
      const auto count = static_cast<int32_t>(wave.down.size());
      for (int32_t i = team_.claim(); i < count; i = team_.claim()) {
        write(layer, wave.down[static_cast<size_t>(i)], member);
        if (member == 0) store_.pump();
      }
      if (member == 0 && !wave.failed.empty())
        errors_[0] = Error{ErrorCode::kIo, store_.failure_of(wave.failed[0])};
      if (member == 0 && !last) store_.next_wave(waves_[(turn + 1) & 1]);
      team_.barrier(member);
    }
  }

  void write(int32_t layer, int32_t demand, int member) {
    std::optional<Error>& error = errors_[static_cast<size_t>(member)];
    if (error) return;  // The layer goes on without being written.
    std::byte* slot = store_.memory_of(demand);
    bank_.clear_gaps(layer, slot);
    const Result<void> written =
        writer_.write(layer, demands_[static_cast<size_t>(demand)].expert, slot);
    if (!written) error = written.error();
  }

  const StreamedBank& bank_;
  ssd::ExpertStore& store_;
  ssd::BundleWriter& writer_;
  ThreadTeam& team_;
  std::vector<ssd::ExpertDemand> demands_;
  std::array<ssd::ExpertWave, 2> waves_;
  std::vector<std::optional<Error>> errors_;  // By member.
};

}  // namespace

std::vector<std::string> bundle_paths(const StreamedBank& bank, const ssd::SourceHash& source) {
  std::vector<std::string> paths = {bank.bundle_prefix() + kBundleName};
  if (const std::string cache = cache_folder(); !cache.empty())
    paths.push_back(cache + "/" + ssd::text_of(source) + "/" + kBundleName);
  return paths;
}

Result<std::vector<std::string>> choose_bundle(StreamedBank& bank) {
  std::vector<std::string> refused;
  if (bank.only_headers()) return refused;  // A model that is elsewhere has no bundle here.
  WEIR_ASSIGN(const ssd::SourceHash source, bank.source());
  for (const std::string& path : bundle_paths(bank, source)) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    const Result<void> used = bank.use_bundle(path);
    if (used) break;
    refused.push_back(used.error().message);
  }
  return refused;
}

uint64_t pack_memory(const ssd::ExpertCatalogue& catalogue) {
  // Twice what may be read at once, in each form.
  constexpr uint64_t kExperts = 32;
  uint64_t slots = 0;
  for (int32_t c = 0; c < catalogue.classes(); ++c) slots += catalogue.slot_bytes(c);
  // A sixteenth of a store's memory is for what is not unpacked yet.
  const uint64_t wanted = kExperts * (slots + 16 * catalogue.staging_bytes());
  return std::min(wanted, ssd::whole_memory(catalogue));
}

Result<void> pack_experts(const StreamedBank& bank, ssd::BundleWriter& writer, ThreadTeam& team,
                          const std::function<void(int32_t, int32_t)>& progress) {
  CHECK(bank.store() != nullptr && !bank.catalogue().packed());
  Packing packing(bank, writer, team);
  const int32_t layers = bank.catalogue().layers();
  while (writer.layers_done() < layers) {
    WEIR_TRY(packing.run(writer.layers_done()));
    WEIR_TRY(writer.end_layer());
    if (progress) progress(writer.layers_done(), layers);
  }
  return writer.finish();
}

}  // namespace weir::model
