#include "api/serving/adapters.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::api {

namespace {

constexpr size_t kNameBytesMax = 256;
// A hundred times an adapter's own scale is more than any of use.
constexpr double kScaleMax = 100;

std::string in_quotes(std::string_view name) {
  std::string text = "'";
  text.append(name.substr(0, kNameBytesMax)).push_back('\'');
  return text;
}

}  // namespace

int64_t Adapters::bytes() const {
  int64_t bytes = 0;
  for (const ServedAdapter& adapter : adapters_) bytes += adapter.loaded.bytes;
  return bytes;
}

// REQUIRES: the lock is held.
Result<void> Adapters::check_name(const std::string& name) const {
  if (name.empty() || name.size() > kNameBytesMax)
    return fail(ErrorCode::kInvalid,
                "Invalid 'lora_name': expected 1 to " + std::to_string(kNameBytesMax) +
                    " bytes, found " + std::to_string(name.size()) + ".",
                "lora_name");
  if (std::ranges::find(adapters_, name, &ServedAdapter::name) != adapters_.end())
    return fail(ErrorCode::kInvalid,
                "The lora adapter " + in_quotes(name) + " has already been loaded.", "lora_name");
  if (std::ssize(adapters_) >= limits_.count_max)
    return fail(ErrorCode::kOverloaded,
                "Expected at most " + std::to_string(limits_.count_max) +
                    " adapters (--max-cpu-loras), found as many; unload one first.",
                "lora_name");
  return {};
}

Result<void> Adapters::add(const std::string& name, const std::string& path,
                           AdapterWeights weights, int64_t now) {
  const std::lock_guard lock(mutex_);
  WEIR_TRY(check_name(name));
  if (bytes() + weights.bytes > limits_.bytes_max)
    return fail(ErrorCode::kOverloaded,
                "Adapter " + in_quotes(name) + " takes " + std::to_string(weights.bytes) +
                    " bytes; expected at most " + std::to_string(limits_.bytes_max - bytes()) +
                    ", what is left for adapters (--max-cpu-loras, --max-lora-rank).",
                "lora_path");
  adapters_.push_back({.id = next_id_++,
                       .name = name,
                       .path = path,
                       .created = now,
                       .loaded = std::move(weights)});
  return {};
}

Result<void> Adapters::load(const std::string& name, const std::string& path, int64_t now) {
  int64_t left = 0;
  {
    const std::lock_guard lock(mutex_);
    WEIR_TRY(check_name(name));
    left = limits_.bytes_max - bytes();
  }
  if (!loader_)
    return fail(ErrorCode::kForbidden,
                "This server loads no adapters while it runs: it was started without --lora-dir.",
                "lora_path");
  WEIR_ASSIGN(AdapterWeights weights, loader_(path, left));
  return add(name, path, std::move(weights), now);
}

Result<void> Adapters::remove(const std::string& name) {
  ServedAdapter gone;  // Freed without the lock.
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(adapters_, name, &ServedAdapter::name);
  if (found == adapters_.end())
    return fail(ErrorCode::kNotFound, "The lora adapter " + in_quotes(name) + " cannot be found.",
                "lora_name");
  if (default_ && default_->id == found->id) default_.reset();
  gone = std::move(*found);
  adapters_.erase(found);
  return {};
}

std::optional<ServedAdapter> Adapters::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(adapters_, name, &ServedAdapter::name);
  return found == adapters_.end() ? std::nullopt : std::optional(*found);
}

std::vector<ServedAdapter> Adapters::list() const {
  const std::lock_guard lock(mutex_);
  return adapters_;
}

double Adapters::default_scale(int64_t id) const {
  const std::lock_guard lock(mutex_);
  return default_ && default_->id == id ? default_->scale : 0;
}

// REQUIRES: the lock is held.
Result<std::optional<AdapterScale>> Adapters::only_one(
    const std::vector<AdapterScale>& scales) const {
  std::optional<AdapterScale> one;
  for (const AdapterScale& each : scales) {
    const auto found = std::ranges::find(adapters_, each.id, &ServedAdapter::id);
    if (found == adapters_.end())
      return fail(ErrorCode::kInvalid,
                  "Invalid value for 'lora': expected the id of an adapter, found " +
                      std::to_string(each.id) + " (GET /lora-adapters lists them).",
                  "lora");
    if (!(std::abs(each.scale) <= kScaleMax))
      return fail(ErrorCode::kInvalid,
                  "Invalid value for 'lora': expected scales from -100 to 100, found " +
                      std::to_string(each.scale) + ".",
                  "lora");
    if (each.scale == 0) continue;
    if (each.scale != 1 && !found->loaded.scales)
      return fail(ErrorCode::kInvalid,
                  "Invalid value for 'lora': expected a scale of 0 or 1 for adapter " +
                      in_quotes(found->name) +
                      ", which has lengths of rows, biases or whole weights; found " +
                      std::to_string(each.scale) + ".",
                  "lora");
    if (one)
      return fail(ErrorCode::kInvalid,
                  "Invalid value for 'lora': expected one adapter at most whose scale is not 0, "
                  "found several.",
                  "lora", "unsupported_parameter");
    one = each;
  }
  return one;
}

Result<void> Adapters::set_defaults(const std::vector<AdapterScale>& scales) {
  const std::lock_guard lock(mutex_);
  WEIR_ASSIGN(default_, only_one(scales));
  return {};
}

// Numbers are never used again, digests are those of the weights, and scales that differ have other
// bits: so no two of them share what is remembered of a prompt.
ChosenAdapter Adapters::chosen(const ServedAdapter& adapter, double scale) {
  const auto factor = static_cast<float>(scale);
  return {.name = adapter.name,
          .weights = adapter.loaded.weights,
          .scale = factor,
          .key = (adapter.loaded.digest != 0 ? adapter.loaded.digest
                                             : static_cast<uint64_t>(adapter.id + 1) << 32) ^
                 std::bit_cast<uint32_t>(factor)};
}

Result<ChosenAdapter> Adapters::choose(
    std::string_view model, const std::optional<std::vector<AdapterScale>>& scales) const {
  const std::lock_guard lock(mutex_);
  std::optional<AdapterScale> one = default_;
  if (scales) {
    WEIR_ASSIGN(one, only_one(*scales));
  }
  const auto named = std::ranges::find(adapters_, model, &ServedAdapter::name);
  if (named != adapters_.end()) {
    if (scales && one && one->id != named->id)
      return fail(ErrorCode::kInvalid,
                  "Invalid value for 'lora': expected the adapter that 'model' names, found "
                  "another.",
                  "lora");
    return chosen(*named, scales && one ? one->scale : 1);
  }
  if (!one) return ChosenAdapter{};
  return chosen(*std::ranges::find(adapters_, one->id, &ServedAdapter::id), one->scale);
}

}  // namespace weir::api
