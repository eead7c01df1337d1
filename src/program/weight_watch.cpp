#include "program/weight_watch.h"

#include "base/log.h"

namespace weir {

void WeightWatch::look() {
  if (told_) return;
  for (size_t i = 0; i < (files_.size() + kRound - 1) / kRound; ++i)
    look_at(*files_[next_++ % files_.size()]);
  const std::string* why = engine_->given_up();
  if (why == nullptr) return;
  told_ = true;
  log::error("model " + *why + " (every request gets 503 until then)");
}

void WeightWatch::look_at(const FileView& file) {
  if (const Result<void> same = file.check_unchanged(); !same)
    return engine_->give_up(same.error().message);
  // The one that is mapped stays as long as it is.
  if (file.state().change == FileChange::kReplaced && replaced_.insert(&file).second)
    log::warn("model " + file.name() +
              " was replaced: the old file is served on, a restart reads the new one");
}

}  // namespace weir
