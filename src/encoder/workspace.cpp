#include "encoder/workspace.h"

namespace weir::encoder {

Result<Workspace> Workspace::create(const model::ScratchPlan& plan, int32_t rows, int32_t members) {
  Workspace ws;
  ws.layout_ = plan.lay_out(rows, members);
  const int64_t bytes = ws.layout_.bytes + members * model::kScratchBytes;
  WEIR_ASSIGN(ws.memory_, HugeBuffer::allocate(static_cast<size_t>(bytes)));
  ws.forms_ = plan.place_forms(ws.layout_, ws.memory_.data(), rows);
  return ws;
}

}  // namespace weir::encoder
