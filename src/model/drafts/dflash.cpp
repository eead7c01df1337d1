// DFlash (arXiv 2602.06036; z-lab/dflash): layers of Qwen3's kind that fill a block at once. What
// the model's layers have computed of the text, projected, leaves keys and values in each layer;
// the rows of a block, a token and masks after it, attend to those and to one another.
#include "base/concat.h"
#include "model/drafts/draft_spec.h"
#include "model/families/family.h"

namespace weir::model {

namespace {

using card::ConfigReader;

constexpr family::Defaults kDefaults = {};
constexpr int kBlockMax = 64;  // Four times the largest published.
constexpr int kTapsMax = 64;

}  // namespace

Result<DraftSpec> dflash_spec(const ModelSpec& target, const card::ModelCard& files) {
  const ConfigReader c(files.config.root());
  DraftSpec draft;
  ModelSpec& m = draft.net = family::decoder(c, kDefaults);
  m.family = "DFlash";
  Attention attention = family::gqa(c, kDefaults);
  attention.qk_norm = Attention::kPerHead;
  attention.qk_norm_eps = family::rms(c, kDefaults).eps;
  attention.qkv_bias = attention.out_bias = c.bool_or("attention_bias", false);
  const Dense mlp = family::gated_ffn(c, "intermediate_size");
  const int window = family::sliding_window(c, 0);
  const std::vector<bool> slides = family::sliding_layers(c, [](int) { return false; });
  c.expect_bool("is_causal", false);
  c.expect_bool("causal", false);
  for (int i = 0; i < family::num_layers(c); ++i) {
    Attention one = attention;
    one.window = slides[static_cast<size_t>(i)] ? window : 0;
    family::add_layer(m, family::pre_norm(family::rms(c, kDefaults), one, mlp));
  }
  m.layers = "layers.";
  m.renames = {{"norm", "norm"}};

  std::vector<int> ids;
  draft.block = c.int_or("block_size", 0, 0, kBlockMax);
  if (const auto own = c.child("dflash_config")) {
    ids = own->ints("target_layer_ids", 0);
    draft.mask_token = own->require_int("mask_token_id", 0, target.vocab_size - 1);
    draft.block = own->int_or("block_size", draft.block, 0, kBlockMax);
    own->expect_bool("causal", false);
  } else {
    c.reject("'dflash_config': expected an object, found none");
  }
  if (draft.block < 2)
    c.reject(concat({"'block_size': expected 2 to ", std::to_string(kBlockMax), ", found ",
                     std::to_string(draft.block)}));
  if (ids.empty() || std::ssize(ids) > kTapsMax)
    c.reject(concat({"'dflash_config.target_layer_ids': expected 1 to ", std::to_string(kTapsMax),
                     " layers, found ", std::to_string(ids.size())}));
  if (c.has("num_target_layers")) c.expect_int("num_target_layers", layer_count(target));
  for (const char* key : {"use_sliding_window", "max_window_layers"}) c.ignore(key);
  m.features = FeatureInput{.way = FeatureInput::kAlone,
                            .width = static_cast<int>(ids.size()) * target.hidden_size,
                            .projection = "fc",
                            .out_norm = family::named(m.final_norm, "hidden_norm")};
  WEIR_TRY(c.finish());
  for (const int id : ids) {  // What leaves a layer enters the next one.
    WEIR_ASSIGN(const FeatureTap tap, stream_into(target, id + 1, "target_layer_ids"));
    draft.taps.push_back(tap);
  }
  return draft;
}

}  // namespace weir::model
