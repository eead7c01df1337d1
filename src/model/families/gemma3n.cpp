// Gemma 3n (text): several residual streams, a path of low rank beside attention, gates that are
// cut at a quantile of their row, numbers that tokens bring to each layer; sliding and full layers,
// the last ones of which read the keys of earlier ones.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rope_theta = 1e6f, .num_key_value_heads = 2, .head_dim = 256, .tied_head = true};

// By how many standard deviations a share `p` of normal numbers stays below: bisected.
float normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return static_cast<float>(low);
}

// One for each layer, or one for all.
template <class T>
std::vector<T> each(const ConfigReader& c, const char* key, std::vector<T> found) {
  const auto layers = static_cast<size_t>(num_layers(c));
  if (found.size() == 1) found.resize(layers, found[0]);
  if (found.size() != layers)
    c.reject(std::string(key) + ": expected a number or one for each of " + std::to_string(layers) +
             " layers, found " + std::to_string(found.size()));
  found.resize(layers);
  return found;
}

std::vector<float> sparsity(const ConfigReader& c) {
  constexpr const char* kKey = "activation_sparsity_pattern";
  const int layers = num_layers(c);
  std::vector<float> shares(static_cast<size_t>(layers));
  if (c.has(kKey))
    shares = each(c, kKey, c.floats(kKey));
  else if (layers > 10)
    std::fill_n(shares.begin(), 10, 0.95f);
  for (const float share : shares)
    if (!(share >= 0 && share < 1))
      c.reject(std::string(kKey) + ": expected numbers from 0 to less than 1, found " +
               std::to_string(share));
  return shares;
}

Attention attention(const ConfigReader& c, float norm_eps) {
  c.expect_bool("attention_bias", false);
  c.ignore("query_pre_attn_scalar");  // Scores are not scaled.
  Attention a = gqa(c, kDefaults);
  a.scale = 1;
  a.qk_norm = Attention::kPerHead;
  a.qk_norm_eps = norm_eps;
  a.v_norm = true;
  return a;
}

std::vector<Sublayer> layer_of(const Norm& norm, const Attention& attn, const Dense& dense,
                               const Dense& low_rank, const Dense& by_token) {
  std::vector<Sublayer> layer = sandwich_norm(norm, attn, dense);
  layer[0].predicts = true;
  layer[1].corrects = true;
  layer.insert(layer.begin() + 1, {.op = low_rank,
                                   .post = named(norm, "laurel.post_laurel_norm"),
                                   .input = Sublayer::kSameAsBefore,
                                   .plus_input = true,
                                   .stream_factor = std::sqrt(0.5f)});
  layer.push_back(
      {.op = by_token, .post = named(norm, "post_per_layer_input_norm"), .to_others = true});
  return layer;
}

}  // namespace

ModelSpec gemma3n_text(const ConfigReader& c) {
  for (const char* key : {"altup_coef_clip", "altup_lr_multiplier"}) c.ignore(key);  // Of training.
  ModelSpec m = decoder(c, kDefaults);
  const Norm norm = m.final_norm;
  m.embed_scale = std::sqrt(static_cast<float>(m.hidden_size));
  m.logit_softcap = softcap(c, "final_logit_softcapping", 30);
  m.streams = {.count = c.int_or("altup_num_inputs", 4),
               .active = c.int_or("altup_active_idx", 0),
               .scaled = c.bool_or("altup_correct_scale", true),
               .norm_eps = norm.eps};
  Attention full = attention(c, norm.eps), sliding = full;
  sliding.window = sliding_window(c, 512);
  sliding.rope = sliding_rope(c, full, c.float_or("rope_local_base_freq", 10000));
  Dense dense = {.act = activation(c, "hidden_activation", "gelu_pytorch_tanh")};
  const Dense low_rank = {
      .width = c.int_or("laurel_rank", 64, 1, 1 << 14), .gated = false, .linear = true};
  const Dense by_token = {.width = c.int_or("hidden_size_per_layer_input", 256, 1),
                          .act = dense.act,
                          .up_by_token = true};
  m.token_inputs = {.width = by_token.width,
                    .vocab_size = c.int_or("vocab_size_per_layer_input", 262144, 1),
                    .norm = named(norm, "model.per_layer_projection_norm")};
  const std::vector<int> widths = each(c, "intermediate_size", c.ints("intermediate_size", 1));
  const std::vector<float> shares = sparsity(c);
  const int layers = num_layers(c);
  const int first_shared = layers - c.int_or("num_kv_shared_layers", 15, 0, std::max(layers, 0));
  const std::vector<bool> slides = sliding_layers(c, [](int i) { return (i + 1) % 5 != 0; });
  int owner[2] = {-1, -1};  // Of the keys that later layers read: by whether they slide.
  for (int i = 0; i < layers; ++i) {
    const auto at = static_cast<size_t>(i);
    dense.width = widths[at];
    dense.gate_cut.reset();
    if (shares[at] > 0) dense.gate_cut = normal_quantile(static_cast<double>(shares[at]));
    std::vector<Sublayer> layer =
        layer_of(norm, slides[at] ? sliding : full, dense, low_rank, by_token);
    if (first_shared > 0 && i >= first_shared)
      layer[0].memory_of = owner[slides[at]];
    else
      owner[slides[at]] = static_cast<int>(m.sublayers.size());
    add_layer(m, std::move(layer));
  }
  m.renames = {{"low_rank.up_proj", "laurel.linear_left"},
               {"low_rank.down_proj", "laurel.linear_right"},
               {"token_input.gate_proj", "per_layer_input_gate"},
               {"token_input.down_proj", "per_layer_projection"}};
  return m;
}

ModelSpec gemma3n(const ConfigReader& c) {
  for (const char* key : {"audio_soft_tokens_per_image", "boa_token_id", "boi_token_id",
                          "eoa_token_id", "eoi_token_id", "vision_soft_tokens_per_image"})
    c.ignore(key);
  std::vector<std::string> towers;
  for (const char* tower : {"audio_tower.", "embed_audio.", "embed_vision.", "vision_tower."})
    for (const char* root : {"", "model."}) towers.push_back(std::string(root) + tower);
  return text_within(c, gemma3n_text, {"model.language_model.", "language_model.model."},
                     std::move(towers));
}

}  // namespace weir::model::family
