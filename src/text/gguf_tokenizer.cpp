#include "text/gguf_tokenizer.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/gguf_patterns.h"
#include "text/json_fields.h"
#include "text/piece_model.h"

namespace weir::text {

namespace {

constexpr char kWhere[] = "tokenizer.ggml";

using Type = PieceModel::Type;

struct Token {
  std::string_view text;
  Type type = Type::kNormal;
  float score = 0;
};

Error wrong(std::string_view key, std::string_view what) {
  return {ErrorCode::kConfig,
          std::string(kWhere).append(".").append(key).append(": ").append(what)};
}

// `key`, a list of one value for each token, or nothing.
template <class F>
Result<void> read_list(JsonFields& fields, std::string_view key, std::vector<Token>& tokens,
                       F&& take) {
  if (!fields.value(key)) return {};
  const JsonArray list = fields.array(key);
  WEIR_TRY(fields.status());
  if (list.size() < tokens.size())
    return tl::unexpected(wrong(key, "expected one for each of " + std::to_string(tokens.size()) +
                                         " tokens, found " + std::to_string(list.size())));
  size_t i = 0;
  for (const JsonValue value : list) {
    if (i == tokens.size()) break;
    if (!take(value, tokens[i]))
      return tl::unexpected(
          wrong(key, "token " + std::to_string(i) + ": found " + json_excerpt(value)));
    ++i;
  }
  return {};
}

bool take_type(JsonValue value, Token& token) {
  int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS || number < 0 || number > 6) return false;
  token.type = number == 0 ? Type::kNormal : static_cast<Type>(number);
  return true;
}

bool take_score(JsonValue value, Token& token) {
  double number = 0;
  if (value.get(number) != simdjson::SUCCESS) return false;
  token.score = static_cast<float>(number);
  return std::isfinite(token.score);
}

// Tokens without a text have one that no other token has, in `names`.
Result<std::vector<Token>> read_tokens(JsonFields& fields, std::vector<std::string>& names) {
  const JsonArray list = fields.array("tokens");
  WEIR_TRY(fields.status());
  if (static_cast<int64_t>(list.size()) > kVocabularyIdMax)
    return tl::unexpected(wrong("tokens", "expected at most " + std::to_string(kVocabularyIdMax)));
  std::vector<Token> tokens(list.size());
  names.reserve(list.size());
  size_t i = 0;
  for (const JsonValue value : list) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS || text.size() > PieceModel::kBytesMax)
      return tl::unexpected(wrong("tokens", "token " + std::to_string(i) +
                                                ": expected a string of at most " +
                                                std::to_string(PieceModel::kBytesMax) +
                                                " bytes, found " + json_excerpt(value)));
    if (text.empty()) text = names.emplace_back("[EMPTY_" + std::to_string(i) + "]");
    tokens[i++].text = text;
  }
  WEIR_TRY(read_list(fields, "token_type", tokens, take_type));
  WEIR_TRY(read_list(fields, "scores", tokens, take_score));
  return tokens;
}

// The token whose id `key` is; nullopt where there is none, or where the id is no token's.
Result<std::optional<int32_t>> read_id(JsonFields& fields, std::string_view key,
                                       const std::vector<Token>& tokens) {
  const int64_t id = fields.integer(key, -1);
  WEIR_TRY(fields.status());
  if (id < 0 || id >= static_cast<int64_t>(tokens.size())) return std::nullopt;
  return static_cast<int32_t>(id);
}

TokenizerConfig::Tokens added_tokens(const std::vector<Token>& tokens) {
  TokenizerConfig::Tokens added;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const bool special = token.type == Type::kControl || token.type == Type::kUnknown;
    if (special || token.type == Type::kUserDefined)
      added[static_cast<int32_t>(i)] = {.content = std::string(token.text), .special = special};
  }
  return added;
}

Result<Bpe> merged_model(JsonFields& fields, const std::vector<Token>& tokens,
                         const Bpe::Settings& settings) {
  const JsonArray merges = fields.array("merges");
  WEIR_TRY(fields.status());
  Vocabulary vocabulary;
  vocabulary.reserve(tokens.size(), tokens.size() * 8);
  for (size_t i = 0; i < tokens.size(); ++i)
    WEIR_TRY(vocabulary.add(tokens[i].text, static_cast<int64_t>(i)));
  return Bpe::from_merges(std::move(vocabulary), merges, settings);
}

