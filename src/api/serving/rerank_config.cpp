#include "api/serving/rerank_config.h"

#include <optional>
#include <vector>

namespace weir::api {

namespace {

// The one token that a word is, if it is one.
std::optional<int32_t> single_token(const text::Tokenizer& tokenizer, const std::string& word) {
  const std::vector<int32_t> ids =
      tokenizer.encode(word, {.add_special = false, .parse_special = false});
  return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
}

// Both words as they stand alone, else both after a space: small vocabularies have only those.
Result<void> use_words(const text::Tokenizer& tokenizer, const std::string& yes,
                       const std::string& no, const std::string& source, RerankConfig& config) {
  for (const char* before : {"", " "}) {
    const auto first = single_token(tokenizer, before + yes);
    const auto second = single_token(tokenizer, before + no);
    if (!first || !second) continue;
    config.yes = *first;
    config.no = *second;
    return {};
  }
  return fail(ErrorCode::kConfig, source + ": expected a vocabulary in which '" + yes + "' and '" +
                                      no + "' are one token each, found pieces of them");
}

bool has_literal(std::string_view source, std::string_view word) {
  for (const char quote : {'\'', '"'}) {
    std::string literal(1, quote);
    literal.append(word) += quote;
    if (source.find(literal) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Result<RerankConfig> rerank_config(const card::RerankSettings& made,
                                   const text::Tokenizer& tokenizer, std::string_view chat_template,
                                   std::string_view choice) {
  RerankConfig config;
  if (choice == "none") return config;
  if (choice == "yes-no") {
    WEIR_TRY(use_words(tokenizer, "yes", "no", "--reranker yes-no", config));
  } else {
    config.refusal = made.refusal;
    config.roles = made.roles;
    if (made.tokens) {
      config.yes = made.tokens->yes;
      config.no = made.tokens->no;
    } else if (made.words) {
      WEIR_TRY(use_words(tokenizer, made.words->yes, made.words->no,
                         "config.json: classifier_from_token", config));
    }
  }
  config.roles = config.roles ||
                 (has_literal(chat_template, "query") && has_literal(chat_template, "document"));
  if (config.reranks() && chat_template.empty())
    config = {.refusal = "it has no chat template to be asked with"};
  return config;
}

}  // namespace weir::api
