#include "grammar/parts.h"

#include "base/json.h"

namespace weir::grammar {

GrammarSource loose_schema(std::string_view schema, std::string_view name) {
  GrammarSource source;
  source.kind = GrammarSource::Kind::kParts;
  JsonWriter json(source.text);
  json.begin_object().key("schema").raw(schema).field("loose", name).end_object();
  return source;
}

std::string source_part(const GrammarSource& source) {
  if (source.kind == GrammarSource::Kind::kParts) return source.text;  // It is one already.
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("source").begin_object();
  json.field("kind", static_cast<int32_t>(source.kind)).field("text", source.text);
  json.key("choices").begin_array();
  for (const std::string& choice : source.choices) json.value(choice);
  json.end_array().end_object().end_object();
  return text;
}

}  // namespace weir::grammar
