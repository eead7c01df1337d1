#include "model/families/family.h"

#include <array>

namespace weir::model::family {

namespace {

// Far above any published model, and small enough that products of two of them fit 63 bits.
constexpr int kLayersMax = 2048;
constexpr int kWidthMax = 1 << 20;
constexpr int kVocabMax = 1 << 24;
constexpr int kContextMax = 1 << 26;

// Reads from the rope object first, then from the top level: transformers 5 moved the keys there.
float rope_float(const ConfigReader& c, const std::optional<ConfigReader>& r, std::string_view key,
                 float fallback) {
  const float outer = c.float_or(key, fallback);
  return r ? r->float_or(key, outer) : outer;
}

Rope::Scaling parse_scaling(const ConfigReader& c, const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, Rope::Scaling>, 10> kNames = {{
      {"", Rope::kNone},
      {"default", Rope::kNone},
      {"mrope", Rope::kNone},         // But its sections: by_three_positions().
      {"proportional", Rope::kNone},  // But its pairs: stand_still().
      {"linear", Rope::kLinear},
      {"dynamic", Rope::kDynamic},
      {"llama3", Rope::kLlama3},
      {"yarn", Rope::kYarn},
      {"longrope", Rope::kLongRope},
      {"su", Rope::kLongRope},
  }};
  for (const auto& [known, scaling] : kNames)
    if (known == name) return scaling;
  c.reject(
      "rope_type: expected default, proportional, linear, dynamic, llama3, yarn or longrope, "
      "found \"" +
      name.substr(0, 80) + "\"");
  return Rope::kNone;
}

// How much larger scores become where the context is stretched.
float yarn_mscale(float factor, float s) {
  return factor > 1 ? 0.1f * s * std::log(factor) + 1 : 1.0f;
}

float yarn_attention_factor(const ConfigReader& r, float factor) {
  const auto m = [&](float s) { return yarn_mscale(factor, s); };
  const float mscale = r.float_or("mscale", 0), all_dim = r.float_or("mscale_all_dim", 0);
  const float automatic = mscale != 0 && all_dim != 0 ? m(mscale) / m(all_dim) : m(1);
  return r.float_or("attention_factor", automatic);
}

// s = how far the context is stretched; a model trained at its full length keeps 1.
float longrope_attention_factor(const ConfigReader& r, float stretch, float original) {
  const float automatic =
      stretch <= 1 || original <= 1 ? 1 : std::sqrt(1 + std::log(stretch) / std::log(original));
  return r.float_or("attention_factor", automatic);
}

// `fallback` 0: the key is required.
int size_or(const ConfigReader& c, std::string_view key, int fallback, int max) {
  return fallback > 0 ? c.int_or(key, fallback, 1, max) : c.require_int(key, 1, max);
}

void read_scaling(const ConfigReader& c, const ConfigReader& r, Rope& out) {
  const std::string type = r.string_or("rope_type", r.string_or("type", ""));
  r.ignore("type");
  out.scaling = parse_scaling(c, type);
  // Hunyuan's dynamic rope: another base, whatever the length.
  if (const float alpha = r.float_or("alpha", 0);
      out.scaling == Rope::kDynamic && alpha > 0 && out.dim > 2) {
    const auto dim = static_cast<float>(out.dim);
    out.theta *= std::pow(alpha, dim / (dim - 2));
    out.scaling = Rope::kNone;
    for (const char* key : {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) r.ignore(key);
  }
  if (out.scaling == Rope::kNone) {  // Then it does not matter how far.
    r.ignore("factor");
    r.ignore("original_max_position_embeddings");
    return;
  }
  // Linear scaling is the same however long the context was: there it may be left out.
  const auto context = static_cast<float>(
      size_or(c, "max_position_embeddings", out.scaling == Rope::kLinear ? 1 : 0, kContextMax));
  out.original_context = rope_float(c, r, "original_max_position_embeddings", context);
  switch (out.scaling) {
    case Rope::kNone:
      break;
    case Rope::kDynamic:
      out.original_context = context;
      out.factor = r.require_float("factor");
      break;
    case Rope::kLinear:
      out.factor = r.require_float("factor");
      break;
    case Rope::kLlama3:
      out.factor = r.require_float("factor");
      out.low_freq_factor = r.require_float("low_freq_factor");
      out.high_freq_factor = r.require_float("high_freq_factor");
      break;
    case Rope::kYarn:
      out.factor = r.require_float("factor");
      out.beta_fast = r.float_or("beta_fast", 32);
      out.beta_slow = r.float_or("beta_slow", 1);
      out.truncate = r.bool_or("truncate", true);
      out.attention_factor = yarn_attention_factor(r, out.factor);
      break;
    case Rope::kLongRope: {
      out.short_factor = r.floats("short_factor");
      out.long_factor = r.floats("long_factor");
      const float stretch = out.original_context > 0 ? context / out.original_context : 1;
      const float factor = r.float_or("factor", stretch);
      out.attention_factor = longrope_attention_factor(
          r, c.has("original_max_position_embeddings") ? stretch : factor, out.original_context);
      if (r.has("long_mscale")) {  // Phi's mixtures say both.
        out.attention_factor = r.float_or("short_mscale", out.attention_factor);
        out.long_attention_factor = r.float_or("long_mscale", out.attention_factor);
      }
      break;
    }
  }
}

// Of a rope that is proportional, all dimensions belong to pairs, of which only the first turn.
void stand_still(const ConfigReader& r, int head_dim, Rope& out) {
  if (r.string_or("rope_type", "") != "proportional") return;
  out.still_pairs = head_dim / 2 - out.dim / 2;
  out.dim = head_dim;
  out.factor = r.float_or("factor", 1);
  if (out.factor != 1) out.scaling = Rope::kLinear;
}

}  // namespace

ModelSpec decoder(const ConfigReader& c, const Defaults& defaults) {
  ModelSpec m;
  m.vocab_size = size_or(c, "vocab_size", defaults.vocab_size, kVocabMax);
  m.hidden_size = c.require_int(defaults.hidden_key, 1, kWidthMax);
  m.context_max = size_or(c, defaults.context_key, defaults.context, kContextMax);
  m.tied_unless_stored = defaults.tied_head && !c.has("tie_word_embeddings");
  m.tied_head = c.bool_or("tie_word_embeddings", defaults.tied_head);
  m.final_norm = rms(c, defaults);
  m.final_norm.module = "norm";
  // How weights are stored is read by card/weight_format.h, not by families.
  c.ignore("quantization");
  c.ignore("quantization_config");
  return m;
}

ModelSpec layer_norm_decoder(const ConfigReader& c, const Defaults& defaults) {
  ModelSpec m = decoder(c, defaults);
  m.final_norm.kind = Norm::kLayer;
  m.final_norm.bias = true;
  return m;
}

int num_layers(const ConfigReader& c, std::string_view key) {
  return c.require_int(key, 1, kLayersMax);
}

Norm rms(const ConfigReader& c, const Defaults& defaults) {
  return Norm{.kind = Norm::kRms,
              .eps = c.float_or(defaults.eps_key, defaults.rms_norm_eps),
              .weight_offset = defaults.norm_offset};
}

Act activation(const ConfigReader& c, std::string_view key, std::string_view fallback) {
  static constexpr std::array<std::pair<std::string_view, Act>, 9> kNames = {{
      {"silu", Act::kSilu},
      {"swish", Act::kSilu},
      {"gelu", Act::kGelu},
      {"gelu_new", Act::kGeluTanh},
      {"gelu_fast", Act::kGeluTanh},
      {"gelu_pytorch_tanh", Act::kGeluTanh},
      {"relu", Act::kRelu},
      {"relu2", Act::kRelu2},
      {"quick_gelu", Act::kQuickGelu},
  }};
  const std::string name = c.string_or(key, fallback);
  for (const auto& [known, act] : kNames)
    if (known == name) return act;
  c.reject(std::string(key) + ": expected silu, gelu, gelu_pytorch_tanh, relu, relu2 or " +
           "quick_gelu, found \"" + name.substr(0, 80) + "\"");
  return Act::kSilu;
}

int ffn_width(const ConfigReader& c, std::string_view key) {
  return c.require_int(key, 1, kWidthMax);
}

Dense gated_ffn(const ConfigReader& c, std::string_view width_key) {
  return Dense{
      .width = ffn_width(c, width_key), .act = activation(c, "hidden_act", "silu"), .gated = true};
}

Rope rope(const ConfigReader& c, int head_dim, float theta, std::string_view layer_type,
          float partial_rotary_factor) {
  auto r = c.child("rope_parameters");
  if (r && r->has(layer_type)) r = r->child(layer_type);
  const bool legacy = !r;
  if (legacy) r = c.child("rope_scaling");
  c.ignore("rope_scaling");
  Rope out;
  out.theta = rope_float(c, r, "rope_theta", theta);
  const float partial = rope_float(c, r, "partial_rotary_factor", partial_rotary_factor);
  out.dim = static_cast<int>(static_cast<float>(head_dim) * std::clamp(partial, 0.0f, 1.0f));
  if (r) read_scaling(c, *r, out);
  if (r) stand_still(*r, head_dim, out);
  // Of a GGUF file, whose rows of q and k may lie so that neighbours turn together.
  if (r && r->string_or("pairs", "") == "neighbours") out.layout = Rope::kInterleaved;
  return out;
}

Attention by_three_positions(const ConfigReader& c, Attention attn) {
  auto r = c.child("rope_parameters");
  if (!r) r = c.child("rope_scaling");
  if (!r) return attn;
  const std::vector<int> sections = r->ints("mrope_section", 0);
  attn.rope.sections_interleaved = r->bool_or("mrope_interleaved", false);
  if (sections.size() == attn.rope.sections.size())
    std::ranges::copy(sections, attn.rope.sections.begin());
  else if (!sections.empty())
    r->reject("mrope_section: expected 3 numbers, found " + std::to_string(sections.size()));
  return attn;
}

Rope sliding_rope(const ConfigReader& c, const Attention& full, float theta) {
  const auto map = c.child("rope_parameters");
  const auto own = map ? map->child("sliding_attention") : std::nullopt;
  if (!own) return Rope{.theta = theta, .dim = full.rope.dim};
  Rope r = rope(c, full.head_dim, theta, "sliding_attention");
  if (!own->has("rope_theta")) r.theta = theta;  // Not the full layers' rope_theta beside the map.
  return r;
}

float yarn_softmax_factor(const ConfigReader& c, const Rope& rope) {
  if (rope.scaling != Rope::kYarn) return 1;
  auto r = c.child("rope_parameters");
  if (!r) r = c.child("rope_scaling");
  const float all_dim = r ? r->float_or("mscale_all_dim", 0) : 0;
  const float m = yarn_mscale(rope.factor, all_dim);
  return m * m;
}

Attention gqa(const ConfigReader& c, const Defaults& defaults) {
  Attention a;
  a.num_heads = size_or(c, defaults.heads_key, defaults.num_attention_heads, kWidthMax);
  const auto or_derived = [&](std::string_view key, int fallback, int derived) {
    return c.int_or(key, fallback == 0 || c.is_null(key) ? derived : fallback, 1, kWidthMax);
  };
  a.num_kv_heads = or_derived("num_key_value_heads", defaults.num_key_value_heads, a.num_heads);
  const int hidden = c.require_int(defaults.hidden_key, 1, kWidthMax);
  a.head_dim = or_derived("head_dim", defaults.head_dim, a.num_heads ? hidden / a.num_heads : 0);
  a.scale = a.head_dim > 0 ? 1 / std::sqrt(static_cast<float>(a.head_dim)) : 0;
  a.rope =
      rope(c, a.head_dim, defaults.rope_theta, "full_attention", defaults.partial_rotary_factor);
  return a;
}

Norm named(Norm norm, const char* module) {
  norm.module = module;
  return norm;
}

Moe biased_moe(const ConfigReader& c, const BiasedExperts& defaults) {
  constexpr int kSharedMax = 64;
  for (const char* key : {"scoring_func", "topk_method"}) {
    const std::string method = c.string_or(key, "sigmoid");
    if (method != "sigmoid" && method != "noaux_tc")
      c.reject(std::string(key) + ": expected sigmoid or noaux_tc, found \"" +
               method.substr(0, 80) + "\"");
  }
  Moe moe = {.num_experts = c.int_or(defaults.count_key, defaults.count, 1),
             .top_k = c.int_or("num_experts_per_tok", defaults.top_k, 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = {.score = Router::kSigmoid,
                        .selection_bias = true,
                        .group_score = Router::kTwoBest,
                        .groups = c.int_or("n_group", defaults.groups, 1),
                        .groups_kept = c.int_or("topk_group", defaults.groups_kept, 1),
                        .renormalise = c.bool_or("norm_topk_prob", defaults.renormalise),
                        .epsilon = 1e-20f,
                        .scale = c.float_or("routed_scaling_factor", defaults.scale)}};
  const int fallback = c.is_null(defaults.shared_key) ? 0 : defaults.shared;
  moe.shared = shared_experts(moe.expert, c.int_or(defaults.shared_key, fallback, 0, kSharedMax));
  return moe;
}

std::optional<Dense> shared_experts(Dense one, int count) {
  if (count == 0) return std::nullopt;
  one.width *= count;
  return one;
}

void rename_shared(ModelSpec& m, const std::string& module) {
  for (const char* part : {".gate_proj", ".up_proj", ".down_proj"})
    m.renames.emplace_back(std::string("mlp.shared_expert") + part, module + part);
}

void rename_block_sparse(ModelSpec& m) {
  const std::string block = "block_sparse_moe.";
  m.renames.emplace_back("mlp.gate", block + "gate");
  for (const auto& [part, stored] :
       {std::pair{"gate_proj", "w1"}, {"up_proj", "w3"}, {"down_proj", "w2"}}) {
    m.renames.emplace_back(std::string("mlp.experts.*.") + part, block + "experts.*." + stored);
    m.renames.emplace_back(std::string("mlp.switch_mlp.") + part, block + "switch_mlp." + part);
  }
}

std::vector<Sublayer> pre_norm(Norm norm, Operation mixer, Operation ffn) {
  return {{.op = std::move(mixer), .pre = named(norm, "input_layernorm")},
          {.op = std::move(ffn), .pre = named(norm, "post_attention_layernorm")}};
}

std::vector<Sublayer> post_norm(Norm norm, Operation mixer, Operation ffn) {
  return {{.op = std::move(mixer), .post = named(norm, "post_attention_layernorm")},
          {.op = std::move(ffn), .post = named(norm, "post_feedforward_layernorm")}};
}

std::vector<Sublayer> parallel_norm(Norm norm, Operation mixer, Operation ffn) {
  return {{.op = std::move(mixer), .pre = named(norm, "input_layernorm")},
          {.op = std::move(ffn), .input = Sublayer::kSameAsBefore}};
}

std::vector<Sublayer> sandwich_norm(Norm norm, Operation mixer, Operation ffn) {
  return {{.op = std::move(mixer),
           .pre = named(norm, "input_layernorm"),
           .post = named(norm, "post_attention_layernorm")},
          {.op = std::move(ffn),
           .pre = named(norm, "pre_feedforward_layernorm"),
           .post = named(norm, "post_feedforward_layernorm")}};
}

void add_layer(ModelSpec& m, std::vector<Sublayer> sublayers) {
  const int layer = layer_count(m);
  for (Sublayer& sublayer : sublayers) {
    sublayer.stored_layer = layer;
    m.sublayers.push_back(std::move(sublayer));
  }
}

void add_layers(ModelSpec& m, int count, const std::vector<Sublayer>& sublayers) {
  for (int i = 0; i < count; ++i) add_layer(m, sublayers);
}

ModelSpec pre_norm_model(const ConfigReader& c, const Defaults& defaults, const Attention& attn,
                         const Dense& ffn) {
  ModelSpec m = decoder(c, defaults);
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, ffn));
  return m;
}

void expect_string(const ConfigReader& c, std::string_view key, std::string_view value) {
  const std::string found = c.string_or(key, value);
  if (found != value)
    c.reject(std::string(key) + ": expected " + std::string(value) + ", found \"" +
             found.substr(0, 80) + "\"");
}

ModelSpec text_within(const ConfigReader& c, Describe describe, std::vector<std::string> roots,
                      std::vector<std::string> towers, std::string_view key) {
  const auto text = c.child(key);
  if (!text) {
    c.reject(std::string(key) + ": expected the keys of the model of text, found none");
    return {};
  }
  for (const char* other : {"audio_config", "vision_config", "quantization", "quantization_config"})
    c.ignore(other);
  ModelSpec m = describe(*text);
  if (c.has("tie_word_embeddings")) {
    m.tied_head = c.bool_or("tie_word_embeddings", false);
    m.tied_unless_stored = false;
  }
  m.roots = std::move(roots);
  m.towers = std::move(towers);
  return m;
}

int sliding_window(const ConfigReader& c, int fallback) {
  return c.int_or("sliding_window", c.is_null("sliding_window") ? 0 : fallback, 0);
}

float softcap(const ConfigReader& c, std::string_view key, float fallback) {
  return c.float_or(key, c.is_null(key) ? 0 : fallback);
}

std::vector<bool> layers_of_type(const ConfigReader& c, std::string_view type,
                                 const std::function<bool(int)>& otherwise,
                                 std::string_view other) {
  const std::vector<std::string> types = c.strings("layer_types");
  std::vector<bool> found(static_cast<size_t>(num_layers(c)));
  if (c.has("layer_types") && types.size() != found.size())
    c.reject("layer_types: expected one for each of " + std::to_string(found.size()) +
             " layers, found " + std::to_string(types.size()));
  for (size_t i = 0; i < found.size(); ++i) {
    if (i >= types.size()) {
      found[i] = otherwise(static_cast<int>(i));
      continue;
    }
    found[i] = types[i] == type;
    if (!found[i] && types[i] != other)
      c.reject("layer_types[" + std::to_string(i) + "]: expected " + std::string(type) + " or " +
               std::string(other) + ", found \"" + types[i].substr(0, 80) + "\"");
  }
  return found;
}

std::vector<bool> sliding_layers(const ConfigReader& c, const std::function<bool(int)>& otherwise) {
  return layers_of_type(c, "sliding_attention", otherwise);
}

}  // namespace weir::model::family
