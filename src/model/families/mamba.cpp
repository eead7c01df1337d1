// Mamba 2: layers of state-space models alone.
#include "model/families/mamba.h"

namespace weir::model::family {

namespace {

// Models without attention have no longest context; this is what Weir plans for at most.
constexpr Defaults kDefaults = {
    .context = 1 << 20, .rms_norm_eps = 1e-5f, .eps_key = "layer_norm_epsilon"};

void name_backbone(ModelSpec& m) {
  m.layers = "backbone.layers.";
  m.renames = {{"embed_tokens", "backbone.embeddings"},
               {"embed_tokens", "backbone.embedding"},
               {"norm", "backbone.norm_f"},
               {"input_layernorm", "norm"}};
}

}  // namespace

void rename_mamba2(ModelSpec& m, const std::string& module) {
  for (const char* part :
       {"in_proj", "out_proj", "conv1d", "conv1d.bias", "A_log", "D", "dt_bias", "norm"})
    m.renames.emplace_back(std::string("mamba.") + part, module + part);
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
  const int expanded = c.int_or("mamba_expand", 2, 1, 64) * m.hidden_size;
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
  for (const char* key : {"time_step_min", "time_step_max", "time_step_floor", "time_step_rank",
                          "time_step_scale", "time_step_init_scheme", "rescale_prenorm_residual"})
    c.ignore(key);  // Of how a model is made.
  const std::vector<float> limits = c.floats("time_step_limit");
  if (limits.empty()) return;
  if (limits.size() != 2)
    return c.reject("time_step_limit: expected two numbers, found " +
                    std::to_string(limits.size()));
  mamba.step_min = limits[0];
  mamba.step_max = limits[1];
}

ModelSpec mamba2(const ConfigReader& c) {
  for (const char* key : {"chunk_size", "expand", "residual_in_fp32", "norm_before_gate"})
    c.ignore(key);  // Sizes of blocks, how a model is made; the gate comes first whatever is said.
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
  Norm norm = m.final_norm;
  norm.module = "input_layernorm";
  for (int i = 0; i < num_layers(c); ++i) add_layer(m, {{.op = mamba, .pre = norm}});
  name_backbone(m);
  rename_mamba2(m, "mixer.");
  m.convolution = "mamba.conv1d";
  return m;
}

}  // namespace weir::model::family
