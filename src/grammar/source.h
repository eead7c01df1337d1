// GrammarSource: a constraint as a client writes it; compile() makes it an automaton.
//
// Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/interrupt.h"

namespace weir::grammar {

struct GrammarSource {
  enum class Kind : uint8_t {
    kJsonObject,  // Any JSON object.
    kJsonSchema,
    kRegex,
    kChoice,   // One of `choices`.
    kGrammar,  // GBNF, or Lark if nothing is defined by `::=`.
    kGbnf,
    kParts,  // Put together (parts.h).
  };
  Kind kind = Kind::kJsonObject;
  std::string text;
  std::vector<std::string> choices;

  bool operator==(const GrammarSource&) const = default;
};

// kCancelled if `interrupt` has fired.
Result<std::unique_ptr<Automaton>> compile(const GrammarSource& source,
                                           Interrupt* interrupt = nullptr);
// The error of a compilation that was interrupted.
tl::unexpected<Error> interruption();
// Whether the notation is understood; compiling may still find it too complex.
Result<void> check_source(const GrammarSource& source);

}  // namespace weir::grammar
