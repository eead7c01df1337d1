// What mixtures share whose first layers are dense.
#include "model/families/family.h"

namespace weir::model::family {

std::vector<bool> sparse_layers(const ConfigReader& c, int first) {
  const std::vector<std::string> types = c.strings("mlp_layer_types");
  const int every = c.int_or("moe_layer_freq", 1, 1);
  std::vector<bool> sparse(static_cast<size_t>(num_layers(c)));
  if (!types.empty() && types.size() != sparse.size())
    c.reject("mlp_layer_types: expected one for each of " + std::to_string(sparse.size()) +
             " layers, found " + std::to_string(types.size()));
  for (const std::string& type : types)
    if (type != "sparse" && type != "dense")
      c.reject("mlp_layer_types: expected sparse or dense, found \"" + type.substr(0, 80) + "\"");
  for (size_t i = 0; i < sparse.size(); ++i) {
    const auto layer = static_cast<int>(i);
    sparse[i] = i < types.size() ? types[i] == "sparse" : layer >= first && layer % every == 0;
  }
  return sparse;
}

ModelSpec first_dense(const ConfigReader& c, const Defaults& defaults, const Moe& moe,
                      int dense_layers, const std::function<Operation(int)>& attention) {
  ModelSpec m = decoder(c, defaults);
  const Dense dense = gated_ffn(c, "intermediate_size");
  for (const bool sparse : sparse_layers(c, c.int_or("first_k_dense_replace", dense_layers, 0)))
    add_layer(m, pre_norm(m.final_norm, attention(layer_count(m)),
                          sparse ? Operation{moe} : Operation{dense}));
  m.guessing_layers = c.int_or("num_nextn_predict_layers", 0, 0, 64);
  rename_shared(m, "mlp.shared_experts");
  return m;
}

}  // namespace weir::model::family
