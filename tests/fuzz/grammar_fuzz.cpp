// Any bytes as GBNF, Lark or a regular expression, by the first byte.
#include "grammar_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::grammar;
  using Kind = GrammarSource::Kind;
  if (size == 0) return 0;
  constexpr Kind kKinds[] = {Kind::kGbnf, Kind::kGrammar, Kind::kRegex};
  compile_and_walk(kKinds[data[0] % 3], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
