// InternLM 3: Llama with biases that config.json may switch on.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;

}  // namespace

ModelSpec internlm3(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("qkv_bias", false);
  Dense ffn = gated_ffn(c, "intermediate_size");
  ffn.bias = c.bool_or("bias", false);
  return pre_norm_model(c, kDefaults, attn, ffn);
}

}  // namespace weir::model::family
