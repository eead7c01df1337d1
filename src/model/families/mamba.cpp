// Mamba, Falcon Mamba and Mamba 2: layers of state-space models alone.
#include "model/families/mamba.h"

namespace weir::model::family {

namespace {

// Models without attention have no longest context; this is what Weir plans for at most.
constexpr Defaults kDefaults = {
    .context = 1 << 20, .rms_norm_eps = 1e-5f, .eps_key = "layer_norm_epsilon"};

// Keys that say how a model is made, or with what it is computed.
void ignore_making(const ConfigReader& c) {
  for (const char* key :
       {"chunk_size", "expand", "fused_add_norm", "pad_vocab_size_multiple",
        "rescale_prenorm_residual", "residual_in_fp32", "time_step_floor", "time_step_init_scheme",
        "time_step_max", "time_step_min", "time_step_scale", "use_associative_scan",
        "use_falcon_mambapy", "use_mambapy"})
    c.ignore(key);
}

void name_backbone(ModelSpec& m) {
  m.layers = "backbone.layers.";
  m.renames = {{"embed_tokens", "backbone.embeddings"},
               {"embed_tokens", "backbone.embedding"},
               {"norm", "backbone.norm_f"},
               {"input_layernorm", "norm"}};
}

// All layers alike.
void add_mixers(const ConfigReader& c, const Operation& mixer, ModelSpec& m) {
  add_layers(m, num_layers(c), {{.op = mixer, .pre = named(m.final_norm, "input_layernorm")}});
  name_backbone(m);
  rename_mamba(m, "mixer.");
}

ModelSpec mamba_with(const ConfigReader& c, Mamba1::Norms norms) {
  ignore_making(c);
  Defaults defaults = kDefaults;
  defaults.vocab_size = 50280;
  defaults.tied_head = true;
  ModelSpec m = decoder(c, defaults);
  expect_string(c, "hidden_act", "silu");
  c.expect_bool("rms_norm", true);
  const int expanded = c.int_or("expand", 2, 1, kExpandMax) * m.hidden_size;
  Mamba1 mixer = {.inner = c.int_or("intermediate_size", expanded, 1),
                  .state_dim = c.int_or("state_size", 16, 1),
                  .step_rank = step_rank(c, "time_step_rank", m.hidden_size),
                  .conv_taps = c.int_or("conv_kernel", 4, 1),
                  .conv_bias = c.bool_or("use_conv_bias", true),
                  .bias = c.bool_or("use_bias", false),
                  .norms = norms};
  if (norms != Mamba1::kNone) mixer.norm_eps = c.float_or("mixer_rms_eps", mixer.norm_eps);
  // The first files say some sizes once more.
  c.expect_int("d_model", m.hidden_size);
  c.expect_int("d_inner", mixer.inner);
  c.expect_int("n_layer", num_layers(c));
  add_mixers(c, mixer, m);
  split_inputs(m);
  return m;
}

}  // namespace

int step_rank(const ConfigReader& c, const char* key, int hidden) {
  const int automatic = (hidden + 15) / 16;
  return c.is(key, "auto") ? automatic : c.int_or(key, automatic, 1);
}

void split_inputs(ModelSpec& m) {
  m.fused = {{"mamba.in_proj", {"mamba.hidden_proj", "mamba.gate_proj"}}};
}

void rename_mamba(ModelSpec& m, const std::string& module) {
  for (const char* part : {"in_proj", "x_proj", "dt_proj", "out_proj", "conv1d", "conv1d.bias",
                           "A_log", "D", "dt_bias", "norm"})
    m.renames.emplace_back(std::string("mamba.") + part, module + part);
  m.convolution = "mamba.conv1d";
}

Mamba2 prefixed_mamba2(const ConfigReader& c, const ModelSpec& m) {
  c.ignore("mamba_chunk_size");
  Mamba2 mamba = {.heads = c.int_or("mamba_n_heads", 128, 1),
                  .groups = c.int_or("mamba_n_groups", 1, 1),
                  .state_dim = c.int_or("mamba_d_state", 256, 1),
                  .conv_taps = c.int_or("mamba_d_conv", 4, 1),
                  .conv_bias = c.bool_or("mamba_conv_bias", true),
                  .bias = c.bool_or("mamba_proj_bias", false),
                  .norm_eps = m.final_norm.eps};
  const int expanded = c.int_or("mamba_expand", 2, 1, kExpandMax) * m.hidden_size;
  const int inner = c.int_or("mamba_d_ssm", expanded, 1, 1 << 20);
  mamba.head_dim = c.is("mamba_d_head", "auto")
                       ? inner / mamba.heads
                       : c.int_or("mamba_d_head", inner / mamba.heads, 1, 1024);
  if (mamba.inner() != inner)
    c.reject(
        "mamba_d_head: expected mamba_n_heads of it to be mamba_d_ssm or mamba_expand times "
        "hidden_size, which is " +
        std::to_string(inner) + ", found " + std::to_string(mamba.head_dim));
  time_steps(c, mamba);
  return mamba;
}

void time_steps(const ConfigReader& c, Mamba2& mamba) {
  ignore_making(c);
  c.ignore("time_step_rank");
  const std::vector<float> limits = c.floats("time_step_limit");
  if (limits.empty()) return;
  if (limits.size() != 2)
    return c.reject("time_step_limit: expected two numbers, found " +
                    std::to_string(limits.size()));
  mamba.step_min = limits[0];
  mamba.step_max = limits[1];
}

ModelSpec falcon_mamba(const ConfigReader& c) { return mamba_with(c, Mamba1::kPlain); }

ModelSpec mamba(const ConfigReader& c) { return mamba_with(c, Mamba1::kNone); }

ModelSpec mamba2(const ConfigReader& c) {
  c.ignore("norm_before_gate");  // The gate comes first whatever is said.
  ModelSpec m = decoder(c, kDefaults);
  expect_string(c, "hidden_act", "silu");
  c.expect_bool("rms_norm", true);
  Mamba2 mamba = {.heads = c.int_or("num_heads", 128, 1),
                  .head_dim = c.int_or("head_dim", 64, 1),
                  .groups = c.int_or("n_groups", 8, 1),
                  .state_dim = c.int_or("state_size", 128, 1),
                  .conv_taps = c.int_or("conv_kernel", 4, 1),
                  .conv_bias = c.bool_or("use_conv_bias", true),
                  .bias = c.bool_or("use_bias", false),
                  .norm_eps = m.final_norm.eps};
  c.ignore("intermediate_size");  // Heads times head_dim.
  time_steps(c, mamba);
  add_mixers(c, mamba, m);
  return m;
}

}  // namespace weir::model::family
