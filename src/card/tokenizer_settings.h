// TokenizerSettings: what a model says beside its tokenizer: chat templates and the texts of the
// special tokens. From chat_template.jinja, tokenizer_config.json and their older relatives.
//
// Threads: a plain value; the reader may run anywhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "card/model_files.h"

namespace weir::card {

struct TokenizerSettings {
  // Jinja source, for ChatTemplate::parse. Nullopt: a base model, or one whose format is not Jinja.
  std::optional<std::string> chat_template;
  // A second template that some models have for conversations with tools.
  std::optional<std::string> tool_use_template;
  // `bos_token` and friends in the file's order: name to text. They are variables of every
  // template.
  std::vector<std::pair<std::string, std::string>> special_tokens;

  // The text of `bos_token`, `eos_token`, ...; nullptr if the model has none.
  const std::string* special_token(std::string_view name) const;
};

// A missing file is no error, a malformed one is (kConfig, naming file and key).
// Templates: chat_template.jinja, else tokenizer_config.json's `chat_template` (a string, or a list
// of {name, template} with "default" and "tool_use"), else chat_template.json's.
// Tokens: tokenizer_config.json, then special_tokens_map.json for those it does not name.
Result<TokenizerSettings> read_tokenizer_settings(const ModelFiles& files);

}  // namespace weir::card
