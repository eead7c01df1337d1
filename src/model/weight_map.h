// WeightBinder: from a checkpoint's tensors to the weights that layers want, by canonical name.
// Every tensor must be bound with the expected shape or be known as one to ignore.
//
// Canonical module names are Llama's; ModelSpec::renames and ::fused say what a family calls them.
// Norms before and after a sublayer bring their own (Norm::module).
//   whole model: embed_tokens, embed_positions, norm, lm_head
//   a layer: self_attn.{q,k,v,o}_proj, self_attn.{q,k}_norm, self_attn.sinks,
//   self_attn.conv_{k,v}; of latent attention self_attn.{q_a,q_b,kv_b}_proj, or embed_q and
//   unembed_out for kv_b_proj, self_attn.kv_a_proj_with_mqa, self_attn.{q,kv}_a_layernorm;
//   mlp.{gate,up,down}_proj, mlp.act_fn.{alpha_p,alpha_n,beta,eps}, mlp.gate (the router),
//   mlp.gate.e_score_correction_bias, mlp.shared_expert.*, mlp.shared_expert_gate,
//   linear_attn.{q,k,v,g,b,a,o}_proj, linear_attn.{f_a,f_b,g_a,g_b}_proj, linear_attn.o_norm,
//   linear_attn.{q,k,v}_conv1d or linear_attn.conv1d, linear_attn.{A_log,dt_bias};
//   of compressed attention self_attn.{q_a,q_b,kv,o_a,o_b}_proj, self_attn.{q_a,kv}_norm,
//   self_attn.compressor.{kv_proj,gate_proj,position_bias,kv_norm}, and the same of
//   self_attn.compressor.indexer beside its q_b_proj and scorer.weights_proj;
//   self_attn.{qkv_proj,output_gate,norm}; conv.{before,after,x,out}_proj, conv.conv;
//   mamba.{conv1d,A_log,D,out_proj}, of Mamba 2 besides mamba.{in_proj,dt_bias,norm}, of Mamba 1
//   mamba.{hidden,gate,x,dt}_proj, mamba.{dt,b,c}_layernorm; experts:
//   mlp.experts.*.{gate,up,down}_proj one by one, or mlp.switch_mlp.{gate,up,down}_proj stacked
//   [experts, n, k], or in the tensors that ModelSpec::expert_tensors names.
//
// Errors stick: after the first, getters return empty weights and finish() reports it.
//
// Threads: one, at load.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "card/checkpoint.h"
#include "card/weight_format.h"
#include "model/adapter_target.h"
#include "model/bound_module.h"
#include "model/placer.h"
#include "model/rows/stored_rows.h"
#include "model/spec.h"
#include "model/tensor_taker.h"
#include "model/weight_store.h"
#include "model/weight_tally.h"

namespace weir::model {

inline constexpr int kWholeModel = -1;  // In place of a layer's index.

// Float activations even in Compute::kFast: where a rounding would change a discrete choice.
enum class Precision : uint8_t { kAsComputed, kFloatActivations };

struct NormWeights {
  Norm::Kind kind = Norm::kRms;
  float eps = 1e-6f;
  const float* weight = nullptr;
  const float* bias = nullptr;
};

struct SplitHead {
  Linear turned;  // [k, first]
  Linear plain;   // [second, k]
};

class WeightBinder {
 public:
  // What quantised weights meet: see Linear.
  struct Arithmetic {
    bool int8 = false;
    bool bf16_prompts = false;
    int32_t quantise_bits = 0;  // Of matrices that are stored in floats; 0: they stay floats.
    bool adapters = false;      // What may be adapted is noted.
  };

  WeightBinder(const card::Checkpoint& checkpoint, const ModelSpec& spec,
               const card::WeightFormat& format, const Arithmetic& arithmetic, WeightStore& store)
      : checkpoint_(checkpoint),
        taker_(checkpoint),
        spec_(spec),
        format_(format),
        arithmetic_(arithmetic),
        store_(store),
        root_(find_root()),
        layers_(stored_layers()),
        turned_(stores_turned()),
        sums_stored_(stores_sums()) {}

  struct Part {
    std::string_view name;
    int32_t n = 0;
    bool bias = true;  // If the others have one. REQUIRES where it is false: the file fuses none.
  };

