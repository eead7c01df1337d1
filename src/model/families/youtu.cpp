// Youtu: Llama with the latent attention of DeepSeek V3.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.tied_head = true};

}  // namespace

ModelSpec youtu(const ConfigReader& c) {
  c.ignore("embedding_initializer_range");
  ModelSpec m = decoder(c, kDefaults);
  add_layers(m, num_layers(c),
             pre_norm(m.final_norm, latent_attention(c, {}), gated_ffn(c, "intermediate_size")));
  return m;
}

}  // namespace weir::model::family
