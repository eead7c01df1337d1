#include "base/progress.h"

#include "base/check.h"

namespace weir {

namespace {

thread_local Progress* t_progress = nullptr;

}  // namespace

Progress::Scope::Scope(Progress& progress) {
  CHECK(t_progress == nullptr);
  t_progress = &progress;
}

Progress::Scope::~Scope() { t_progress = nullptr; }

void note_progress() {
  if (t_progress != nullptr) t_progress->move_on();
}

}  // namespace weir
