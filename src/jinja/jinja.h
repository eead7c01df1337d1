// Jinja templates, as Python's jinja2 3.1 would render them in the environment that transformers
// sets up for chat templates (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks,
// loopcontrols, its own tojson, raise_exception, strftime_now, {% generation %}). This is all of
// the folder that others see.
//
// Not supported, and refused: {% block %}, {% autoescape %}, integers beyond 64 bits in arithmetic,
// filters made for web pages.
//
// Threads: a template is immutable after parse(); render() may be called from any thread at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::jinja {

// Published chat templates have at most 20 KB.
constexpr size_t kSourceBytesMax = 256 << 10;

// Templates come with models and their variables from clients: neither may cost without bound.
struct Limits {
  // A step is a node evaluated, an iteration or 32 bytes worked on: some 20 ns. Half a second.
  int64_t steps = 20'000'000;
  // A prompt of a million tokens has 4 to 5 MB.
  size_t output_bytes = 32 << 20;
  // Memory of values; some twenty times such a prompt.
  size_t memory_bytes = 128 << 20;
  // Nodes being evaluated inside one another: 200 to 300 calls of a macro; Python gives up at about
  // 170. A level costs up to 600 bytes of stack, 2 KB with sanitizers.
  int depth = 1'000;
};

class Template {
 public:
  // kConfig, with the line's number and text, if the template is malformed.
  static Result<Template> parse(std::string source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // `variables`: a JSON object. kInvalid for what fails: raise_exception's message alone, or else
  // what happened, with the line's number and text. strftime_now uses `now`, in seconds since the
  // epoch, and UTC.
  Result<std::string> render(std::string_view variables, int64_t now,
                             const Limits& limits = {}) const;

  const std::string& source() const;

 private:
  struct Parsed;
  explicit Template(std::unique_ptr<const Parsed> parsed);
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace weir::jinja
