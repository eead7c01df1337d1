// ChatTemplate: a thin shell around the Jinja interpreter.
#include "text/chat_template.h"

#include "jinja/template.h"

namespace weir::text {

struct ChatTemplate::Impl {
  std::unique_ptr<const jinja::Template> parsed;
};

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  WEIR_ASSIGN(auto parsed, jinja::Template::parse(std::move(source)));
  return ChatTemplate(std::make_unique<Impl>(Impl{std::move(parsed)}));
}

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<std::string> ChatTemplate::render(std::string_view variables_json, int64_t now) const {
  return impl_->parsed->render(variables_json, now);
}

const std::string& ChatTemplate::source() const { return impl_->parsed->source(); }

}  // namespace weir::text
