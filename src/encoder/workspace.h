// Workspace: the scratch memory of an encoder, sized at load for the most rows that are computed
// together: what its stages have asked for (model/scratch.h), and each member's own.
//
// Threads: one per encoder; which member writes what is the phases' business (pass.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/huge_pages.h"
#include "base/result.h"
#include "model/scratch.h"

namespace weir::encoder {

class Workspace {
 public:
  static Result<Workspace> create(const model::ScratchPlan& plan, int32_t rows, int32_t members);

  template <class T>
  T* at(model::Buffer<T> buffer, int member = 0) const {
    const model::ScratchPlan::Place& place = layout_.buffers[static_cast<size_t>(buffer.id)];
    return reinterpret_cast<T*>(memory_.data() + place.offset + member * place.member_bytes);
  }
  const model::ActivationForms& at(model::FormsBuffer buffer) const {
    return forms_[static_cast<size_t>(buffer.number)];
  }
  void* kernel_scratch(int member) const {
    return memory_.data() + layout_.bytes + member * model::kScratchBytes;
  }
  int64_t bytes() const { return static_cast<int64_t>(memory_.bytes()); }
  // The memory goes back to the system until it is next used; what is in it is lost.
  void give_back() { memory_.give_back(0, memory_.bytes()); }

 private:
  model::ScratchPlan::Layout layout_;
  std::vector<model::ActivationForms> forms_;
  HugeBuffer memory_;
};

}  // namespace weir::encoder
