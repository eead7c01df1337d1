// The conformers of Gemma 3n and Gemma 4: two convolutions that make a quarter of the frames,
// blocks of half a network, attention to rows before, a light convolution and the other half.
#include <array>
#include <cmath>
#include <numbers>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

constexpr int kBands = 128;
constexpr int kTapsMax = 256;
constexpr float kBlockEps = 1e-6f;  // Of most of a block's norms, whatever rms_norm_eps says.

// What a family calls the parts of a block, and what all blocks have.
struct Block {
  int taps = 5;   // Of the light convolution.
  int width = 0;  // Of a row.
  kernels::Act act = kernels::Act::kSilu;
  bool clipped = false;
  float residual = 0.5f;  // By what each half of the network counts.
  float limit = 0;
  float eps = kBlockEps;  // rms_norm_eps: of the light convolution's norms.
  const char* first = nullptr;
  const char* second = nullptr;  // Halves of the network.
  const char* before_attention = nullptr;
  const char* after_attention = nullptr;
  const char* last = nullptr;  // Norms.
};

void add_half(EncoderSpec& spec, const Block& block, const std::string& half, const char* weight) {
  Mlp mlp = {.width = 4 * block.width, .act = block.act, .bias = false, .clipped = block.clipped};
  mlp.up = half + ".ffw_layer_1" + weight;
  mlp.out = half + ".ffw_layer_2" + weight;
  add(spec, mlp, rms_norm(half + ".pre_layer_norm", kBlockEps));
  spec.stages.back().post = rms_norm(half + ".post_layer_norm", kBlockEps);
  spec.stages.back().factor = block.residual;
}

// `attention`: where its modules are within a block; `weight`: what stands between a module and its
// tensors.
void add_block(EncoderSpec& spec, const Block& block, const std::string& layer,
               LocalAttention attention, const char* weight) {
  const size_t begin = spec.stages.size();
  add_half(spec, block, layer + block.first, weight);
  for (std::string* module : {&attention.q, &attention.k, &attention.v, &attention.out})
    *module = layer + *module + weight;
  attention.relative = layer + attention.relative;
  attention.dim_scale = layer + attention.dim_scale;
  add(spec, std::move(attention), rms_norm(layer + block.before_attention, kBlockEps));
  spec.stages.back().post = rms_norm(layer + block.after_attention, kBlockEps);
  LightConv light;
  light.taps = block.taps;
  light.act = block.act;
  light.clipped = block.clipped;
  light.in = layer + "lconv1d.linear_start" + weight;
  light.conv = layer + "lconv1d.depthwise_conv1d";
  light.out = layer + "lconv1d.linear_end" + weight;
  light.norm = rms_norm(layer + "lconv1d.conv_norm", block.eps);
  add(spec, std::move(light), rms_norm(layer + "lconv1d.pre_layer_norm", block.eps));
  add_half(spec, block, layer + block.second, weight);
  add(spec, Normalise{rms_norm(layer + block.last, kBlockEps)});
  for (size_t i = begin; i < spec.stages.size(); ++i) spec.stages[i].limit = block.limit;
}

LocalAttention heads(const ConfigReader& c, const char* key, int fallback, int width) {
  const int heads = c.int_or(key, fallback, 1, kWidthMax);
  if (width % heads != 0)
    c.reject(std::string(key) + ": expected a divisor of hidden_size, " + std::to_string(width) +
             ", found " + std::to_string(heads));
  return {.heads = heads, .head_dim = std::max(width / heads, 1)};
}

// How far back a row sees, and in what chunks the reference computes that.
void read_window(const ConfigReader& c, const std::string& prefix, LocalAttention& attention) {
  attention.chunk = c.int_or(prefix + "chunk_size", 12, 1, LocalAttention::kPositionsMax);
  const int left = c.int_or(prefix + "context_left", 13, 2, LocalAttention::kPositionsMax);
  c.expect_int(prefix + "context_right", 0);
  attention.softcap = c.float_or(prefix + "logit_cap", 50);
  if (!(attention.softcap > 0)) c.reject(prefix + "logit_cap: expected a number above 0");
  attention.past = left - 1;
}

float limit_of(const ConfigReader& c) {
  const float limit = c.float_or("gradient_clipping", 1e10f);
  if (!(limit > 0)) c.reject("gradient_clipping: expected a number above 0");
  return limit;
}

// The activation, the norm and no bias, as both families' convolutions have them.
TimeConv convolution(std::string module, int bands, int channels, Norm norm) {
  return {.module = std::move(module),
          .channels = channels,
          .bands = bands,
          .bias = false,
          .norm = std::move(norm),
          .act = kernels::Act::kRelu};
}

