// ModelSpec describes an architecture completely: its sublayers in order, with their sizes. Plain
// data. Family files produce it from config.json; the KV planner, the weight binder, the forward
// pass and `weir info` read it. Nothing else knows a family's name.
//
// A model is a flat list of sublayers of one operation each. The kinds of operation are visited,
// never asked for: describe() and rope_of() here, check_spec() (families.h), make_layer() and
// need_of() (layers/make_layer.h). A new kind that one of them lacks does not compile.
//
// Threads: free functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/ops.h"

namespace weir::model {

using kernels::Act;

// decision 17: kExact is float32 activations throughout; kFast quantises activations to int8 per
// group for quantised weights, and rounds those of prompts to bf16 where that is faster.
enum class Compute : uint8_t { kFast, kExact };

struct Norm {
  enum Kind : uint8_t { kRms, kLayer } kind = kRms;
  float eps = 1e-6f;
  float weight_offset = 0;  // Gemma stores w and means w + 1.
  bool bias = false;
  bool weight = true;
  std::string module{};  // Its name in the checkpoint, within the layer: "input_layernorm".
};

// Rotary embedding. Frequencies of pair i of d: theta^(-2i/d).
struct Rope {
  enum Layout : uint8_t { kHalf, kInterleaved } layout = kHalf;
  enum Scaling : uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongRope } scaling = kNone;
  float theta = 10000;
  int dim = 0;  // Rotated dimensions of a head; 0 means this layer has no position encoding.
  int still_pairs = 0;  // The last ones of dim / 2, whose angle is always 0.
  float factor = 1;
  float original_context = 0;  // original_max_position_embeddings, or max_position_embeddings.
  float low_freq_factor = 1, high_freq_factor = 4;  // llama3.
  float beta_fast = 32, beta_slow = 1;              // yarn.
  bool truncate = true;                             // yarn: floor and ceil the ramp.
  bool backward = false;                            // Turns the other way.
  float attention_factor = 1;                       // On cos and sin: yarn, longrope.
  float long_attention_factor = 0;                  // longrope, of long sequences; 0: the same.
  // Where positions are three numbers (RopePosition): how many pairs turn by the first, by the
  // second and by the third of them. All 0: positions are one number.
  std::array<int, 3> sections{};
  std::vector<float> short_factor{}, long_factor{};  // longrope: [dim / 2].

  bool length_dependent() const { return scaling == kDynamic || scaling == kLongRope; }
  bool operator==(const Rope&) const = default;
};

// The kinds of operation.

struct Attention {  // MHA, GQA, MQA.
  enum QkNorm : uint8_t {
    kNoQkNorm,
    kPerHead,   // With the same weights for each head.
    kAllHeads,  // All heads together.
    kEachHead,  // With weights of each head's own: [heads, head_dim].
  } qk_norm = kNoQkNorm;
  bool qk_norm_after_rope = false;
  Norm::Kind qk_norm_kind = Norm::kRms;  // This and the next as Norm's.
  bool qk_norm_weight = true;
  bool qk_norm_bias = false;
  float qk_norm_offset = 0;
  float qk_norm_eps = 1e-6f;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;     // Of queries and keys.
  int v_head_dim = 0;   // Of values, and of what o_proj reads; 0: head_dim.
  int window = 0;       // Sliding window in tokens; 0 attends to everything.
  bool chunks = false;  // Not a window: a token sees those of its own chunk of so many.
  float scale = 0;      // Multiplies q.k.
  float logit_softcap = 0;
  float qkv_limit = 0;  // Above 0: what q_proj, k_proj and v_proj give is at most this, either way.
  // Queries are multiplied by
  // 1 + position_beta ln(1 + floor((position + position_shift) / position_step)).
  float position_beta = 0;
  int position_step = 1;
  int position_shift = 0;
  bool values_are_keys = false;  // What k_proj gives, before its norm and rope.
  bool v_norm = false;           // Of each head, without weights; qk_norm_eps.
  bool qkv_bias = false;
  bool out_bias = false;
  // Above 0: each key-value head's keys, before norm and rope, and values are the last so many
  // tokens' by learned weights.
  int conv_taps = 0;
  bool sinks = false;  // One learned logit per head joins the softmax.
  // The sigmoid of a gate multiplies what a head has attended.
  enum OutGate : uint8_t {
    kNoGate,
    kAfterQuery,  // Its rows follow the head's query in q_proj.
    kOwnModule,   // self_attn.gate_proj.
  } out_gate = kNoGate;
  Rope rope{};

