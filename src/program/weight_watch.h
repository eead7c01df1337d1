// WeightWatch: looks at the files of a model whose weights are used from them in place. Where one
// was written to or cut, the engine is told to give up; the log says what has happened, once.
//
// Threads: one, the network loop.
#pragma once

#include <cstddef>
#include <set>
#include <span>

#include "base/file.h"
#include "sched/engine_handle.h"

namespace weir {

class WeightWatch {
 public:
  // So many calls of look() see each file at least once.
  static constexpr size_t kRound = 5;

  // `files`, which are mapped, and `engine` outlive it.
  WeightWatch(std::span<const FileView* const> files, sched::EngineHandle& engine)
      : files_(files), engine_(&engine) {}

  // A system call or two for each of a few files.
  void look();

 private:
  void look_at(const FileView& file);

  std::span<const FileView* const> files_;
  sched::EngineHandle* engine_;
  size_t next_ = 0;
  std::set<const FileView*> replaced_;  // Of which the log knows.
  bool told_ = false;                   // That the engine has given up, wherever that was found.
};

}  // namespace weir