Norm unweighted(float eps) { return {.kind = Norm::kRms, .eps = eps, .weight = false}; }

std::vector<int> two(const ConfigReader& c, const char* key, std::vector<int> fallback) {
  std::vector<int> found = c.has(key) ? c.ints(key, 1) : fallback;
  const auto sound = [](int number) { return number <= kSideMax; };
  if (found.size() == 2 && std::ranges::all_of(found, sound)) return found;
  c.reject(std::string(key) + ": expected two numbers from 1 to " + std::to_string(kSideMax));
  return fallback;
}

// Taps or strides of each of two convolutions, in time and in bands.
std::array<std::array<int, 2>, 2> pairs(const ConfigReader& c, const char* key, int usual) {
  std::array<std::array<int, 2>, 2> out = {{{usual, usual}, {usual, usual}}};
  const auto value = c.value(key);
  if (!value) return out;
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 2; ++j) {
      int64_t number = 0;
      if ((*value).at(i).at(j).get(number) != simdjson::SUCCESS || number < 1 || number > 16) {
        c.wrong_type(key, "two pairs of numbers from 1 to 16", *value);
        return out;
      }
      out[i][j] = static_cast<int>(number);
    }
  return out;
}

// The linear layer after the convolutions.
void add_projection(EncoderSpec& spec, int width) {
  add(spec, Project{.module = "tower.subsample_conv_projection.input_proj_linear",
                    .width = width,
                    .bias = false});
}

void add_gemma4_convolutions(EncoderSpec& spec, const ConfigReader& c, float eps) {
  const std::vector<int> channels = two(c, "subsampling_conv_channels", {128, 32});
  int bands = spec.bands;
  for (size_t i = 0; i < 2; ++i) {
    const std::string layer = "tower.subsample_conv_projection.layer" + std::to_string(i);
    Norm norm = layer_norm(layer + ".norm", eps);
    norm.bias = false;
    TimeConv conv = convolution(layer + ".conv", bands, channels[i], std::move(norm));
    conv.time = conv.band = {.taps = 3, .stride = 2, .before = 1, .after = 1};
    bands = conv.band.count(bands);
    add(spec, std::move(conv));
  }
}

// Zeros come after the frames, none before.
void add_gemma3n_convolutions(EncoderSpec& spec, const ConfigReader& c) {
  const std::vector<int> channels = two(c, "sscp_conv_channel_size", {128, 32});
  const auto taps = pairs(c, "sscp_conv_kernel_size", 3);
  const auto strides = pairs(c, "sscp_conv_stride_size", 2);
  const float eps = c.float_or("sscp_conv_group_norm_eps", 1e-3f);
  c.ignore("sscp_conv_eps");  // Of a norm that is not there.
  int bands = spec.bands;
  for (size_t i = 0; i < 2; ++i) {
    const std::string layer = "tower.subsample_conv_projection.conv_" + std::to_string(i);
    TimeConv conv =
        convolution(layer + ".conv", bands, channels[i], rms_norm(layer + ".norm", eps));
    conv.running = true;
    conv.time = {.taps = taps[i][0], .stride = strides[i][0], .before = 0, .after = taps[i][0] - 1};
    conv.band = {.taps = taps[i][1], .stride = strides[i][1], .before = 1, .after = 1};
    if (bands + 2 < taps[i][1]) c.reject("sscp_conv_kernel_size: expected fewer taps than bands");
    bands = std::max(conv.band.count(bands), 1);
    add(spec, std::move(conv));
  }
}

LocalAttention gemma4_attention(const ConfigReader& c, int width, bool clipped) {
  LocalAttention attention = heads(c, "num_attention_heads", 8, width);
  read_window(c, "attention_", attention);
  c.ignore("attention_invalid_logits_value");  // What is not seen counts nothing.
  attention.window = attention.past;
  attention.positions = (attention.chunk + attention.past) / 2 + 1;
  attention.key_scale = static_cast<float>(std::log(1 + std::numbers::e) / std::numbers::ln2);
  attention.clipped = clipped;
  attention.q = "self_attn.q_proj";
  attention.k = "self_attn.k_proj";
  attention.v = "self_attn.v_proj";
  attention.out = "self_attn.post";
  attention.relative = "self_attn.relative_k_proj";
  attention.dim_scale = "self_attn.per_dim_scale";
  return attention;
}

