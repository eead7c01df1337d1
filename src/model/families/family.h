// What most decoder-only checkpoints share. A family file starts from these and states differences.
// Families are data: no arithmetic on tensors, no weights, no device.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "card/config_reader.h"
#include "model/spec.h"

namespace weir::model::family {

using card::ConfigReader;

using Describe = ModelSpec (*)(const ConfigReader& c);

// What a family takes for the keys that config.json leaves out: the values of its configuration in
// transformers.
struct Defaults {
  // 0: config.json must say it, as all published ones of most families do.
  int vocab_size = 0;
  int num_attention_heads = 0;
  int context = 0;
  float rms_norm_eps = 1e-6f;
  float rope_theta = 10000;
  int num_key_value_heads = 0;  // 0: as many as query heads, which null always means.
  int head_dim = 0;             // 0: hidden_size / num_attention_heads, which null always means.
  bool tied_head = false;
  float partial_rotary_factor = 1;
  float norm_offset = 0;  // Norm::weight_offset.
  // What the family calls these keys.
  const char* hidden_key = "hidden_size";
  const char* heads_key = "num_attention_heads";
  const char* context_key = "max_position_embeddings";
  const char* eps_key = "rms_norm_eps";
};

// Vocabulary, width, context, final norm, tied head. Reads num_hidden_layers' sibling keys only;
// layers are the family's.
ModelSpec decoder(const ConfigReader& c, const Defaults& defaults);
// The same with layer norms that have biases.
ModelSpec layer_norm_decoder(const ConfigReader& c, const Defaults& defaults);
int num_layers(const ConfigReader& c, std::string_view key = "num_hidden_layers");
Norm rms(const ConfigReader& c, const Defaults& defaults);
Norm named(Norm norm, const char* module);
// Heads, head size, scale, rope.
Attention gqa(const ConfigReader& c, const Defaults& defaults);
// theta and scaling in both spellings: rope_theta with rope_scaling, and rope_parameters, which may
// be a map by layer type ("full_attention").
Rope rope(const ConfigReader& c, int head_dim, float theta, std::string_view layer_type,
          float partial_rotary_factor = 1);
// The same attention beside images, where positions are three numbers: by which of them pairs turn.
Attention by_three_positions(const ConfigReader& c, Attention attn);
// Of sliding layers with a base of their own and no scaling, unless rope_parameters is a map that
// says what they have.
Rope sliding_rope(const ConfigReader& c, const Attention& full, float theta);
// llama_4_scaling_beta, by which queries grow with their position: attention's position_beta and
// position_step.
void grow_queries(const ConfigReader& c, float& beta, int& step);
// By what DeepSeek's latent attention multiplies its softmax scale under yarn: m(mscale_all_dim)^2.
float yarn_softmax_factor(const ConfigReader& c, const Rope& rope);

// What a family takes for the keys of the indexer that are missing.
struct IndexerSizes {
  int heads = 64;
  int dim = 128;
  int top_k = 2048;
};
// What a family with latent attention takes for the keys of it that are missing.
struct LatentSizes {
  int q_rank = 1536;
  int kv_rank = 512;
  int nope_dim = 128;
  int rope_dim = 64;
  int v_head_dim = 128;
  float rope_theta = 10000;
};
// Heads, ranks, biases, scale and rope, of which yarn's mscale_all_dim counts for the scale.
LatentAttention latent_attention(const ConfigReader& c, const LatentSizes& defaults);
// The same, of whose tokens an indexer chooses some.
LatentAttention sparse_latent_attention(const ConfigReader& c, const LatentSizes& defaults,
                                        const IndexerSizes& indexer);

Dense gated_ffn(const ConfigReader& c, std::string_view width_key);  // hidden_act.
int ffn_width(const ConfigReader& c, std::string_view key);
Act activation(const ConfigReader& c, std::string_view key, std::string_view fallback);

// Experts chosen by sigmoid and a learned bias, within groups, as DeepSeek V3 does; shared ones
// beside them. What a family calls their keys, and what it takes for those that are missing.
struct BiasedExperts {
  const char* count_key = "n_routed_experts";
  int count = 128;
  int top_k = 8;
  const char* shared_key = "n_shared_experts";
  int shared = 1;
  bool renormalise = true;
  float scale = 1;
  int groups = 1, groups_kept = 1;
};
Moe biased_moe(const ConfigReader& c, const BiasedExperts& defaults);
// Which layers have experts: by mlp_layer_types if given, else from `first` on, and of those each
// moe_layer_freq-th.
std::vector<bool> sparse_layers(const ConfigReader& c, int first);
// Layers with experts but for the first ones, first_k_dense_replace or `dense_layers`, and
// attention by layer. Shared experts have DeepSeek's names, and layers that guess are left.
ModelSpec first_dense(const ConfigReader& c, const Defaults& defaults, const Moe& moe,
                      int dense_layers, const std::function<Operation(int)>& attention);
// `count` networks like `one`, computed as one; none of 0.
std::optional<Dense> shared_experts(Dense one, int count);
// Stored names: shared experts under `module`, as mlp.shared_experts.gate_proj.
void rename_shared(ModelSpec& m, const std::string& module);
// w1, w3 and w2 of block_sparse_moe are gate, up and down.
void rename_block_sparse(ModelSpec& m);

// On embedding, logits and sublayers.
void granite_multipliers(const ConfigReader& c, ModelSpec& m);

// A layer: x + mixer(norm(x)), then x + ffn(norm(x)). Norms have Llama's names.
std::vector<Sublayer> pre_norm(Norm norm, Operation mixer, Operation ffn);
// x + norm(mixer(x)), then x + norm(ffn(x)); with OLMo's names.
std::vector<Sublayer> post_norm(Norm norm, Operation mixer, Operation ffn);
// x + mixer(norm(x)) + ffn(norm(x)), of one norm: Llama's first.
std::vector<Sublayer> parallel_norm(Norm norm, Operation mixer, Operation ffn);
// Gemma's: a norm also after each sublayer, before it is added; with Gemma's names.
std::vector<Sublayer> sandwich_norm(Norm norm, Operation mixer, Operation ffn);
// Appends the next layer of the checkpoint; as many alike.
void add_layer(ModelSpec& m, std::vector<Sublayer> sublayers);
void add_layers(ModelSpec& m, int count, const std::vector<Sublayer>& sublayers);

// decoder() with num_hidden_layers layers pre_norm(), all alike.
ModelSpec pre_norm_model(const ConfigReader& c, const Defaults& defaults, const Attention& attn,
                         const Dense& ffn);

// The family assumes this value.
void expect_string(const ConfigReader& c, std::string_view key, std::string_view value);
// The model of text within one of images or sound: `describe` of what `key` has. Its tensors are
// named after one of `roots`; those that begin with a name of `towers` belong to the others.
ModelSpec text_within(const ConfigReader& c, Describe describe, std::vector<std::string> roots,
                      std::vector<std::string> towers, std::string_view key = "text_config");

// sliding_window in tokens; 0 is none, and so is null.
int sliding_window(const ConfigReader& c, int fallback);
// A cap on logits; 0 is none, and so is null.
float softcap(const ConfigReader& c, std::string_view key, float fallback);
// True for each layer of type `type`: by `layer_types` if given, which must then name each layer
// that or `other`, else by `otherwise`.
std::vector<bool> layers_of_type(const ConfigReader& c, std::string_view type,
                                 const std::function<bool(int)>& otherwise,
                                 std::string_view other = "full_attention");
// Which layers are of type sliding_attention.
std::vector<bool> sliding_layers(const ConfigReader& c, const std::function<bool(int)>& otherwise);

ModelSpec afmoe(const ConfigReader& c);
ModelSpec apertus(const ConfigReader& c);
ModelSpec arcee(const ConfigReader& c);
ModelSpec baichuan_m1(const ConfigReader& c);
ModelSpec bailing_moe(const ConfigReader& c);
ModelSpec bailing_moe_v2(const ConfigReader& c);
ModelSpec bitnet(const ConfigReader& c);
ModelSpec cohere(const ConfigReader& c);
ModelSpec cohere2(const ConfigReader& c);
ModelSpec deepseek_v2(const ConfigReader& c);
ModelSpec deepseek_v3(const ConfigReader& c);
ModelSpec deepseek_v32(const ConfigReader& c);
ModelSpec deepseek_v4(const ConfigReader& c);
ModelSpec dots1(const ConfigReader& c);
ModelSpec ernie4_5(const ConfigReader& c);
ModelSpec ernie4_5_moe(const ConfigReader& c);
ModelSpec exaone(const ConfigReader& c);
ModelSpec exaone4(const ConfigReader& c);
ModelSpec exaone_moe(const ConfigReader& c);
ModelSpec falcon_h1(const ConfigReader& c);
ModelSpec falcon_mamba(const ConfigReader& c);
ModelSpec fastvlm(const ConfigReader& c);
ModelSpec gemma(const ConfigReader& c);
ModelSpec gemma2(const ConfigReader& c);
ModelSpec gemma3(const ConfigReader& c);
ModelSpec gemma3_text(const ConfigReader& c);
ModelSpec gemma3n(const ConfigReader& c);
ModelSpec gemma3n_text(const ConfigReader& c);
ModelSpec gemma4(const ConfigReader& c);
ModelSpec gemma4_text(const ConfigReader& c);
ModelSpec glm(const ConfigReader& c);
ModelSpec glm4(const ConfigReader& c);
ModelSpec glm4_moe(const ConfigReader& c);
ModelSpec glm4_moe_lite(const ConfigReader& c);
ModelSpec glm4v(const ConfigReader& c);
ModelSpec glm4v_text(const ConfigReader& c);
ModelSpec glm_moe_dsa(const ConfigReader& c);
ModelSpec glm_ocr(const ConfigReader& c);
ModelSpec glm_ocr_text(const ConfigReader& c);
ModelSpec gpt2(const ConfigReader& c);
ModelSpec gpt_bigcode(const ConfigReader& c);
ModelSpec gpt_neox(const ConfigReader& c);
ModelSpec gpt_oss(const ConfigReader& c);
ModelSpec granite(const ConfigReader& c);
ModelSpec granitemoe(const ConfigReader& c);
ModelSpec granitemoehybrid(const ConfigReader& c);
ModelSpec granitemoeshared(const ConfigReader& c);
ModelSpec helium(const ConfigReader& c);
ModelSpec hunyuan_v1_dense(const ConfigReader& c);
ModelSpec hunyuan_v1_moe(const ConfigReader& c);
ModelSpec idefics3(const ConfigReader& c);
ModelSpec internlm2(const ConfigReader& c);
ModelSpec internlm3(const ConfigReader& c);
ModelSpec internvl(const ConfigReader& c);
ModelSpec internvl_chat(const ConfigReader& c);
ModelSpec jamba(const ConfigReader& c);
ModelSpec kimi_k25(const ConfigReader& c);
ModelSpec kimi_linear(const ConfigReader& c);
ModelSpec lfm2(const ConfigReader& c);
ModelSpec lfm2_moe(const ConfigReader& c);
ModelSpec lfm2_vl(const ConfigReader& c);
ModelSpec lille(const ConfigReader& c);
ModelSpec llama(const ConfigReader& c);
ModelSpec llama4(const ConfigReader& c);
ModelSpec llama4_text(const ConfigReader& c);
ModelSpec llava(const ConfigReader& c);
ModelSpec longcat_flash(const ConfigReader& c);
ModelSpec mamba(const ConfigReader& c);
ModelSpec mamba2(const ConfigReader& c);
ModelSpec mimo(const ConfigReader& c);
ModelSpec mimo_v2_flash(const ConfigReader& c);
ModelSpec minicpm(const ConfigReader& c);
ModelSpec minicpm3(const ConfigReader& c);
ModelSpec minimax(const ConfigReader& c);
ModelSpec minimax_m2(const ConfigReader& c);
ModelSpec ministral(const ConfigReader& c);
ModelSpec ministral3(const ConfigReader& c);
ModelSpec mistral(const ConfigReader& c);
ModelSpec mistral3(const ConfigReader& c);
ModelSpec mistral4(const ConfigReader& c);
ModelSpec mixtral(const ConfigReader& c);
ModelSpec nanochat(const ConfigReader& c);
ModelSpec nemotron(const ConfigReader& c);
ModelSpec nemotron_h(const ConfigReader& c);
ModelSpec olmo(const ConfigReader& c);
ModelSpec olmo2(const ConfigReader& c);
ModelSpec olmo3(const ConfigReader& c);
ModelSpec olmo_hybrid(const ConfigReader& c);
ModelSpec olmoe(const ConfigReader& c);
ModelSpec openelm(const ConfigReader& c);
ModelSpec paligemma(const ConfigReader& c);
ModelSpec phi(const ConfigReader& c);
ModelSpec phi3(const ConfigReader& c);
ModelSpec phimoe(const ConfigReader& c);
ModelSpec qwen2(const ConfigReader& c);
ModelSpec qwen2_moe(const ConfigReader& c);
ModelSpec qwen2_vl(const ConfigReader& c);
ModelSpec qwen2_vl_text(const ConfigReader& c);
ModelSpec qwen3(const ConfigReader& c);
ModelSpec qwen3_5(const ConfigReader& c);
ModelSpec qwen3_5_moe(const ConfigReader& c);
ModelSpec qwen3_5_moe_text(const ConfigReader& c);
ModelSpec qwen3_5_text(const ConfigReader& c);
ModelSpec qwen3_moe(const ConfigReader& c);
ModelSpec qwen3_next(const ConfigReader& c);
ModelSpec qwen3_vl(const ConfigReader& c);
ModelSpec qwen3_vl_moe(const ConfigReader& c);
ModelSpec qwen3_vl_moe_text(const ConfigReader& c);
ModelSpec qwen3_vl_text(const ConfigReader& c);
ModelSpec seed_oss(const ConfigReader& c);
ModelSpec smollm3(const ConfigReader& c);
ModelSpec solar_open(const ConfigReader& c);
ModelSpec stablelm(const ConfigReader& c);
ModelSpec starcoder2(const ConfigReader& c);
ModelSpec whisper(const ConfigReader& c);
ModelSpec youtu(const ConfigReader& c);

}  // namespace weir::model::family