  // The file's norms that mean w + 1 are stored as that sum.
  bool norms_are_sums() const { return sums_stored_; }
  bool has_weight(int layer, std::string_view part) const;
  bool has_tensor(int layer, std::string_view name) const;  // Of that name itself.
  Linear linear(int layer, std::string_view part, int32_t n, int32_t k, bool bias = false,
                Precision precision = Precision::kAsComputed);
  // Linear layers of the same input, neighbours among which the file may hold fused.
  std::vector<Linear> linears(int layer, std::span<const Part> parts, int32_t k, bool bias);
  // A module whose rows are `count` matrices [n, k], one after another. Empty after an error.
  std::vector<Linear> row_blocks(int layer, std::string_view part, int32_t count, int32_t n,
                                 int32_t k);
  // What split_heads() binds: a module of both, or each of its own, the first ones transposed.
  struct HeadModules {
    std::string_view both, first, second;
  };
  // A module whose rows are, head after head, `first` ones, bound transposed, and `second` ones; or
  // modules of [heads, k, first] and of [heads, second, k]. All of them meet float activations.
  // Empty after an error.
  std::vector<SplitHead> split_heads(int layer, const HeadModules& parts, int32_t heads,
                                     int32_t first, int32_t second, int32_t k);
  // Matrix `part` of each of the layer's experts, placed by `placer`: mlp.experts.*.`part`, or
  // mlp.switch_mlp.`part` where the file stacks them, or what of ModelSpec::expert_tensors it is.
  std::vector<Linear> experts(int layer, std::string_view part, int32_t count, int32_t n, int32_t k,
                              bool bias, Placer& placer);
  NormWeights norm(int layer, const Norm& norm, int32_t n);
  // Those of heads that have weights of their own, without biases: [heads, n], or, where the name
  // has a star for the head, a tensor for each.
  std::vector<NormWeights> head_norms(int layer, const Norm& norm, int32_t heads, int32_t n);
  // A plain vector under `part`.weight, or under the bare name if `bare`, which may have dimensions
  // of 1 besides.
  const float* vector(int layer, std::string_view part, int32_t n, float offset, bool bare = false);
  // A tensor of one number, a vector or a scalar; `fallback` where there is none, which is else an
  // error.
  float number(int layer, std::string_view name, std::optional<float> fallback = {});
  // A tensor of this name and shape.
  const float* tensor(int layer, std::string_view name, std::span<const int64_t> shape);
  // A tensor [rows, columns] in strips of `strip` rows, each as [columns, strip], f(x) for each
  // number x; the last strip is filled up with zeros.
  const float* strips(int layer, std::string_view name, int32_t rows, int32_t columns,
                      int32_t strip, float (*f)(float));
  // A table of integers, [rows, columns]: different choices in each row, each among `count`.
  const int32_t* choices(int layer, std::string_view name, int32_t rows, int32_t columns,
                         int32_t count);
  // One over the length of each row of a linear layer's weight; null where the rows have length 1
  // already, but for their rounding, as where a converter has divided them, and where they are
  // codes.
  const float* row_scales(int layer, std::string_view part, int32_t n, int32_t k);
  // A depthwise convolution's weights, [taps][channels]; stored as [channels, 1, taps] or as
  // [channels, taps, 1].
  const float* convolution(int layer, std::string_view part, int32_t channels, int32_t taps);
  // Tensors of this module need not be bound.
  void ignore(int layer, std::string_view part);

  // The caller has found something wrong.
  void refuse(Error error) { taker_.refuse(std::move(error)); }
  // Something was wrong: what else would be bound, and the memory it takes, is of no use.
  bool failed() const { return taker_.error().has_value(); }
  // The first error; else the first tensor that nothing has bound, of those whose names begin with
  // `within`.
  Result<void> finish(std::string_view within = {}) const;
  // What has been bound so far.
  const WeightTally& tally() const { return tally_; }
  // The modules among it that may be stored quantised, or are.
  std::vector<BoundModule> take_modules() { return std::move(modules_); }
  // The matrices that adapters may change (Arithmetic::adapters).
  std::vector<AdapterTarget> take_targets() { return std::move(targets_); }
  // The same matrix stands for another module too, which may be adapted by itself: a tied head.
  Linear shared(const Linear& weight, std::string_view part);

 private:
  // A module as stored: [lead..., n, k], quantised or float.
  struct Module {
    std::string path;
    const card::StoredTensor* weight = nullptr;
    const card::StoredTensor* scales = nullptr;
    const card::StoredTensor* biases = nullptr;  // Of the affine groups.
    const card::StoredTensor* bias = nullptr;    // Of the linear layer.
    card::MatrixFormat format{};
    std::optional<StoredRows> stored;  // In place of the weight, in other formats than MLX's.
    const int32_t* order = nullptr;    // Linear::order of its rows.
    int32_t k = 0;
    int64_t n = 0;         // Rows in all.
    bool turned = false;   // Stored as [k, n].
    bool stacked = false;  // Matrices of n rows, one after another.
  };

