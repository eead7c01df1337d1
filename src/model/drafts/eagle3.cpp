// EAGLE-3 (arXiv 2503.01840): one decoder layer of Llama's kind, whose attention reads a token's
// embedding beside the residual stream, which begins with the streams of three layers of the model,
// projected. It chooses among the most frequent tokens by a head of its own.
#include "base/concat.h"
#include "model/drafts/draft_spec.h"
#include "model/families/family.h"

namespace weir::model {

namespace {

using card::ConfigReader;

constexpr family::Defaults kDefaults = {};
constexpr char kLayerIds[] = "eagle_aux_hidden_state_layer_ids";
constexpr int kTapsMax = 16;  // Five times as many as published ones have.

bool stores(const card::ModelCard& files, std::string_view name) {
  return files.tensors->find(name) != nullptr;
}

// The layers whose streams make a feature, which newer configs name.
std::vector<int> feature_layers(const ConfigReader& c, int layers) {
  std::vector<int> ids = c.ints(kLayerIds);
  if (const auto nested = c.child("eagle_config")) {
    if (ids.empty()) ids = nested->ints(kLayerIds);
    nested->ignore("use_aux_hidden_state");
  }
  if (ids.empty()) ids = {2, layers / 2, layers - 3};
  if (std::ssize(ids) > kTapsMax)
    c.reject(concat({kLayerIds, ": expected at most ", std::to_string(kTapsMax), ", found ",
                     std::to_string(ids.size())}));
  return ids;
}

}  // namespace

Result<DraftSpec> eagle3_spec(const ModelSpec& target, const card::ModelCard& files) {
  const ConfigReader c(files.config.root());
  DraftSpec draft;
  ModelSpec& m = draft.net = family::decoder(c, kDefaults);
  c.expect_int("num_hidden_layers", 1);
  m.family = "EAGLE-3";
  m.tied_head = false;
  m.head_rows = c.int_or("draft_vocab_size", m.vocab_size, 1, m.vocab_size);
  draft.own_head = draft.head_has_table = true;
  draft.own_embedding = stores(files, "embed_tokens.weight");

  Attention attention = family::gqa(c, kDefaults);
  attention.qkv_bias = c.bool_or("attention_bias", false);
  Dense mlp = family::gated_ffn(c, "intermediate_size");
  mlp.bias = c.bool_or("mlp_bias", false);
  const Norm norm = family::rms(c, kDefaults);
  const bool numbered = stores(files, "layers.0.self_attn.q_proj.weight");
  m.layers = numbered ? "layers." : "midlayer.";
  m.numbered_layers = numbered;
  const std::string layer = numbered ? "layers.0." : "midlayer.";
  m.towers = {"d2t", "t2d"};  // Read by the drafter, and of no use.
  m.renames = {{"norm", "norm"}, {"embed_tokens", "embed_tokens"}};

  const std::vector<int> ids = feature_layers(c, layer_count(target));
  FeatureInput features = {.way = FeatureInput::kBeside,
                           .width = static_cast<int>(ids.size()) * target.hidden_size,
                           .projection = "fc"};
  features.token_norm = family::named(norm, (layer + "input_layernorm").c_str());
  if (c.bool_or("norm_before_fc", false)) features.norm = family::named(norm, "input_norm");
  Sublayer attends = {.op = attention, .beside_token = true};
  const bool norm_first = c.bool_or("norm_before_residual", false);
  if (norm_first)
    features.out_norm = family::named(norm, (layer + "hidden_norm").c_str());
  else
    attends.pre = family::named(norm, "hidden_norm");
  m.features = features;
  m.sublayers = {attends, {.op = mlp, .pre = family::named(norm, "post_attention_layernorm")}};
  draft.chained = {.sublayer = 2};
  for (const char* key : {"target_hidden_size", "num_target_layers", "modelopt_version"})
    c.ignore(key);
  WEIR_TRY(c.finish());
  for (const int id : ids) {
    WEIR_ASSIGN(const FeatureTap tap, stream_into(target, id, kLayerIds));
    draft.taps.push_back(tap);
  }
  return draft;
}

}  // namespace weir::model
