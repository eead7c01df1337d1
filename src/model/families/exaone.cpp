// EXAONE with experts: Q and K heads are normalised; three sliding layers, then one that attends to
// everything and has no rope. Experts by DeepSeek V3's routing after some dense layers.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f, .num_key_value_heads = 32};

std::vector<bool> sparse_layers(const ConfigReader& c) {
  const int first = c.int_or("first_k_dense_replace", c.int_or("first_last_k_dense_replace", 1, 0));
  const std::vector<std::string> types = c.strings("mlp_layer_types");
  if (types.empty()) c.expect_absent("is_moe_layer");  // Else the same once more.
  c.ignore("is_moe_layer");
  std::vector<bool> sparse(static_cast<size_t>(num_layers(c)));
  if (!types.empty() && types.size() != sparse.size())
    c.reject("mlp_layer_types: expected one for each of " + std::to_string(sparse.size()) +
             " layers, found " + std::to_string(types.size()));
  for (const std::string& type : types)
    if (type != "sparse" && type != "dense")
      c.reject("mlp_layer_types: expected sparse or dense, found \"" + type.substr(0, 80) + "\"");
  for (size_t i = 0; i < sparse.size(); ++i)
    sparse[i] = i < types.size() ? types[i] == "sparse" : static_cast<int>(i) >= first;
  return sparse;
}

// Which layers slide, over and over: "LLLG", or 4, which is the same.
std::string pattern(const ConfigReader& c) {
  const auto value = c.value("sliding_window_pattern");
  if (value && !value->is_string())
    return std::string(static_cast<size_t>(c.int_or("sliding_window_pattern", 4, 1, 1 << 10)) - 1,
                       'L') +
           "G";
  const std::string text = c.string_or("sliding_window_pattern", "LLLG");
  if (text.empty() || text.find_first_not_of("LG") != text.npos)
    c.reject(
        "sliding_window_pattern: expected L and G for layers that slide and that do not, "
        "found \"" +
        text.substr(0, 80) + "\"");
  return text.empty() ? "G" : text;
}

}  // namespace

ModelSpec exaone_moe(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  Attention full = gqa(c, kDefaults);
  full.qk_norm = Attention::kPerHead;
  full.qk_norm_eps = m.final_norm.eps;
  Attention sliding = full;
  sliding.window = sliding_window(c, 4096);
  if (sliding.window > 0) full.rope = {};
  const Moe moe = biased_moe(
      c, {.count_key = "num_experts", .shared_key = "num_shared_experts", .scale = 2.5f});
  const Dense dense = gated_ffn(c, "intermediate_size");
  const std::vector<bool> sparse = sparse_layers(c);
  const std::string turns = pattern(c);
  for (const bool slides : sliding_layers(
           c, [&](int i) { return turns[static_cast<size_t>(i) % turns.size()] == 'L'; })) {
    const auto i = static_cast<size_t>(layer_count(m));
    add_layer(m, pre_norm(m.final_norm, slides ? sliding : full,
                          sparse[i] ? Operation{moe} : Operation{dense}));
  }
  m.guessing_layers = c.int_or("num_nextn_predict_layers", 0, 0, 64);
  m.renames = {{"mlp.gate.e_score_correction_bias", "mlp.e_score_correction_bias"},
               {"mlp.gate.e_score_correction_bias", "mlp.gate.e_score_correction_bias"}};
  rename_shared(m, "mlp.shared_experts");
  return m;
}

}  // namespace weir::model::family
