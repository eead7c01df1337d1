// What towers share. A family's file starts from these and states differences. Families are
// data: no arithmetic on tensors, no weights.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "card/config_reader.h"
#include "encoder/spec.h"

namespace weir::encoder::family {

using card::ConfigReader;

// What is read: config.json as a whole, whose keys are those of the text's model too, and its
// vision_config, every key of which must be read or compute nothing.
struct Config {
  const ConfigReader& all;
  const ConfigReader& vision;
  int text_width = 0;      // Of the text model's rows.
  float text_eps = 1e-5f;  // Of its norms.
};

using Describe = EncoderSpec (*)(const Config& c);

// What is read for sounds: config.json as a whole, and its audio_config, every key of which must be
// read or compute nothing.
struct SoundConfig {
  const ConfigReader& all;
  const ConfigReader& audio;
  int text_width = 0;  // Of the text model's rows.
};

using DescribeSound = EncoderSpec (*)(const SoundConfig& c);

// Sizes of a tower that config.json leaves out: those of its configuration in transformers.
struct Sizes {
  int width = 768;
  int mlp = 3072;
  int layers = 12;
  int heads = 12;
  int image = 224;  // Pixels of a view's side.
  int patch = 16;
  float eps = 1e-6f;
  std::string_view act = "gelu_pytorch_tanh";
};

// ViT-L's, of which several families' towers are.
constexpr Sizes vit_large(int image, int patch) {
  return {.width = 1024,
          .mlp = 4096,
          .layers = 24,
          .heads = 16,
          .image = image,
          .patch = patch,
          .act = "gelu"};
}

// Far above any published tower's, and small enough that products of two of them fit 63 bits.
inline constexpr int kLayersMax = 1024;
inline constexpr int kWidthMax = 1 << 16;
inline constexpr int kSideMax = 1 << 14;  // Of pixels, or of a table.
inline constexpr int kMergeMax = 64;      // Patches of a square's side.
inline constexpr int kRatioMax = 64;      // Of a network's width to a row's; of frames to a patch.

// Appends a stage; of Attention and Mlp, with the norm before it.
void add(EncoderSpec& spec, Operation op, std::optional<Norm> pre = {});

kernels::Act activation(const ConfigReader& c, std::string_view key, std::string_view fallback);
// A number, or the same one twice ([14, 14]).
int side(const ConfigReader& c, std::string_view key, int fallback);
Norm layer_norm(std::string module, float eps);
Norm rms_norm(std::string module, float eps);

// Width, patch and colours; no stages.
EncoderSpec bare_tower(const Config& c, const Sizes& sizes);
// Patches across a view of image_size pixels.
int patches_across(const Config& c, const Sizes& sizes);
// Heads, their size and the scale of their scores.
Attention attention_heads(const Config& c, const EncoderSpec& spec, const Sizes& sizes,
                          std::string_view key = "num_attention_heads");
// Width and activation.
Mlp mlp_sizes(const Config& c, const Sizes& sizes);
int layer_count(const Config& c, const Sizes& sizes, std::string_view key = "num_hidden_layers");
// The side of a square table of as many rows as `key` says.
int table_side(const Config& c, std::string_view key, int fallback);

// Blocks of attention and a network of two linear layers (mlp.fc1, mlp.fc2), each after a layer
// norm, whose weights lie under `layers` and the block's number.
struct PlainBlocks {
  std::string layers{};  // "tower.encoder.layers."
  const char* attention_out = "out_proj";
  const char* attention_norm = "layer_norm1";
  const char* mlp_norm = "layer_norm2";
  float eps = 1e-6f;
};
void add_blocks(EncoderSpec& spec, int count, Attention attention, Mlp mlp,
                const PlainBlocks& blocks);

// A SigLIP or CLIP tower: patches, then plain blocks. No norm after the last one.
EncoderSpec clip_tower(const Config& c, const Sizes& sizes);
// SigLIP's sizes, positions one by one, and the norm after the last block.
EncoderSpec siglip_tower(const Config& c);
// The roots of a tower at `tower` ("vision_tower."), in files of any version: with "model." before,
// and with "vision_model." after or without. Of a projector: with "model." before or without.
std::vector<std::string> tower_roots(const std::string& tower);
std::vector<std::string> projector_roots(const std::string& projector);

// How many of `layers` blocks come before the hidden states that `key` names: 0 is what enters the
// first block, -1 what the last one gives.
int feature_layer(const ConfigReader& c, std::string_view key, int fallback, int layers);
// The base of the rates by which heads turn, in both spellings of transformers.
float rope_theta(const ConfigReader& c, float fallback);
// Drops the class row, as vision_feature_select_strategy says, which is "default" or "full".
void add_selection(EncoderSpec& spec, const Config& c);
// The LLaVA projector: linear_1, an activation (projector_hidden_act), linear_2.
void add_llava_projector(EncoderSpec& spec, const Config& c, bool bias = true);

// A tower that reads blocks of patches with a next frame, as the Qwen-VL families and GLM's do: up
// to the heads' angles, without stages.
EncoderSpec block_tower(const Config& c, const Sizes& sizes,
                        std::string_view width_key = "hidden_size");
Attention block_heads(const Config& c, const EncoderSpec& spec, const Sizes& sizes);
// The parts of its i-th block: attention with fused queries, keys and values, and a network.
struct TowerBlock {
  Attention attention{};
  Mlp mlp{};  // Its modules by their names within a block.
  bool rms = false;
  float eps = 1e-6f;
};
void add_block(EncoderSpec& spec, const TowerBlock& block, int i);

// The Pixtral tower, up to the rows that vision_feature_layer names.
EncoderSpec pixtral_tower(const Config& c);

EncoderSpec fastvlm(const Config& c);
EncoderSpec gemma3(const Config& c);
EncoderSpec gemma4(const Config& c);
EncoderSpec glm4v(const Config& c);
EncoderSpec glm_ocr(const Config& c);
EncoderSpec idefics3(const Config& c);
EncoderSpec internvl(const Config& c);
EncoderSpec internvl_chat(const Config& c);
EncoderSpec lfm2_vl(const Config& c);
EncoderSpec llama4(const Config& c);
EncoderSpec llava(const Config& c);
EncoderSpec mistral3(const Config& c);
EncoderSpec paligemma(const Config& c);
EncoderSpec qwen2_5_vl(const Config& c);
EncoderSpec qwen2_vl(const Config& c);
EncoderSpec qwen3_5(const Config& c);
EncoderSpec qwen3_vl(const Config& c);

EncoderSpec gemma3n_audio(const SoundConfig& c);
EncoderSpec gemma4_audio(const SoundConfig& c);
EncoderSpec qwen2_audio(const SoundConfig& c);
EncoderSpec whisper(const SoundConfig& c);

}  // namespace weir::encoder::family