  int v_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  int q_rows() const {
    return head_dim + (out_gate == kAfterQuery ? v_dim() : 0);
  }  // Of a head in q_proj.
};

// Multi-head latent attention: a token leaves one latent vector, of which all heads' keys and
// values are linear functions, and one further key that all heads share, which alone is rotated.
struct LatentAttention {
  int num_heads = 0;
  int q_rank = 0;    // Queries come from a latent of their own; 0: from the input.
  int kv_rank = 0;   // Of the latent.
  int nope_dim = 0;  // Of a head's query and key, without the part that is rotated.
  int rope_dim = 0;  // Of that part.
  int v_head_dim = 0;
  float norm_eps = 1e-6f;  // Of the latents' norms.
  float scale = 0;         // Multiplies q.k.
  Rope rope{};

  int q_dim() const { return nope_dim + rope_dim; }
  int latent_dim() const { return kv_rank + rope_dim; }  // What a token leaves.
};

struct Dense {
  int width = 0;
  Act act = Act::kSilu;
  bool xielu = false;  // In place of act, with numbers of the layer's own (kernels::Xielu).
  bool gated = true;   // act(gate(x)) * up(x); false: act(up(x)).
  // In place of up(x): what the token brings to this layer (ModelSpec::token_inputs).
  bool up_by_token = false;
  bool linear = false;  // Of one that is not gated: without an activation, of low rank.
  // Gates count by what they exceed the mean of their row by, plus so many standard deviations.
  std::optional<float> gate_cut{};
  bool bias = false;
  float limit = 0, up_offset = 0;  // As kernels::GatedAct's, of a gated one.
};

// How experts are chosen, and how much each counts (layers/router.h).
struct Router {
  enum Score : uint8_t {
    kSoftmax,        // Of all logits.
    kSoftmaxOfTopK,  // Of the chosen ones' logits.
    kSigmoid,        // Of each logit by itself.
    kSigmoidOfTopK,  // The same, but experts are chosen by logits.
    // Each choice by itself: the softmax of those logits at its rank that are near the best one,
    // by 2 * jitter at most relative to the larger magnitude.
    kSparseMixer,
  } score = kSoftmax;
  float jitter = 0;  // kSparseMixer's.
  // It reads the residual stream by a norm of its own, whose weights are mlp.gate.scale.
  bool own_norm = false;
  float norm_eps = 1e-6f;
  float logit_scale = 1;
  bool expert_scale = false;    // Weights are multiplied by a learned number per expert.
  bool bias = false;            // Of the router's linear layer.
  bool selection_bias = false;  // A learned number per expert that counts for the choice alone.
  // Experts lie in groups; only those of the best groups may be chosen. A group counts as much as
  // its best expert, or as its two best together.
  enum GroupScore : uint8_t { kBest, kTwoBest } group_score = kBest;
  int groups = 1, groups_kept = 1;
  bool renormalise = false;  // Weights are divided by their sum + epsilon.
  float epsilon = 0;
  float least_sum = 0;  // By which they are divided where their sum is less.
  float scale = 1;
};

struct Moe {
  int num_experts = 0;
  int top_k = 0;
  Dense expert{};
  Router router{};
  std::optional<Dense> shared{};
  // Weights multiply what an expert reads, not what it gives.
  bool weighs_input = false;
  bool shared_gate = false;  // The shared expert is multiplied by sigmoid(x . gate).
};

// Linear attention that keeps a state of [key_dim, value_dim] for each value head, by the gated
// delta rule (kernels::DeltaStep), after a short convolution of queries, keys and values.
struct GatedDelta {
  int key_heads = 0;
  int value_heads = 0;  // A multiple; value head h belongs to key head h / group().
  int key_dim = 0;
  int value_dim = 0;
  int conv_taps = 0;
  float norm_eps = 1e-6f;  // Of the norm of what a head gives, before its gate.

  int group() const { return value_heads / key_heads; }
};

using Operation = std::variant<Attention, LatentAttention, GatedDelta, Dense, Moe>;

