#include "program/machine_speed.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "ssd/calibration.h"

namespace weir {

namespace {

constexpr const char* kMemory = "memory_bytes_per_second";
constexpr const char* kInt8 = "int8_per_second";
constexpr const char* kF32 = "f32_per_second";
constexpr const char* kBf16 = "bf16_per_second";

std::string machine_file() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    return std::string(xdg) + "/weir/machine.json";
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.cache/weir/machine.json";
}

// 0 where there is none that a machine can have.
double rate(JsonObject object, const char* key) {
  constexpr double kRateMax = 1e18;
  double found = 0;
  const auto value = json_get(object, key);
  if (!value || value->get(found) != simdjson::SUCCESS) return 0;
  return std::isfinite(found) && found > 0 && found < kRateMax ? found : 0;
}

}  // namespace

std::optional<MachineSpeed> load_machine_speed() {
  constexpr size_t kBytesMax = 4096;
  const auto text = read_file(machine_file(), kBytesMax);
  if (!text) return std::nullopt;
  const auto doc = JsonDoc::parse(*text);
  JsonObject object;
  if (!doc || doc->root().get(object) != simdjson::SUCCESS) return std::nullopt;
  const MachineSpeed speed = {.memory_bytes_per_second = rate(object, kMemory),
                              .int8_per_second = rate(object, kInt8),
                              .f32_per_second = rate(object, kF32),
                              .bf16_per_second = rate(object, kBf16)};
  return speed.memory_bytes_per_second > 0 ? std::optional(speed) : std::nullopt;
}

Result<void> save_machine_speed(const kernels::MachineLimits& limits) {
  const std::filesystem::path path = machine_file();
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::string text;
  JsonWriter(text)
      .begin_object()
      .field(kMemory, limits.read_gb_s * 1e9)
      .field(kInt8, limits.int8_tops * 1e12)
      .field(kF32, limits.f32_tflops * 1e12)
      .field(kBf16, limits.bf16_tflops * 1e12)
      .end_object();
  std::ofstream file(path);
  file << text << "\n";
  file.close();
  if (path.empty() || !file)
    return fail(ErrorCode::kIo, path.string() +
                                    ": cannot be written; expected a cache folder in "
                                    "XDG_CACHE_HOME or HOME");
  return {};
}

std::optional<ssd::ReadSpeed> load_read_speed(const std::string& path) {
  const std::optional<ssd::Calibration> disk = ssd::load_calibration(path);
  const std::optional<MachineSpeed> machine = load_machine_speed();
  if (!disk || !machine) return std::nullopt;
  return ssd::ReadSpeed{.memory_bytes_per_second = machine->memory_bytes_per_second,
                        .disk_bytes_per_second = disk->bytes_per_second};
}

}  // namespace weir
