// Workspace: the scratch memory of one forward pass, sized at load for the largest batch.
//
// Threads: one per model; which member writes what is the phases' business (pass.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/huge_pages.h"
#include "base/result.h"
#include "model/linear.h"
#include "model/residual.h"
#include "model/rope.h"
#include "model/row_groups.h"

namespace weir::model {

// What the layers of a model need at most; each layer raises it to its own needs.
struct WorkspaceSizes {
  int32_t rows = 0;
  int32_t members = 0;
  int32_t hidden = 0;
  int32_t q_width = 0, kv_width = 0;
  int32_t ffn_width = 0;     // Dense.
  int32_t expert_width = 0;  // Of one expert.
  int32_t shared_width = 0;
  bool ffn_floats = false;  // Some down_proj reads floats.
  int32_t experts = 0, top_k = 0;
  bool streamed = false;  // Experts are.
  int32_t logit_rows = 0, vocab = 0;
  std::vector<int32_t> rope_dims;
  uint8_t forms = 0;  // Of activations, as ActivationForms counts them.
};

// Which rows each expert computes in one step: a counting sort of the router's choices. A slot is
// one (row, choice), in the order of experts, then rows. Every member keeps a copy of its own:
// sorting 512 rows again costs less than a barrier.
struct ExpertPlan {
  int32_t* begin = nullptr;         // [experts + 1]: first slot of each expert.
  int32_t* row = nullptr;           // [slots]
  int32_t* slot = nullptr;          // [rows][top_k], by rank in the router's order.
  int32_t* prompt_begin = nullptr;  // [experts]: the expert's first slot of a prompt's row.
  int32_t* active = nullptr;        // Experts with rows.
  int32_t active_count = 0;
};

struct Workspace {
  static Result<std::unique_ptr<Workspace>> create(const WorkspaceSizes& sizes);

  // Columns of a block buffer: the largest group of activations, which are quantised together.
  static constexpr int32_t kBlockColumns = 128;

  // Up to so many rows a member computes the input of a sublayer for itself, all rows of it: that
  // takes less than to share them out and wait. (A norm and its conversion: 0.1 us for 576 numbers;
  // a barrier at best 0.3 us, in a busy step several.)
  static constexpr int32_t kOwnRows = 4;

  void* scratch(int member) const { return kernel_scratch + member * kernels::kScratchBytes; }
  // One of a member's two buffers of [rows, kBlockColumns]: columns that nobody else looks at.
  float* block(int member, int which) const { return blocks + (2 * member + which) * block_floats; }
  // Its memory goes back to the system until it is next used; what is in it is lost.
  void give_back();
  int64_t bytes() const { return static_cast<int64_t>(memory.bytes()); }

  RowGroups groups;

  // Per row.
  Residual residual;        // [rows, hidden]
  float* normed = nullptr;  // [rows, hidden]: input of a sublayer.
  float* delta = nullptr;   // [rows, hidden]: what a sublayer adds.
  int32_t* position = nullptr;
  int32_t* slice = nullptr;        // Index of the row's slice.
  Angles* angles = nullptr;        // [ropes][rows]
  std::vector<float*> own_angles;  // Per rope: [rows, dim].
  ActivationForms normed_forms, inner_forms, shared_forms;
  // Per member: the same as `normed`, of kOwnRows rows.
  std::vector<float*> own_normed;
  std::vector<ActivationForms> own_forms;

  // Attention.
  float* q = nullptr;         // [rows, q_width]
  float* k = nullptr;         // [rows, kv_width]
  float* v = nullptr;         // [rows, kv_width]
  float* attended = nullptr;  // [rows, q_width]

  // Feed-forward: slots are rows, or (row, choice) pairs of routed experts.
  // The floats of gate and up are kept only for a down_proj that reads floats.
  float* gate = nullptr;         // [slots, width]
  float* up = nullptr;           // [slots, width]
  float* shared_gate = nullptr;  // [rows, shared_width]
  float* shared_up = nullptr;
  float* shared_out = nullptr;     // [rows, hidden]
  float* shared_weight = nullptr;  // [rows]
  float* expert_out = nullptr;     // [slots, hidden]
  float* router = nullptr;         // [rows, experts]
  int32_t* choice = nullptr;       // [rows, top_k]: experts, best first.
  float* choice_weight = nullptr;  // [rows, top_k]
  int32_t* seen_choice = nullptr;  // The same of the next layer's router, asked early.
  float* seen_weight = nullptr;
  int32_t* slots = nullptr;  // 0, 1, 2, ...: the only thing that outlives a pass.
  int64_t slot_count = 0;
  std::vector<ExpertPlan> plans;  // Per member.

  float* logits = nullptr;  // [logit_rows, vocab]
  std::byte* kernel_scratch = nullptr;
  float* blocks = nullptr;  // [members][2][rows, kBlockColumns]
  int64_t block_floats = 0;

  HugeBuffer memory;

 private:
  void fill_slots();
};

}  // namespace weir::model
