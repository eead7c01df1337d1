// Whisper's encoder, of Whisper itself and of Qwen2-Audio, which gives text the means of two rows.
#include <cmath>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

// Those of the configurations in transformers.
struct WhisperSizes {
  int width, layers, heads, mlp, bands;
};
constexpr WhisperSizes kWhisper = {384, 4, 6, 1536, 80};
constexpr WhisperSizes kQwen2Audio = {1280, 32, 20, 5120, 128};
constexpr float kEps = 1e-5f;
constexpr int kPositionsMax = 1 << 16;  // Twenty minutes.

void add_block(EncoderSpec& spec, const std::string& layer, Attention attention, Mlp mlp) {
  attention.q = layer + "self_attn.q_proj";
  attention.k = layer + "self_attn.k_proj";
  attention.v = layer + "self_attn.v_proj";
  attention.out = layer + "self_attn.out_proj";
  add(spec, attention, layer_norm(layer + "self_attn_layer_norm", kEps));
  mlp.up = layer + "fc1";
  mlp.out = layer + "fc2";
  add(spec, mlp, layer_norm(layer + "final_layer_norm", kEps));
}

// All up to the blocks, without the norm after them.
EncoderSpec blocks(const ConfigReader& c, const WhisperSizes& sizes) {
  EncoderSpec spec;
  spec.bands = c.int_or("num_mel_bins", sizes.bands, 1, kWidthMax);
  const int width = c.int_or("d_model", sizes.width, 1, kWidthMax);
  const int heads = c.int_or("encoder_attention_heads", sizes.heads, 1, kWidthMax);
  if (width % heads != 0)
    c.reject("encoder_attention_heads: expected a divisor of d_model, " + std::to_string(width) +
             ", found " + std::to_string(heads));
  c.expect_bool("scale_embedding", false);
  const kernels::Act act = activation(c, "activation_function", "gelu");
  // The convolutions' own is GELU, whatever the blocks have.
  add(spec, TimeConv{.module = "tower.conv1", .channels = width});
  add(spec, TimeConv{.module = "tower.conv2",
                     .channels = width,
                     .time = {.stride = 2},
                     .positions = "tower.embed_positions.weight",
                     .positions_max = c.int_or("max_source_positions", 1500, 1, kPositionsMax)});
  const int head_dim = std::max(width / heads, 1);
  const Attention attention = {.heads = heads,
                               .head_dim = head_dim,
                               .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                               .key_bias = false};
  const Mlp mlp = {.width = c.int_or("encoder_ffn_dim", sizes.mlp, 1, kWidthMax), .act = act};
  const int layers = c.int_or("encoder_layers", sizes.layers, 1, kLayersMax);
  for (int i = 0; i < layers; ++i)
    add_block(spec, "tower.layers." + std::to_string(i) + ".", attention, mlp);
  // Of training; and the number of layers, said once more.
  for (const char* key :
       {"activation_dropout", "encoder_layerdrop", "init_std", "num_hidden_layers"})
    c.ignore(key);
  return spec;
}

void add_last_norm(EncoderSpec& spec) {
  add(spec, Normalise{layer_norm("tower.layer_norm", kEps)});
}

}  // namespace

EncoderSpec whisper(const SoundConfig& c) {
  EncoderSpec spec = blocks(c.audio, kWhisper);
  spec.all_frames = true;
  add_last_norm(spec);
  // The decoder's.
  for (const char* key :
       {"decoder_attention_heads", "decoder_ffn_dim", "decoder_layerdrop", "decoder_layers",
        "forced_decoder_ids", "max_target_positions", "tie_word_embeddings", "vocab_size"})
    c.all.ignore(key);
  // Of training, of classifying, and of the times of words.
  for (const std::string_view key : c.all.keys())
    for (const std::string_view begin : {"mask_", "classifier_", "use_weighted_layer_sum",
                                         "apply_spec_augment", "median_filter_width"})
      if (key.starts_with(begin)) c.all.ignore(key);
  spec.tower_roots = {"model.encoder.", "encoder."};
  return spec;
}

EncoderSpec qwen2_audio(const SoundConfig& c) {
  EncoderSpec spec = blocks(c.audio, kQwen2Audio);
  spec.frames_multiple = 2;  // The second convolution's last row reads two.
  add(spec, Thin{.step = 2, .mean = true});
  add_last_norm(spec);
  add(spec, Project{.module = "projector.linear", .width = c.text_width});
  spec.tower_roots = {"audio_tower.", "model.audio_tower."};
  spec.projector_roots = projector_roots("multi_modal_projector.");
  return spec;
}

}  // namespace weir::encoder::family
