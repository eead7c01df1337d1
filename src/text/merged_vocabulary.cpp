#include "text/merged_vocabulary.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/json.h"
#include "text/json_fields.h"
#include "text/patterns.h"

namespace weir::text {

namespace {

constexpr char kWhere[] = "vocab.json and merges.txt";
// Those of Qwen2 to Qwen3, of text and beside images.
constexpr std::array<std::string_view, 2> kQwenClasses = {"Qwen2Tokenizer", "Qwen2TokenizerFast"};

Result<Vocabulary> read_vocabulary(JsonObject tokens) {
  Vocabulary vocabulary;
  vocabulary.reserve(tokens.size(), tokens.size() * 8);
  for (const auto [token, value] : tokens) {
    int64_t id = -1;
    if (value.get(id) != simdjson::SUCCESS)
      return fail(ErrorCode::kConfig, "vocab.json: expected an id for each token, found " +
                                          json_excerpt(value));
    if (Result<void> added = vocabulary.add(token, id); !added)
      return fail(ErrorCode::kConfig, "vocab.json: " + std::move(added.error().message));
  }
  return vocabulary;
}

}  // namespace

Result<TokenizerParts> read_merged_vocabulary(std::string_view json,
                                              const TokenizerConfig& config) {
  if (std::ranges::find(kQwenClasses, config.tokenizer_class) == kQwenClasses.end())
    return fail(ErrorCode::kConfig,
                "tokenizer_config.json: expected a tokenizer_class whose vocabulary is read from "
                "vocab.json and merges.txt, Qwen2Tokenizer, found " +
                    (config.tokenizer_class.empty() ? "none"
                                                    : config.tokenizer_class.substr(0, 64)) +
                    ": others need tokenizer.json");
  // Marks of turns are in no other file, and a text that has them would be cut into letters.
  if (config.added.empty())
    return fail(ErrorCode::kConfig,
                "tokenizer_config.json: expected added_tokens_decoder, the special tokens beside "
                "vocab.json, found none");
  auto parsed = JsonDoc::parse(json);
  if (!parsed)
    return fail(ErrorCode::kConfig,
                std::string(kWhere) + ": " + std::move(parsed.error().message));
  JsonFields fields(parsed->root(), kWhere);
  const JsonObject tokens = fields.object("vocab");
  const JsonArray merges = fields.array("merges");
  WEIR_TRY(fields.status());
  WEIR_ASSIGN(Vocabulary vocabulary, read_vocabulary(tokens));
  WEIR_ASSIGN(Bpe model, Bpe::from_merges(std::move(vocabulary), merges, {}));
  TokenizerRest rest = byte_level_rest(kQwenPattern);
  rest.normaliser = R"({"type":"NFC"})";
  rest.added = config.added;
  return TokenizerParts{std::move(model), std::move(rest)};
}

}  // namespace weir::text
