#include "api/serving/answer_end.h"

#include <algorithm>
#include <string_view>

#include "api/output/call_format.h"
#include "api/output/reasoning_format.h"
#include "base/concat.h"
#include "base/json.h"

namespace weir::api {

namespace {

constexpr std::string_view kWords = "weir_probe_answer";  // No template holds them.
constexpr std::string_view kConversation =
    R"([{"role":"user","content":"Hello."},{"role":"assistant","content":"weir_probe_answer"}])";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// Answers hold it before their end.
bool within_answers(std::string_view chat_template, std::string_view token) {
  const output::ReasoningFormat* reasoning = output::detect_reasoning(chat_template);
  if (reasoning && concat({reasoning->close, reasoning->after}).find(token) != token.npos)
    return true;
  const output::CallFormat* calls = output::detect_calls(chat_template);
  return calls && is_marker(*calls, token);
}

}  // namespace

std::string text_after_answer(const text::ChatTemplate& chat_template,
                              const TemplateVariables& special_tokens) {
  std::string variables;
  JsonWriter json(variables);
  json.begin_object().key("messages").raw(kConversation).field("add_generation_prompt", false);
  for (const auto& [name, text] : special_tokens) json.field(name, text);
  json.end_object();
  const std::string shown = chat_template.render(variables, /*now=*/0).value_or(std::string());
  const size_t words = shown.rfind(kWords);
  if (words == std::string::npos) return {};
  return std::string(trimmed(std::string_view(shown).substr(words + kWords.size())));
}

std::optional<int32_t> answer_end(const text::ChatTemplate& chat_template,
                                  const TemplateVariables& special_tokens,
                                  const text::Tokenizer& tokenizer) {
  const std::string text = text_after_answer(chat_template, special_tokens);
  std::optional<int32_t> found;
  size_t longest = 0;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_special(id)) continue;
    const std::string_view piece = tokenizer.piece(id);
    if (piece.size() <= longest || !text.starts_with(piece)) continue;
    found = id;
    longest = piece.size();
  }
  if (found && within_answers(chat_template.source(), tokenizer.piece(*found))) return {};
  return found;
}

}  // namespace weir::api
