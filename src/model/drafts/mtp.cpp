// Modules that were trained with a model to predict further tokens (MTP, arXiv 2412.19437): one
// layer of the model's kind over a token's embedding and the model's last hidden state, after its
// norm. What a chained draft reads in place of that is the module's own, after its own norm.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/concat.h"
#include "model/drafts/draft_spec.h"
#include "model/families/family.h"
#include "model/weight_map.h"

namespace weir::model {

namespace {

using card::ConfigReader;

// How a family names the parts of its module, after `module`: the text that all its tensors begin
// with.
struct MtpNames {
  std::string module;
  std::string_view token_norm, hidden_norm, projection, final_norm;
  std::string layers;  // ModelSpec::layers.
  int layer = 0;
  FeatureInput::Way way = FeatureInput::kJoined;
  std::string_view ffn_norm = "post_attention_layernorm";
  // Copies of the model's embedding and head.
  std::vector<std::string> copies{};
  bool slides = false;  // Its attention is that of the layers with a window, its network dense.
};

std::vector<MtpNames> names_in(const ModelSpec& target) {
  const int layers = layer_count(target);
  const std::string guessing = "model.layers." + std::to_string(layers) + ".";
  MtpNames deepseek = {.module = guessing,
                       .token_norm = "enorm",
                       .hidden_norm = "hnorm",
                       .projection = "eh_proj",
                       .final_norm = "shared_head.norm",
                       .layers = "model.layers.",
                       .layer = layers};
  deepseek.copies = {guessing + "embed_tokens.", guessing + "shared_head.head."};
  const MtpNames qwen = {.module = "mtp.",
                         .token_norm = "pre_fc_norm_embedding",
                         .hidden_norm = "pre_fc_norm_hidden",
                         .projection = "fc",
                         .final_norm = "norm",
                         .layers = "mtp.layers."};
  const MtpNames mimo = {.module = "model.mtp_layers.0.",
                         .token_norm = "token_layernorm",
                         .hidden_norm = "hidden_layernorm",
                         .projection = "input_proj",
                         .final_norm = "final_layernorm",
                         .layers = "model.mtp_layers.",
                         .way = FeatureInput::kFeatureFirst};
  const MtpNames mimo_v2 = {.module = "model.mtp.layers.0.",
                            .token_norm = "enorm",
                            .hidden_norm = "hnorm",
                            .projection = "eh_proj",
                            .final_norm = "final_layernorm",
                            .layers = "model.mtp.layers.",
                            .ffn_norm = "pre_mlp_layernorm",
                            .slides = true};
  return {deepseek, qwen, mimo, mimo_v2};
}

// As WeightBinder finds the model's own tensors.
std::string in_root(const ModelSpec& target, const card::Checkpoint& tensors, std::string name) {
  constexpr std::string_view kUsual = "model.";
  for (const std::string& root : target.roots) {
    if (tensors.find(root + "embed_tokens.weight") == nullptr) continue;
    if (name.starts_with(kUsual)) return root + name.substr(kUsual.size());
    return root.ends_with(".model.") ? root.substr(0, root.size() - kUsual.size()) + name : name;
  }
  return name;
}

const card::StoredTensor* module_tensor(const ModelSpec& target, const card::Checkpoint& tensors,
                                        const MtpNames& names) {
  const std::string path = in_root(target, tensors, concat({names.module, names.projection}));
  for (const char* suffix : {".weight", ".qweight", ".weight_packed"})
    if (const auto* found = tensors.find(path + suffix)) return found;
  return nullptr;
}

std::optional<MtpNames> find_module(const ModelSpec& target, const card::Checkpoint& tensors) {
  for (MtpNames& names : names_in(target))
    if (module_tensor(target, tensors, names) != nullptr) return std::move(names);
  return std::nullopt;
}

bool attends(const Sublayer& sublayer) {
  return std::holds_alternative<Attention>(sublayer.op) ||
         std::holds_alternative<LatentAttention>(sublayer.op);
}

bool has_window(const Sublayer& sublayer) {
  const auto* attention = std::get_if<Attention>(&sublayer.op);
  return attention != nullptr && attention->window > 0;
}

// The sublayers of a layer of the module.
Result<std::vector<Sublayer>> module_layer(const ModelSpec& target, const MtpNames& names) {
  const auto& all = target.sublayers;
  const auto is_mixer = [&](const Sublayer& sublayer) {
    return names.slides ? has_window(sublayer) : attends(sublayer);
  };
  const auto mixer = std::find_if(all.rbegin(), all.rend(), is_mixer);
  const auto dense = std::ranges::find_if(
      all, [](const Sublayer& one) { return std::holds_alternative<Dense>(one.op); });
  if (mixer == all.rend() || (names.slides ? dense == all.end() : mixer == all.rbegin()))
    return fail(ErrorCode::kUnsupported,
                concat({"the module that drafts for ", target.family,
                        ": expected a model with a layer of attention, found none"}));
  if (const auto* latent = std::get_if<LatentAttention>(&mixer->op);
      latent != nullptr && latent->indexer.heads > 0)
    return fail(ErrorCode::kUnsupported,
                concat({"the module that drafts for ", target.family,
                        ": expected attention to all tokens, found an indexer that chooses some"}));
  std::vector<Sublayer> layer = {*mixer, names.slides ? *dense : *(mixer - 1)};
  layer[1].pre->module = names.ffn_norm;
  for (Sublayer& sublayer : layer) {
    sublayer.stored_layer = names.layer;
    sublayer.memory_of = -1;
  }
  return layer;
}

Result<double> mean_of(const card::StoredTensor& stored) {
  WeightStore store;
  const int64_t count = stored.tensor.elements();
  WEIR_ASSIGN(const float* numbers,
              store.add_widened(stored.tensor.type, stored.tensor.data, count, 0));
  return std::accumulate(numbers, numbers + count, 0.0) / static_cast<double>(count);
}

// Converters that keep the module store its norms as w, or as the w + 1 that they mean, whatever
// the model's own are. The layer's norm is like the model's of the same name: whichever is nearer.
std::optional<bool> norms_are_sums(const ModelSpec& target, const card::ModelCard& card,
                                   const std::string& layer) {
  const card::Checkpoint& tensors = *card.tensors;
  const std::string norm = "input_layernorm.weight";
  const auto* own = tensors.find(in_root(target, tensors, layer + norm));
  const auto* model = tensors.find(in_root(target, tensors, target.layers + "0." + norm));
  WeightStore store;
  const bool sums = WeightBinder(tensors, target, card.weights, {}, store).norms_are_sums();
  if (own == nullptr || model == nullptr || own->tensor.elements() == 0 ||
      model->tensor.elements() == 0 || tensors.file(*own).only_beginning())
    return sums;
  const auto is_float = [](const card::StoredTensor* t) {
    return std::ranges::count(kFloatTypes, t->tensor.type) > 0;
  };
  if (!is_float(own) || !is_float(model)) return sums;  // The binder refuses them.
  const Result<double> own_mean = mean_of(*own), model_mean = mean_of(*model);
  if (!own_mean || !model_mean) return sums;
  const double meant = *model_mean + (sums ? 0 : 1);
  return std::abs(*own_mean - meant) <= std::abs(*own_mean + 1 - meant);
}

DraftSpec module_spec(const ModelSpec& model, const MtpNames& names, std::vector<Sublayer> layer) {
  DraftSpec draft;
  ModelSpec& m = draft.net = model;
  m.family += " MTP";
  m.sublayers = std::move(layer);
  m.layers = names.layers;
  m.other_layers.clear();
  m.token_inputs.reset();
  m.guessing_layers = 0;
  m.tied_head = true;
  const auto whole = [&](std::string_view part) { return concat({names.module, part}); };
  m.renames.insert(m.renames.begin(), {"norm", whole(names.final_norm)});
  Norm norm = m.final_norm;
  FeatureInput features = {
      .way = names.way, .width = model.hidden_size, .projection = whole(names.projection)};
  features.norm = family::named(norm, whole(names.hidden_norm).c_str());
  features.token_norm = family::named(norm, whole(names.token_norm).c_str());
  m.features = features;
  m.towers.insert(m.towers.end(), names.copies.begin(), names.copies.end());
  draft.taps = {{.sublayer = static_cast<int>(model.sublayers.size()), .normed = true}};
  draft.chained = {.sublayer = static_cast<int>(m.sublayers.size()), .normed = true};
  draft.within = names.module;
  return draft;
}

// A module in files of its own: of Qwen3's kind, with a dense network.
Result<DraftSpec> own_files(const ModelSpec& target, const card::ModelCard& files) {
  const ConfigReader c(files.config.root());
  constexpr family::Defaults kDefaults = {};
  ModelSpec m = family::decoder(c, kDefaults);
  Attention attention = family::gqa(c, kDefaults);
  attention.qk_norm = Attention::kPerHead;
  attention.qk_norm_eps = family::rms(c, kDefaults).eps;
  attention.qkv_bias = attention.out_bias = c.bool_or("attention_bias", false);
  const Dense mlp = family::gated_ffn(c, "intermediate_size");
  c.expect_int("num_hidden_layers", layer_count(target));
  c.expect_int("num_nextn_predict_layers", 1);
  m.family = "Qwen3";
  WEIR_TRY(c.finish());
  const MtpNames names = names_in(target)[1];
  DraftSpec draft =
      module_spec(m, names, family::pre_norm(family::rms(c, kDefaults), attention, mlp));
  draft.taps = {{.sublayer = static_cast<int>(target.sublayers.size()), .normed = true}};
  return draft;
}

}  // namespace

bool has_draft_module(const ModelSpec& target, const card::ModelCard& card) {
  return find_module(target, *card.tensors).has_value();
}

Result<DraftSpec> mtp_spec(const ModelSpec& target, const card::ModelCard& card,
                           const card::ModelCard* files) {
  if (files != nullptr) return own_files(target, *files);
  const std::optional<MtpNames> names = find_module(target, *card.tensors);
  if (!names)
    return fail(ErrorCode::kUnsupported,
                concat({card.tensors->name(),
                        ": expected a module that drafts (MTP), found none "
                        "among the tensors of ",
                        target.family}));
  WEIR_ASSIGN(std::vector<Sublayer> layer, module_layer(target, *names));
  DraftSpec draft = module_spec(target, *names, std::move(layer));
  draft.within = in_root(target, *card.tensors, names->module);
  for (std::string& copy : draft.net.towers) copy = in_root(target, *card.tensors, copy);
  if (target.final_norm.weight_offset != 0)
    draft.net.norms_are_sums =
        norms_are_sums(target, card, concat({names->layers, std::to_string(names->layer), "."}));
  return draft;
}

}  // namespace weir::model
