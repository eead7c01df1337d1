// Child: another process of this program, whose standard output is read here. It ends with this
// one, whatever becomes of this one.
//
// Threads: its owner's, which must live as long as the child: it is the parent that the kernel
// watches.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::suite {

class Child {
 public:
  // `weir` with these words after it. Variables WEIR_... are not handed on: the words say all.
  static Result<Child> start(const std::vector<std::string>& words);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  // Kills it if it runs.

  pid_t pid() const { return pid_; }
  // The next line of its output, without the end; nothing: it has closed its output.
  std::optional<std::string> read_line();
  // Asks it to end (SIGTERM).
  void terminate();
  // Waits for its end, and gives its exit status; 128 and the signal's number where it was killed.
  int wait();
  // Ends of what it has said on standard error, for messages.
  std::string complaint() const;

 private:
  Child() = default;
  void close_all();

  pid_t pid_ = -1;    // -1: it has ended.
  int output_ = -1;   // Of a pipe.
  int errors_ = -1;   // Of a file without a name.
  std::string rest_;  // Read, but not taken.
};

// Runs it to its end and gives its output; an error where it fails, with what it said.
Result<std::string> output_of(const std::vector<std::string>& words);

}  // namespace weir::suite
