// ModelSpec describes an architecture completely: its sublayers in order, with their sizes. Plain
// data. Family files produce it from config.json; the KV planner, the weight binder, the forward
// pass and `weir info` read it. Nothing else knows a family's name.
//
// A model is a flat list of sublayers of one operation each. The kinds of operation
// (operations/operation.h) are visited, never asked for: describe() and rope_of() here,
// check_spec() (families.h), make_layer() and needs_of() (layers/make_layer.h). A new kind that one
// of them lacks does not compile.
//
// Threads: free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/operations/operation.h"

namespace weir::model {

// decision 17: kExact is float32 activations throughout; kFast quantises activations to int8 per
// group for quantised weights, and rounds those of prompts to bf16 where that is faster.
enum class Compute : uint8_t { kFast, kExact };

// residual = carry * residual + scale * post(op(pre(residual))), or, if it carries its input,
// carry * pre(residual) + ...
struct Sublayer {
  enum Input : uint8_t {
    kResidual,
    kSameAsBefore,  // What the sublayer before read, after its norm: parallel blocks.
  };
  Operation op;
  std::optional<Norm> pre{}, post{};
  Input input = kResidual;
  float scale = 1;
  float carry = 1;
  bool carries_input = false;
  // What it gives is not added: it joins what the next sublayer gives, whose `joint` is the norm of
  // the sum, or is added after what a later one gives that `adds_held`.
  bool held = false;
  std::optional<Norm> joint{};
  bool adds_held = false;
  bool plus_input = false;  // What it has read is added besides.
  // Of several streams (ModelSpec::streams): before it they are predicted; after it the predictions
  // are corrected by what the active one has become; what it gives is for all but the first one.
  bool predicts = false, corrects = false, to_others = false;
  // The module of its hyper-connections, where the model has such (ModelSpec::hyper): they stand
  // for the way to and from the residual stream.
  std::string hyper{};
  float stream_factor = 1;     // Multiplies the residual stream after it.
  std::string stream_scale{};  // A stored number that multiplies the residual stream after it.
  // What it reads stands after the row's token, embedded and normed (FeatureInput::kBeside): it is
  // twice as wide.
  bool beside_token = false;
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
// [experts, n, k], or [experts, k, n] if transposed, unless their shape says otherwise. Biases: the
// tensor's name + "_bias".
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

// Residual streams side by side, of which each sublayer reads a mixture and gives to all
// (layers/hyper_connections.h).
struct HyperConnections {
  int streams = 4;
  int sinkhorn_rounds = 20;
  float eps = 1e-6f;
  float norm_eps = 1e-6f;
};
inline constexpr int kHyperStreamsMax = 8;  // Twice the most published.

// Of a drafter: what its rows begin with besides a token, which is what another model has left of
// the position before (Batch::features). The residual stream begins with
//   kJoined        projection([token, feature])
//   kFeatureFirst  projection([feature, token])
//   kBeside        projection(feature); the token stands beside what the first sublayer reads
//   kAlone         projection(feature), of rows that only leave keys and values (Decoder::remember());
//                  rows that attend begin with tokens.
struct FeatureInput {
  enum Way : uint8_t { kJoined, kFeatureFirst, kBeside, kAlone } way = kJoined;
  int width = 0;               // Of a feature.
  std::string projection{};    // A module of the whole model.
  std::optional<Norm> norm{};  // Of the feature, before it is projected,
  std::optional<Norm> token_norm{};  // of the token's embedding,
  std::optional<Norm> out_norm{};    // and of what the projection gives.

  bool joins() const { return way == kJoined || way == kFeatureFirst; }
};

// Which tokens of a prompt with pictures also see those after them: none; rows of features those of
// their run, up to the next mark; all tokens of the prompt.
enum class BothWays : uint8_t { kNone, kRuns, kPrompt };

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
  int head_rows = 0;                // Of lm_head, where those are fewer than the vocabulary; or 0.
  bool tied_unless_stored = false;  // config.json does not say: a stored lm_head wins over the tie.
  bool unit_head = false;           // Rows of the head count by their direction alone.
  int learned_positions = 0;        // Positions that have a vector, added to embeddings; 0: none.
  std::optional<Norm> embed_norm{};
  Norm final_norm;
  std::vector<Sublayer> sublayers;
  std::optional<TokenInputs> token_inputs;
  std::optional<FeatureInput> features;
  std::optional<Streams> streams;
  std::optional<HyperConnections> hyper;  // Then of every sublayer.
  BothWays both_ways = BothWays::kNone;   // Where a prompt has pictures.
  // The names of a layer's tensors begin with this and its number.
  std::string layers = "model.layers.";
  bool numbered_layers = true;  // Or the only one has no number.
  // So many layers, one after another, are one of the checkpoint; in names, # is which of them.
  int layers_in_one = 1;
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
  // Whether norms that mean w + 1 are stored as that sum, where something else says it.
  std::optional<bool> norms_are_sums{};
  // A module of each layer, not square; where the file stores its weight as [k, n], it does so with
  // the weights of all linear layers within layers.
  std::string turned_if{};
  std::optional<ExpertTensors> expert_tensors;  // Where experts are no modules.
};

std::string describe(const ModelSpec& spec);  // One line per distinct layer; golden-tested.
// A place in a model whose rows another model reads: the residual stream as it enters a sublayer, or,
// of their count, as it leaves the last one, there also after the final norm.
struct FeatureTap {
  int sublayer = 0;
  bool normed = false;

  bool operator==(const FeatureTap&) const = default;
};

int layer_count(const ModelSpec& spec);       // Of the checkpoint.
const Rope* rope_of(const Operation& op);     // Null: none.
// Positions are three numbers where a prompt has pictures (RopePosition).
bool has_three_positions(const ModelSpec& spec);

}  // namespace weir::model