  std::string stored_path(int layer, std::string_view part, int expert = 0) const;
  // Of ModelSpec::roots.
  std::string find_root() const;
  static std::string rooted(const std::string& root, const std::string& path);
  bool is_unused(std::string_view name) const;
  std::string stored_layers() const;
  bool stores_turned() const;
  bool stores_sums() const;
  // `stays`: floats are not quantised here.
  std::optional<Module> open(const std::string& path, std::span<const int64_t> rows, int32_t k,
                             bool bias, bool stays = false);
  // The same of a part of a layer, whose columns may be held in an order of their own. A table's,
  // of the whole model, may not: its rows are looked up.
  std::optional<Module> open_part(int layer, std::string_view part, int64_t rows, int32_t k,
                                  bool bias);
  // Float matrices in a tensor, of n rows each, as Arithmetic::quantise_bits has them, or nothing.
  // `turned`: they are stored as [k, n].
  std::optional<StoredRows> quantised_floats(const card::StoredTensor& tensor,
                                             const std::string& path, int64_t n, int32_t k,
                                             bool turned) const;
  // Rows [row, row + n) of the module, all leading dimensions counted, or n rows from there on that
  // come in runs.
  StoredMatrix locate(const Module& module, int64_t row, int32_t n, Precision precision,
                      const RowRuns& runs = {});
  // The same of a matrix that is stacked among others in what `stored` reads.
  StoredMatrix locate_rows(const StoredRows& stored, int64_t matrix, int64_t matrices, int64_t row,
                           const RowRuns& runs, int32_t n, int32_t k, Precision precision,
                           const int32_t* order = nullptr) const;
  // MLX's affine tensors of a module.
  bool open_affine(Module& module, std::vector<int64_t> shape);
  void bind_fused(int layer, const FusedModules& fused, std::span<const Part> parts, int32_t k,
                  bool bias, std::vector<Linear>& out);
  // Notes that the layer's module `part`, or of fused ones the rows of `stored` from `row` on, may be
  // adapted; `rows` are those of the stored module.
  void note_target(Linear& weight, std::string_view part, const std::string& stored, int64_t rows,
                   int64_t row = 0, const RowRuns& runs = {}, bool resident = true);
  // The same rows as columns: [module.k, n], of floats.
  StoredMatrix locate_turned(const Module& module, int64_t row, int32_t n);
  StoredMatrix::Piece piece_of(const card::StoredTensor& tensor, int64_t element,
                               int64_t count) const;
  Linear place(const StoredMatrix& matrix, Placer& placer);
  Linear bind(const Module& module, int64_t row, int32_t n, Precision precision) {
    return place(locate(module, row, n, precision), store_);
  }
  const float* widened(const card::StoredTensor& tensor, int64_t element, int64_t count,
                       float offset, const RowRuns& runs = {});
  // The layer's experts are in the tensors that ModelSpec::expert_tensors names.
  bool in_tensors(int layer, std::string_view part) const;
  // ExpertTensors::transposed, where the shape of the layer's tensors does not say it.
  bool experts_transposed(int layer, int64_t width, int64_t hidden) const;
  // Which tensor says that the module is quantised, or null.
  const card::StoredTensor* quantised_by(const std::string& path) const;
  bool stores_module(const std::string& path) const;
  // A float matrix but for its rows.
  Linear float_linear(DType type, int32_t n, int32_t k, Precision precision) const;
  // Calls fn(matrix) for each expert, but not after an error.
  template <class F>
  void for_experts(int layer, std::string_view part, int32_t count, int32_t n, int32_t k, bool bias,
                   F&& fn);
  // Does it for experts in_tensors().
  template <class F>
  void for_tensor_experts(int layer, std::string_view part, int32_t count, int32_t n, int32_t k,
                          bool bias, F&& fn);
  const card::StoredTensor* take(const std::string& name, std::span<const DType> types,
                                 std::span<const int64_t> shape, std::string_view note = {}) {
    return taker_.take(name, types, shape, note);
  }
  template <class T>
  T unwrap(Result<T> result);

  const card::Checkpoint& checkpoint_;
  TensorTaker taker_;
  const ModelSpec& spec_;
  const card::WeightFormat& format_;
  const Arithmetic arithmetic_;
  WeightStore& store_;
  const std::string root_;    // Empty: "model.", which names have.
  const std::string layers_;  // Of ModelSpec::layers and other_layers, what the file has.
  const bool turned_;         // The weights of layers are stored as [k, n].
  const bool sums_stored_;    // The file's norms hold what they mean, offset included.
  WeightTally tally_;
  std::vector<BoundModule> modules_;
  std::vector<AdapterTarget> targets_;
};

}  // namespace weir::model
