// ScratchPlan: the buffers that a model's sublayers compute in, and where each lies in a workspace.
//
// A layer asks for its buffers when it is built and keeps handles, which a Pass turns into memory.
// Sublayers that are not at work at the same time share memory, by when a buffer is in use:
//   kComputing  from begin() or compute() until leave() is done. Between enter() of a sublayer and
//               the barrier before its compute() the one before it leaves, so no two sublayers have
//               such buffers at one time: all of them share one piece.
//   kEntered    from enter() until leave() is done. enter() is one phase with leave() of the
//               sublayer before: every other sublayer shares a piece. Layers that leave nothing
//               have none: there each member enters all rows for itself (Pass::own_inputs).
//   kWholePass  from the pass's begin to its end: shared with nothing.
//
// Threads: filled by one thread, at load; immutable afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/linear.h"

namespace weir::model {

template <class T>
struct Buffer {
  int32_t id = -1;
};

// Activations in other forms than floats.
struct FormsBuffer {
  int32_t id = -1;
  int32_t number = -1;  // Among those.
};

enum class BufferUse : uint8_t { kComputing, kEntered, kWholePass };

// How many elements, for as many rows as a workspace is made for.
struct BufferSize {
  int64_t per_row = 0;
  int64_t fixed = 0;
  bool per_member = false;  // So many for each member of the team.
};

class ScratchPlan {
 public:
  // What is asked for from here on is the next sublayer's.
  void next_sublayer() { ++sublayer_; }
  template <class T>
  Buffer<T> ask(BufferUse use, const BufferSize& size) {
    return {add({.sublayer = sublayer_,
                 .use = use,
                 .element_bytes = static_cast<int64_t>(sizeof(T)),
                 .size = size})};
  }
  // Forms of `rows_per_row` rows of k activations for each row, while computing.
  FormsBuffer ask_forms(int64_t k, int64_t rows_per_row, uint8_t forms);
  // The sublayer's weights read its input in these forms.
  void ask_input(uint8_t forms) { input_forms_ |= forms; }
  uint8_t input_forms() const { return input_forms_; }

  // Where buffers lie in the memory of a workspace, by handle.
  struct Place {
    int64_t offset = 0;
    int64_t member_bytes = 0;  // From one member's to the next.
  };
  struct Layout {
    std::vector<Place> buffers;
    int64_t bytes = 0;
  };
  Layout lay_out(int64_t rows, int64_t members) const;
  // The forms of FormsBuffers, by number, in memory that is laid out so for `rows` rows.
  std::vector<ActivationForms> place_forms(const Layout& layout, std::byte* memory,
                                           int64_t rows) const;

 private:
  struct Asked {
    int32_t sublayer = 0;
    BufferUse use = BufferUse::kComputing;
    int64_t element_bytes = 0;
    BufferSize size{};
    uint8_t forms = 0;  // Of a FormsBuffer: size.per_row activations in `rows_per_row` rows.
    int64_t rows_per_row = 0;

    int64_t bytes(int64_t rows) const;
  };
  int32_t add(const Asked& asked);

  std::vector<Asked> asked_;
  std::vector<FormsBuffer> forms_;
  int32_t sublayer_ = -1;
  uint8_t input_forms_ = 0;
};

}  // namespace weir::model
