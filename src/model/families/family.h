// What most decoder-only checkpoints share. A family file starts from these and states differences.
// Families are data: no arithmetic on tensors, no weights, no device.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "model/config_reader.h"
#include "model/spec.h"

namespace weir::model::family {

using Describe = ModelSpec (*)(const ConfigReader& c);

// Vocabulary, width, context, final norm, tied head (`tied_by_default`: where config.json is
// silent). Reads num_hidden_layers' sibling keys only; layers are the family's.
ModelSpec decoder(const ConfigReader& c, bool tied_by_default = false);
int num_layers(const ConfigReader& c);
Norm rms(const ConfigReader& c);
// Heads, head size, scale, rope.
Attention gqa(const ConfigReader& c);
// theta and scaling in both spellings: rope_theta with rope_scaling, and rope_parameters, which may
// be a map by layer type ("full_attention").
Rope rope(const ConfigReader& c, int head_dim, std::string_view layer_type = {});
DenseFfn gated_ffn(const ConfigReader& c, int width);  // hidden_act.
Act activation(const ConfigReader& c, std::string_view key, std::string_view fallback);

// x + mixer(norm(x)), then x + ffn(norm(x)).
LayerSpec pre_norm(Norm norm, Mixer mixer, Ffn ffn);
// Gemma's: a norm also behind each sublayer, before it is added; with Gemma's names.
LayerSpec sandwich_norm(Norm norm, Mixer mixer, Ffn ffn);
void gemma_norm_names(ModelSpec& m);

// True where layer i slides: by `layer_types` if given, else by `otherwise`.
bool slides(const std::vector<std::string>& layer_types, int layer, bool otherwise);

ModelSpec gemma2(const ConfigReader& c);
ModelSpec gemma3_text(const ConfigReader& c);
ModelSpec granite(const ConfigReader& c);
ModelSpec llama(const ConfigReader& c);
ModelSpec mistral(const ConfigReader& c);
ModelSpec mixtral(const ConfigReader& c);
ModelSpec olmoe(const ConfigReader& c);
ModelSpec phi3(const ConfigReader& c);
ModelSpec qwen2(const ConfigReader& c);
ModelSpec qwen2_moe(const ConfigReader& c);
ModelSpec qwen3(const ConfigReader& c);
ModelSpec qwen3_moe(const ConfigReader& c);

}  // namespace weir::model::family
