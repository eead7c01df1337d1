// Template: a parsed Jinja template, as Python's jinja2 3.1 would render it in the environment that
// transformers sets up for chat templates (ImmutableSandboxedEnvironment, trim_blocks,
// lstrip_blocks, loopcontrols, its own tojson, raise_exception, strftime_now, {% generation %}).
//
// Not supported, and refused: {% block %}, {% autoescape %}, integers beyond 64 bits in arithmetic,
// filters made for web pages.
//
// Threads: immutable after parse(); render() may be called from any thread at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "jinja/ast.h"
#include "jinja/runtime.h"

namespace weir::jinja {

// Published chat templates have at most 20 KB.
constexpr size_t kSourceBytesMax = 256 << 10;

class Template {
 public:
  // kConfig, with the line's number and text, if the template is malformed.
  static Result<std::unique_ptr<const Template>> parse(std::string source);

  // `variables`: a JSON object. kInvalid for what fails: raise_exception's message alone, or else
  // what happened, with the line's number and text.
  Result<std::string> render(std::string_view variables, int64_t now,
                             const Limits& limits = {}) const;

  const std::string& source() const { return source_; }

 private:
  Template() = default;
  std::string place(int32_t line) const;

  std::string source_;      // As given.
  std::string normalised_;  // What tokens and constants refer to.
  Arena arena_;
  Tree tree_;
};

}  // namespace weir::jinja