Result<TokenizerParts> byte_level(JsonFields& fields, const std::vector<Token>& tokens,
                                  bool& adds_bos) {
  const std::string_view pre = fields.text("pre", "default");
  const GgufPattern pattern = gguf_pattern(pre);
  if (pattern.pre_tokenizer.empty())
    return tl::unexpected(wrong("pre", "expected one of " + gguf_pattern_names() + ", found \"" +
                                           std::string(pre.substr(0, 64)) +
                                           "\": which pattern it means is not known here"));
  adds_bos = pattern.adds_bos;
  WEIR_ASSIGN(Bpe model, merged_model(fields, tokens, {.ignore_merges = pattern.ignore_merges}));
  TokenizerRest rest;
  rest.pre_tokenizer = pattern.pre_tokenizer;
  rest.decoder = R"({"type":"ByteLevel"})";
  rest.added = added_tokens(tokens);
  return TokenizerParts{std::move(model), std::move(rest)};
}

// Merges of whole texts, in which U+2581 stands for spaces.
Result<TokenizerParts> spaced(JsonFields& fields, const std::vector<Token>& tokens) {
  WEIR_ASSIGN(const auto unknown, read_id(fields, "unknown_token_id", tokens));
  WEIR_ASSIGN(Bpe model,
              merged_model(fields, tokens,
                           {.unknown = unknown, .byte_fallback = true, .fuse_unknown = true}));
  TokenizerRest rest;
  rest.normaliser =
      "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}";
  rest.decoder =
      "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
      "\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}";
  rest.added = added_tokens(tokens);
  return TokenizerParts{std::move(model), std::move(rest)};
}

Result<TokenizerParts> by_scores(JsonFields& fields, const std::vector<Token>& tokens) {
  if (!fields.value("scores"))
    return tl::unexpected(wrong("scores", "expected one for each token, found nothing"));
  PieceModel model;
  model.bpe = model.byte_fallback = true;
  model.remove_spaces = false;
  model.dummy_prefix = fields.flag("add_space_prefix", true);
  WEIR_ASSIGN(model.unknown, read_id(fields, "unknown_token_id", tokens));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (!valid_utf8(token.text))
      return tl::unexpected(wrong("tokens", "token " + std::to_string(i) + ": expected UTF-8"));
    if (token.type == Type::kUnknown && !model.unknown) model.unknown = static_cast<int32_t>(i);
    model.pieces.push_back({token.text, token.score, token.type});
  }
  return model.parts({});
}

}  // namespace

Result<TokenizerParts> read_gguf_tokenizer(std::string_view json) {
  auto parsed = JsonDoc::parse(json);
  if (!parsed)
    return fail(ErrorCode::kConfig, std::string(kWhere) + ": " + std::move(parsed.error().message));
  JsonFields fields(parsed->root(), kWhere);
  const std::string model(fields.text("model"));
  WEIR_TRY(fields.status());
  // Gemma's kind also comes under the name of the other that has merges.
  const bool spaces = model == "gemma4" || (model == "gpt2" && fields.text("pre", "") == "gemma4");
  const bool scores = model == "llama", merges = model == "gpt2" && !spaces;
  if (!scores && !merges && !spaces)
    return tl::unexpected(
        wrong("model", "expected gpt2, llama or gemma4, found \"" + model.substr(0, 64) + "\""));
  std::vector<std::string> names;
  WEIR_ASSIGN(const std::vector<Token> tokens, read_tokens(fields, names));
  bool adds_bos = scores || model == "gemma4";
  WEIR_ASSIGN(TokenizerParts parts, scores   ? by_scores(fields, tokens)
                                    : merges ? byte_level(fields, tokens, adds_bos)
                                             : spaced(fields, tokens));
  adds_bos = fields.flag("add_bos_token", adds_bos);
  const bool adds_eos = fields.flag("add_eos_token", false);
  WEIR_ASSIGN(const auto bos, read_id(fields, "bos_token_id", tokens));
  WEIR_ASSIGN(const auto eos, read_id(fields, "eos_token_id", tokens));
  parts.rest.before.clear();
  parts.rest.after.clear();
  if (adds_bos && bos) parts.rest.before.push_back(*bos);
  if (adds_eos && eos) parts.rest.after.push_back(*eos);
  return parts;
}

}  // namespace weir::text
