// Any bytes as a JSON schema, that has to hold as a whole or need not.
#include "base/json.h"
#include "grammar/parts.h"
#include "grammar_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::grammar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  compile_and_walk(GrammarSource::Kind::kJsonSchema, text);
  if (const auto doc = weir::JsonDoc::parse(text)) {
    std::string schema;
    weir::JsonWriter(schema).value(doc->root());
    compile_and_walk(GrammarSource::Kind::kParts, loose_schema(schema, "schema").text);
  }
  return 0;
}
