#include "model/drafts/draft_spec.h"

#include <algorithm>

#include "base/concat.h"
#include "model/families.h"
#include "model/layers/make_layer.h"

namespace weir::model {

namespace {

tl::unexpected<Error> mismatch(std::string_view what, std::string_view expected,
                               std::string_view found) {
  return fail(ErrorCode::kConfig, concat({"the drafter's ", what, ": expected ", expected,
                                          ", which the model has, found ", found}));
}

std::string_view architecture(JsonValue config) {
  std::string_view name;
  return config["architectures"].at(0).get(name) == simdjson::SUCCESS ? name : std::string_view();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Result<DraftSpec> model_spec(const ModelSpec& target, const card::ModelCard& files) {
  DraftSpec draft;
  WEIR_ASSIGN(draft.net, spec_from_config(files.config.root()));
  draft.own_embedding = draft.own_head = true;
  // Embeddings are padded to different sizes; what tokens are is compared by their text
  // (program/draft_choice.h).
  constexpr int kPaddingMax = 1024;
  if (std::abs(draft.net.vocab_size - target.vocab_size) > kPaddingMax)
    return mismatch("vocab_size", concat({"about ", std::to_string(target.vocab_size)}),
                    std::to_string(draft.net.vocab_size));
  for (const Sublayer& sublayer : draft.net.sublayers)
    for (const kv::MemoryNeed& need : needs_of(sublayer))
      if (!std::holds_alternative<kv::PagedNeed>(need))
        return fail(ErrorCode::kUnsupported,
                    concat({"the drafter's architecture: expected one without states, which cannot "
                            "go back to where a draft was wrong, and without cross attention, "
                            "found ",
                            draft.net.family}));
  return draft;
}

}  // namespace

std::string_view kind_name(DraftSpec::Kind kind) {
  switch (kind) {
    case DraftSpec::kModel:
      return "draft";
    case DraftSpec::kEagle3:
      return "eagle3";
    case DraftSpec::kMtp:
      return "mtp";
    case DraftSpec::kDflash:
      return "dflash";
  }
  return "";
}

DraftSpec::Kind draft_kind(JsonValue config) {
  const std::string_view name = architecture(config);
  if (contains(name, "Eagle3")) return DraftSpec::kEagle3;
  if (contains(name, "DFlash")) return DraftSpec::kDflash;
  if (name.ends_with("MTP")) return DraftSpec::kMtp;
  return DraftSpec::kModel;
}

Result<DraftSpec> draft_spec(const ModelSpec& target, const card::ModelCard& card,
                             const card::ModelCard* files) {
  const auto kind = files == nullptr ? DraftSpec::kMtp : draft_kind(files->config.root());
  const auto read = [&]() -> Result<DraftSpec> {
    switch (kind) {
      case DraftSpec::kModel:
        return model_spec(target, *files);
      case DraftSpec::kEagle3:
        return eagle3_spec(target, *files);
      case DraftSpec::kMtp:
        return mtp_spec(target, card, files);
      case DraftSpec::kDflash:
        return dflash_spec(target, *files);
    }
    return DraftSpec{};
  };
  Result<DraftSpec> draft = read();
  if (draft) {
    draft->kind = kind;
    if (Result<void> checked = check_shared(*draft, target); !checked)
      draft = tl::unexpected(checked.error());
    else if (Result<void> sized = check_spec(draft->net); !sized)
      draft = tl::unexpected(sized.error());
  }
  if (draft || files == nullptr) return draft;
  return tl::unexpected(files->in_folder(std::move(draft).error()));
}

Result<void> check_shared(const DraftSpec& draft, const ModelSpec& target) {
  const auto width = [](const ModelSpec& spec) { return std::to_string(spec.hidden_size); };
  if (!draft.reads_features()) return {};
  if (target.streams || target.hyper)
    return fail(ErrorCode::kUnsupported,
                concat({"a drafter for ", target.family,
                        ": expected a model with one residual stream, found several"}));
  if ((!draft.own_embedding || !draft.own_head) && draft.net.hidden_size != target.hidden_size)
    return mismatch("hidden_size", width(target), width(draft.net));
  if (draft.net.vocab_size != target.vocab_size)
    return mismatch("vocab_size", std::to_string(target.vocab_size),
                    std::to_string(draft.net.vocab_size));
  return {};
}

Result<FeatureTap> stream_into(const ModelSpec& target, int layer, std::string_view key) {
  const int layers = layer_count(target);
  if (layer < 0 || layer > layers)
    return fail(ErrorCode::kConfig,
                concat({"config.json: '", key, "': expected layers from 0 to ",
                        std::to_string(layers), " of the model, found ", std::to_string(layer)}));
  const auto at = std::ranges::find_if(
      target.sublayers, [=](const Sublayer& sublayer) { return sublayer.stored_layer >= layer; });
  return FeatureTap{static_cast<int>(at - target.sublayers.begin())};
}

}  // namespace weir::model
