// Workspace: the scratch memory of one forward pass, sized at load for the largest batch: what
// every model needs, and what its sublayers have asked for (scratch.h).
//
// Threads: one per model; which member writes what is the phases' business (pass.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/huge_pages.h"
#include "base/result.h"
#include "model/adapted_rows.h"
#include "model/linear.h"
#include "model/residual.h"
#include "model/rope.h"
#include "model/row_groups.h"
#include "model/scratch.h"

namespace weir::model {

struct WorkspaceSizes {
  int32_t rows = 0;
  int32_t replay_rows = 0;  // After those in the buffers of sublayers.
  int32_t members = 0;
  int32_t hidden = 0;
  int32_t input_width = 0;  // Of sublayers' inputs; 0: hidden.
  int32_t logit_rows = 0, vocab = 0;
  std::vector<int32_t> rope_dims;
  int32_t adapter_rank = 0;  // The largest of an adapter; 0: there are none.
  uint8_t input_forms = 0;  // Of sublayers' inputs, as ActivationForms counts them.
};

struct Workspace {
  static Result<std::unique_ptr<Workspace>> create(const WorkspaceSizes& sizes,
                                                   const ScratchPlan& plan);

  // Columns of a block buffer: the largest group of activations, which are quantised together.
  static constexpr int32_t kBlockColumns = 128;

  // Up to so many rows a member computes the input of a sublayer for itself, all rows of it: that
  // takes less than to share them out and wait. (A norm and its conversion: 0.1 us for 576 numbers;
  // a barrier at best 0.3 us, in a busy step several.)
  static constexpr int32_t kOwnRows = 4;

  // A buffer that some sublayer has asked for; a member's own.
  template <class T>
  T* at(Buffer<T> buffer, int member = 0) const {
    const ScratchPlan::Place& place = layout.buffers[static_cast<size_t>(buffer.id)];
    return reinterpret_cast<T*>(scratch_memory + place.offset + member * place.member_bytes);
  }
  const ActivationForms& at(FormsBuffer buffer) const {
    return forms[static_cast<size_t>(buffer.number)];
  }
  void* scratch(int member) const { return kernel_scratch + member * kScratchBytes; }
  // One of a member's two buffers of [rows, kBlockColumns]: columns that no other member looks at.
  float* block(int member, int which) const { return blocks + (2 * member + which) * block_floats; }
  // Its memory goes back to the system until it is next used; what is in it is lost.
  void give_back() { memory.give_back(0, memory.bytes()); }
  int64_t bytes() const { return static_cast<int64_t>(memory.bytes()); }

  // Where states take what earlier drafts have brought: rows from this one on, in the buffers that
  // sublayers have asked for, beyond those of any batch.
  int32_t replay_begin = 0;

  RowGroups groups;
  AdaptedRows adapted;

  // Per row.
  Residual residual;        // [rows, hidden]
  float* normed = nullptr;  // [rows, input width]: input of a sublayer.
  int32_t* position = nullptr;
  int32_t* slice = nullptr;        // Index of the row's slice.
  Angles* angles = nullptr;        // [ropes][rows]
  std::vector<float*> own_angles;  // Per rope: [rows, dim].
  ActivationForms normed_forms;
  // Per member: the same as `normed`, of kOwnRows rows.
  std::vector<float*> own_normed;
  std::vector<ActivationForms> own_forms;

  float* logits = nullptr;  // [logit_rows, vocab]
  std::byte* kernel_scratch = nullptr;
  float* blocks = nullptr;  // [members][2][rows, kBlockColumns]
  int64_t block_floats = 0;

  // What sublayers have asked for.
  ScratchPlan::Layout layout;
  std::vector<ActivationForms> forms;
  std::byte* scratch_memory = nullptr;

  HugeBuffer memory;
};

}  // namespace weir::model