LocalAttention gemma3n_attention(const ConfigReader& c, int width) {
  LocalAttention attention = heads(c, "conf_num_attention_heads", 8, width);
  read_window(c, "conf_attention_", attention);
  attention.window = attention.positions = attention.past + 1;
  attention.q = "attention.attn.q_proj";
  attention.k = "attention.attn.k_proj";
  attention.v = "attention.attn.v_proj";
  attention.out = "attention.post";
  attention.relative = "attention.attn.relative_position_embedding.pos_proj";
  attention.dim_scale = "attention.attn.per_dim_scale";
  return attention;
}

}  // namespace

EncoderSpec gemma4_audio(const SoundConfig& c) {
  const ConfigReader& a = c.audio;
  EncoderSpec spec;
  spec.bands = kBands;
  const int width = a.int_or("hidden_size", 1024, 2, kWidthMax);
  const bool clipped = a.bool_or("use_clipped_linears", true);
  const Block block = {.taps = a.int_or("conv_kernel_size", 5, 1, kTapsMax),
                       .width = width,
                       .act = activation(a, "hidden_act", "silu"),
                       .clipped = clipped,
                       .residual = a.float_or("residual_weight", 0.5f),
                       .limit = limit_of(a),
                       .eps = a.float_or("rms_norm_eps", 1e-6f),
                       .first = "feed_forward1",
                       .second = "feed_forward2",
                       .before_attention = "norm_pre_attn",
                       .after_attention = "norm_post_attn",
                       .last = "norm_out"};
  const LocalAttention attention = gemma4_attention(a, width, clipped);
  add_gemma4_convolutions(spec, a, block.eps);
  add_projection(spec, width);
  const int layers = a.int_or("num_hidden_layers", 12, 1, kLayersMax);
  for (int i = 0; i < layers; ++i)
    add_block(spec, block, "tower.layers." + std::to_string(i) + ".", attention,
              clipped ? "" : ".linear");
  add(spec, Project{.module = "tower.output_proj",
                    .width = a.int_or("output_proj_dims", 1536, 1, kWidthMax)});
  add(spec, Normalise{unweighted(block.eps)});
  add(spec,
      Project{.module = "projector.embedding_projection", .width = c.text_width, .bias = false});
  spec.tower_roots = {"model.audio_tower.", "audio_tower."};
  spec.projector_roots = {"model.embed_audio.", "embed_audio."};
  return spec;
}

EncoderSpec gemma3n_audio(const SoundConfig& c) {
  const ConfigReader& a = c.audio;
  EncoderSpec spec;
  spec.bands = a.int_or("input_feat_size", kBands, 1, kWidthMax);
  const int width = a.int_or("hidden_size", 1536, 2, kWidthMax);
  const float eps = a.float_or("rms_norm_eps", 1e-6f);
  const Block block = {.taps = a.int_or("conf_conv_kernel_size", 5, 1, kTapsMax),
                       .width = width,
                       .residual = a.float_or("conf_residual_weight", 0.5f),
                       .limit = limit_of(a),
                       .eps = eps,
                       .first = "ffw_layer_start",
                       .second = "ffw_layer_end",
                       .before_attention = "attention.pre_attn_norm",
                       .after_attention = "attention.post_norm",
                       .last = "norm"};
  const LocalAttention attention = gemma3n_attention(a, width);
  add_gemma3n_convolutions(spec, a);
  add_projection(spec, width);
  const int layers = a.int_or("conf_num_hidden_layers", 12, 1, kLayersMax);
  for (int i = 0; i < layers; ++i)
    add_block(spec, block, "tower.conformer." + std::to_string(i) + ".", attention, "");
  add(spec, Thin{.step = a.int_or("conf_reduction_factor", 4, 1, kSideMax)});
  add(spec, Normalise{rms_norm("projector.soft_embedding_norm", eps)});
  add(spec, FillUp{.rows = c.all.int_or("audio_soft_tokens_per_image", 188, 1, kSideMax),
                   .table = "projector.embedding",
                   .entries = a.int_or("vocab_size", 128, 1, kWidthMax),
                   .norm = rms_norm("projector.hard_embedding_norm", eps)});
  add(spec,
      Project{.module = "projector.embedding_projection", .width = c.text_width, .bias = false});
  add(spec, Normalise{unweighted(eps)});
  a.ignore("vocab_offset");  // Of tokens, which the model of text embeds.
  spec.tower_roots = {"model.audio_tower.", "audio_tower."};
  spec.projector_roots = {"model.embed_audio.", "embed_audio."};
  return spec;
}

}  // namespace weir::encoder::family