// residual += scale * post(op(pre(residual))).
struct Sublayer {
  enum Input : uint8_t {
    kResidual,
    kSameAsBefore,  // What the sublayer before read, after its norm: parallel blocks.
  };
  Operation op;
  std::optional<Norm> pre{}, post{};
  Input input = kResidual;
  float scale = 1;
  // What it gives is not added: it joins what the next sublayer gives, whose `joint` is the norm of
  // the sum.
  bool held = false;
  std::optional<Norm> joint{};
  bool plus_input = false;  // What it has read is added besides.
  // Of several streams (ModelSpec::streams): before it they are predicted; after it the predictions
  // are corrected by what the active one has become; what it gives is for all but the first one.
  bool predicts = false, corrects = false, to_others = false;
  float stream_factor = 1;     // Multiplies the residual stream after it.
  std::string stream_scale{};  // A stored number that multiplies the residual stream after it.
  bool late = false;           // Added only after the next sublayer has read the residual stream.
  int memory_of = -1;          // The sublayer whose keys and values it reads; -1: its own.
  int stored_layer = 0;        // Which layer of the checkpoint holds its weights.
};

// A stored module whose rows are those of several canonical modules, one after another.
struct FusedModules {
  std::string stored;              // "self_attn.qkv_proj"
  std::vector<std::string> parts;  // "self_attn.q_proj", ...
  // The rows of each part are so many runs; the first runs of all parts lie together, then the
  // second ones, as where a key-value head's rows follow those of the queries that it answers.
  int runs = 1;
};

// Experts of a layer in two tensors without modules, gate_proj's rows with up_proj's in the first:
// [experts, n, k], or [experts, k, n] if transposed. Biases: the tensor's name + "_bias".
struct ExpertTensors {
  std::string gate_up;  // "mlp.experts.gate_up_proj"
  std::string down;
  bool transposed = false;
  bool interleaved = false;  // Rows of gate and up take turns; else gate's come first.
};

// What a token brings to each layer, [layers, width]: of a table of its own and of its embedding.
struct TokenInputs {
  int width = 0;
  int vocab_size = 0;  // Of the table; other tokens are as token 0.
  Norm norm{};
};

// Residual streams side by side (AltUp). Sublayers see the active one.
struct Streams {
  int count = 0;
  int active = 0;
  bool scaled = true;  // What the corrected one is to the sublayer after, by altup's own scale.
  float norm_eps = 1e-6f;
};

struct ModelSpec {
  std::string family;  // As config.json names it.
  int vocab_size = 0;
  int hidden_size = 0;
  int context_max = 0;  // max_position_embeddings.
  float embed_scale = 1;
  float logit_scale = 1;
  float logit_softcap = 0;
  bool tied_head = false;
  bool head_bias = false;
  bool tied_unless_stored = false;  // config.json does not say: a stored lm_head wins over the tie.
  bool unit_head = false;           // Rows of the head count by their direction alone.
  int learned_positions = 0;        // Positions that have a vector, added to embeddings; 0: none.
  std::optional<Norm> embed_norm{};
  Norm final_norm;
  std::vector<Sublayer> sublayers;
  std::optional<TokenInputs> token_inputs;
  std::optional<Streams> streams;
  // The names of a layer's tensors begin with this and its number.
  std::string layers = "model.layers.";
  // Or with one of these and the number, if the file has such names.
  std::vector<std::string> other_layers{};
  // Module names within a layer that differ from Llama's (weight_map.h): {canonical, as stored}. Of
  // several for one module, the first that the file has.
  std::vector<std::pair<std::string, std::string>> renames;
  std::vector<FusedModules> fused;
  // What stands for "model." before the names of tensors, where it is not that; of several, the
  // first with which the file has the embedding.
  std::vector<std::string> roots;
  std::vector<std::string> towers;  // Tensors whose names begin with these are not run.
  // Layers after the last that guess further tokens. The file may have them; they are not run.
  int guessing_layers = 0;
  // A module of some layers; where the file stores its weight as [channels, taps, 1], norms that
  // mean w + 1 are stored as that sum.
  std::string convolution;
  // A module of each layer, not square; where the file stores its weight as [k, n], it does so with
  // the weights of all linear layers within layers.
  std::string turned_if{};
  std::optional<ExpertTensors> expert_tensors;  // Where experts are no modules.
};

std::string describe(const ModelSpec& spec);  // One line per distinct layer; golden-tested.
int layer_count(const ModelSpec& spec);       // Of the checkpoint.
const Rope* rope_of(const Operation& op);     // Null: none.

}  // namespace weir::model
