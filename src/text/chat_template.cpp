#include "text/chat_template.h"

#include <utility>

namespace weir::text {

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  WEIR_ASSIGN(auto parsed, jinja::Template::parse(std::move(source)));
  return ChatTemplate(std::move(parsed));
}

Result<std::string> ChatTemplate::render(std::string_view variables_json, int64_t now) const {
  return parsed_.render(variables_json, now);
}

}  // namespace weir::text
