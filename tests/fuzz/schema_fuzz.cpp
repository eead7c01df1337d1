// Any bytes as a JSON schema.
#include "grammar_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::sample::grammar;
  compile_and_walk(GrammarSource::Kind::kJsonSchema, {reinterpret_cast<const char*>(data), size});
  return 0;
}
