#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "adapters.h"
#include "card/model_card.h"
#include "check.h"
#include "family_fixture.h"
#include "model/families.h"
#include "picture_check.h"
#include "runtime.h"
#include "sound_check.h"

namespace weir::check {

namespace {

// What a family needs that this build does not compute yet, by a key that its config.json has, at
// the top or in text_config.
struct Later {
  const char* key;
  const char* what;
};
constexpr std::array kLater = {
    Later{"audio_config", "audio"},
    Later{"vision_config", "vision"},
    Later{"index_topk", "sparse attention"},
};

// Fixtures whose reference computed something else than its family does.
struct RecordedOtherwise {
  std::string_view name, how;
};
constexpr std::array kRecordedOtherwise = {
    // mlx-lm differs from it as much as this server; longcat_flash_f32 has the same weights.
    RecordedOtherwise{"longcat_flash", "its inverse frequencies of rope were rounded to bf16"},
};

bool says(simdjson::simdjson_result<JsonValue> value) {
  return value.error() == simdjson::SUCCESS && !value.value_unsafe().is_null();
}

std::string unknown_family(JsonValue config, std::string_view architecture) {
  for (const auto& [key, what] : kLater)
    if (says(config[key]) || says(config["text_config"][key]))
      return std::string("for a later time, ") + what + ": " + std::string(architecture);
  return "family not known yet: " + std::string(architecture);
}

// Why this build cannot run the fixture at all, or nothing.
std::string reason_to_skip(const Result<card::ModelCard>& card) {
  if (!card)
    return card.error().code == ErrorCode::kUnsupported
               ? "format not known yet: " + card.error().message
               : "";
  std::string_view architecture;
  if (card->config.root()["architectures"].at(0).get(architecture) != simdjson::SUCCESS)
    return "family not known yet: config.json names no architecture";
  if (!model::family_known(architecture)) return unknown_family(card->config.root(), architecture);
  return "";
}

bool has_experts(const model::ModelSpec& spec) {
  return std::ranges::any_of(spec.sublayers, [](const model::Sublayer& sublayer) {
    return std::holds_alternative<model::Moe>(sublayer.op);
  });
}

// Everything recorded, run on a model with its experts in memory, or with them on disk.
Result<FamilyComparison> run_family(const FamilyFixture& fixture, const card::ModelCard& card,
                                    const Runtime& runtime, std::optional<int64_t> expert_memory) {
  const model::ModelOptions options = {.compute = runtime.compute,
                                       .rows_max = 256,
                                       .context_max = 512,
                                       .stream_experts = expert_memory.has_value()};
  WEIR_ASSIGN(const auto loaded, model::Model::load(card, options, *runtime.ops, *runtime.team));
  if (expert_memory) WEIR_TRY(stream_experts(*loaded, *expert_memory, kFamilySequences));
  return compare_family(fixture, *loaded, *runtime.team, runtime.kv_format);
}

Result<void> check_streamed(const FamilyFixture& fixture, const card::ModelCard& card,
                            const Runtime& runtime, std::span<const float> resident,
                            Report& report) {
  const std::string name = fixture.name + ", experts from disk";
  const auto ran = run_family(fixture, card, runtime, runtime.expert_memory);
  if (!ran && ran.error().code == ErrorCode::kUnsupported) {
    report.skip(name, ran.error().message);
    return {};
  }
  if (!ran) return tl::unexpected(ran.error());
  const FamilyComparison& c = *ran;
  if (!c.chunked_equal || !c.batched_equal)
    report.fail(name, family_failure(fixture, c, false));
  else if (std::memcmp(c.logits.data(), resident.data(), resident.size_bytes()) != 0)
    report.fail(name, "expected the resident model's logits to the last bit, found a difference");
  else
    report.pass(name, std::to_string(c.logits.size()) + " logits equal to the last bit");
  return {};
}

// An adapter's, which is checked with the model two folders above.
bool is_adapter(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path(folder);
  return path.parent_path().filename() == "adapters" &&
         std::filesystem::exists(path.parent_path().parent_path() / "meta.json", error);
}

Result<void> check_text(const std::string& folder, const card::ModelCard& card,
                        const Runtime& runtime, Report& report) {
  const std::string name = folder_name(folder);
  const Result<FamilyFixture> fixture = FamilyFixture::open(folder);
  if (!fixture && fixture.error().code == ErrorCode::kUnsupported) {
    // Those to images and sound are the next checks'.
    if (!FamilyFixture::open(folder, Answers::kImages) &&
        !FamilyFixture::open(folder, Answers::kSound))
      report.skip(name, fixture.error().message);
    return {};
  }
  if (!fixture) return tl::unexpected(fixture.error());
  WEIR_ASSIGN(const FamilyComparison c, run_family(*fixture, card, runtime, std::nullopt));
  const bool exact =
      runtime.compute == model::Compute::kExact && runtime.kv_format == kernels::FloatType::kF32;
  const std::string failure = family_failure(*fixture, c, exact);
  char detail[200];
  std::snprintf(detail, sizeof detail,
                "%sone pass %.1e (relative rms %.1e, KL %.1e), greedy %.1e (bound %.1e), %d of %zu "
                "tokens equal",
                fixture->beside_media ? "text alone, " : "", c.pass_difference, c.pass_error,
                c.divergence, c.greedy_difference, static_cast<double>(fixture->bound),
                c.greedy_equal, fixture->gen_ids.size());
  failure.empty() ? report.pass(name, detail) : report.fail(name, failure + "; " + detail);
  const auto adapted = check_adapters(folder, card, runtime, c.logits, report);
  if (!adapted) report.fail(name + ", adapters", adapted.error().message);
  WEIR_ASSIGN(const model::ModelSpec spec, model::spec_from_config(card.config.root()));
  if (!runtime.expert_memory || !has_experts(spec)) return {};
  const auto streamed = check_streamed(*fixture, card, runtime, c.logits, report);
  if (!streamed) report.fail(name + ", experts from disk", streamed.error().message);
  return {};
}

Result<void> check_family(const std::string& folder, const Runtime& runtime, Report& report) {
  const std::string name = folder_name(folder);
  if (is_adapter(folder)) return {};
  Result<card::ModelCard> opened = card::ModelCard::open_folder(folder);
  if (const std::string skip = reason_to_skip(opened); !skip.empty()) {
    report.skip(name, skip);
    return {};
  }
  for (const auto& [other, how] : kRecordedOtherwise)
    if (name == other) {
      report.skip(name, "recorded otherwise: " + std::string(how));
      return {};
    }
  WEIR_ASSIGN(const card::ModelCard card, std::move(opened));
  WEIR_TRY(check_text(folder, card, runtime, report));
  const auto pictures = check_pictures(folder, card, runtime, report);
  if (!pictures) report.fail(name + ", pictures", pictures.error().message);
  const auto sounds = check_sound(folder, card, runtime, report);
  if (!sounds) report.fail(name + ", sound", sounds.error().message);
  return {};
}

}  // namespace

Result<void> check_families(const CheckOptions& options, Report& report) {
  WEIR_ASSIGN(const Runtime runtime, Runtime::create(options));
  WEIR_ASSIGN(const std::vector<std::string> folders, find_folders(options.paths, "meta.json"));
  for (const std::string& folder : folders) {
    const auto done = check_family(folder, runtime, report);
    if (!done) report.fail(folder_name(folder), done.error().message);
  }
  return {};
}

}  // namespace weir::check
