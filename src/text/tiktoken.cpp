#include "text/tiktoken.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/json.h"
#include "text/byte_level.h"
#include "text/json_fields.h"
#include "text/patterns.h"

namespace weir::text {

namespace {

// The longest known have 128; a token of n bytes is cut in n - 1 ways.
constexpr size_t kTokenBytesMax = 512;

// What a tokenizer_class computes that no file beside its Python code says.
struct KnownClass {
  std::string_view name;
  std::string_view pattern;
  std::string_view normaliser;  // JSON; empty: none.
  // Special tokens after the vocabulary's: these names, then numbered ones, `reserved` together.
  // A number is the id, or counts from 0 after names.
  std::span<const std::string_view> names;
  std::string_view prefix;
  int32_t reserved;
};
constexpr std::string_view kQwenNames[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

constexpr KnownClass kClasses[] = {
    {"TikTokenTokenizer", kKimiPattern, "", {}, "<|reserved_token_", 256},
    {"QWenTokenizer", kQwenPattern, R"({"type":"NFC"})", kQwenNames, "<|extra_", 208},
};

// Tokens in GPT-2's alphabet, ranked by id.
class RankedTokens {
 public:
  Result<void> add(std::string_view bytes, int64_t id, uint32_t rank) {
    if (bytes.empty() || bytes.size() > kTokenBytesMax)
      return fail(ErrorCode::kConfig, "expected a token of 1 to " + std::to_string(kTokenBytesMax) +
                                          " bytes, found " + std::to_string(bytes.size()));
    std::string text;
    append_byte_level(text, bytes);
    if (vocabulary_.find(text))
      return fail(ErrorCode::kConfig,
                  "expected each token once, found " + text.substr(0, 64) + " twice");
    WEIR_TRY(vocabulary_.add(text, id));
    ranks_.resize(static_cast<size_t>(vocabulary_.id_end()), Bpe::kNoRank);
    ranks_[static_cast<size_t>(id)] = rank;
    return {};
  }

  // Bytes that are no tokens would be dropped from texts.
  Result<void> check_bytes() const {
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      std::string text;
      append_byte_level(text, std::string_view(&c, 1));
      if (!vocabulary_.find(text))
        return fail(ErrorCode::kConfig,
                    "expected a token for each byte, found none for " + std::to_string(byte));
    }
    return {};
  }

  int32_t id_end() const { return vocabulary_.id_end(); }
  Result<Bpe> model() && {
    return Bpe::from_ranks(std::move(vocabulary_), ranks_, {.ignore_merges = true});
  }

 private:
  Vocabulary vocabulary_;
  std::vector<uint32_t> ranks_;
};

Error in_line(size_t line, std::string_view what) {
  return {ErrorCode::kConfig,
          "tiktoken file: line " + std::to_string(line) + ": " + std::string(what)};
}

Result<RankedTokens> read_lines(std::string_view file) {
  RankedTokens tokens;
  size_t number = 0;
  while (!file.empty()) {
    ++number;
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    const std::string_view digits =
        space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    int32_t rank = -1;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    const std::optional<std::string> bytes = decode_base64(line.substr(0, space));
    if (error != std::errc() || stop != digits.data() + digits.size() || rank < 0 || !bytes)
      return tl::unexpected(in_line(number, "expected a token in base64, a space and its rank"));
    if (Result<void> added = tokens.add(*bytes, rank, static_cast<uint32_t>(rank)); !added)
      return tl::unexpected(in_line(number, added.error().message));
  }
  if (Result<void> checked = tokens.check_bytes(); !checked)
    return fail(ErrorCode::kConfig, "tiktoken file: " + checked.error().message);
  return tokens;
}

Result<const KnownClass*> class_of(const TokenizerConfig& config) {
  std::string names;
  for (const KnownClass& known : kClasses) {
    if (known.name == config.tokenizer_class) return &known;
    names.append(names.empty() ? "" : ", ").append(known.name);
  }
  if (!config.pattern.empty()) return nullptr;
  return fail(
      ErrorCode::kConfig,
      "tokenizer_config.json: expected pat_str, the pattern that a tiktoken file goes "
      "with, or a tokenizer_class of " +
          names + "; found " +
          (config.tokenizer_class.empty() ? "neither" : config.tokenizer_class.substr(0, 64)));
}

std::string reserved_name(const KnownClass& known, int32_t id, int32_t index) {
  const auto named = static_cast<int32_t>(known.names.size());
  if (index < named) return std::string(known.names[static_cast<size_t>(index)]);
  return std::string(known.prefix) + std::to_string(named == 0 ? id : index - named) + "|>";
}

}  // namespace

Result<TokenizerParts> read_tiktoken(std::string_view file, const TokenizerConfig& config) {
  WEIR_ASSIGN(const KnownClass* known, class_of(config));
  WEIR_ASSIGN(RankedTokens tokens, read_lines(file));
  TokenizerRest rest =
      byte_level_rest(config.pattern.empty() ? known->pattern : std::string_view(config.pattern));
  rest.added = config.added;
  if (known != nullptr) {
    rest.normaliser = known->normaliser;
    for (int32_t i = 0; i < known->reserved; ++i) {
      const int32_t id = tokens.id_end() + i;
      if (!rest.added.contains(id)) rest.added[id].content = reserved_name(*known, id, i);
    }
  }
  const auto around = [&](bool wanted, const std::string& token, std::vector<int32_t>& ids) {
    if (const auto id = config.find(token); wanted && id) ids.push_back(*id);
  };
  around(config.add_bos.value_or(false), config.bos, rest.before);
  around(config.add_eos.value_or(false), config.eos, rest.after);
  WEIR_ASSIGN(Bpe model, std::move(tokens).model());
  return TokenizerParts{std::move(model), std::move(rest)};
}

namespace {

constexpr char kTekken[] = "tekken.json";

// Files before version v7 do not list them.
constexpr std::string_view kTekkenSpecial[] = {"<unk>",
                                               "<s>",
                                               "</s>",
                                               "[INST]",
                                               "[/INST]",
                                               "[AVAILABLE_TOOLS]",
                                               "[/AVAILABLE_TOOLS]",
                                               "[TOOL_RESULTS]",
                                               "[/TOOL_RESULTS]",
                                               "[TOOL_CALLS]",
                                               "[IMG]",
                                               "<pad>",
                                               "[IMG_BREAK]",
                                               "[IMG_END]",
                                               "[PREFIX]",
                                               "[MIDDLE]",
                                               "[SUFFIX]",
                                               "[SYSTEM_PROMPT]",
                                               "[/SYSTEM_PROMPT]",
                                               "[TOOL_CONTENT]"};

Result<TokenizerConfig::Tokens> tekken_special(JsonFields& fields, int64_t count) {
  TokenizerConfig::Tokens tokens;
  if (fields.value("special_tokens")) {
    const JsonArray entries = fields.array("special_tokens");
    WEIR_TRY(fields.status());
    for (const JsonValue entry : entries) {
      JsonFields one(entry, "tekken.json: special_tokens");
      const int64_t rank = one.integer("rank");
      TokenizerConfig::Token token;
      token.content = one.text("token_str");
      token.special = one.flag("is_control", true);
      WEIR_TRY(one.status());
      if (rank < 0 || rank >= count)
        return fail(ErrorCode::kConfig, one.where() + ".rank: expected 0 to " +
                                            std::to_string(count - 1) + ", found " +
                                            std::to_string(rank));
      tokens.insert_or_assign(static_cast<int32_t>(rank), std::move(token));
    }
  } else {
    for (const std::string_view text : kTekkenSpecial) {
      const auto id = static_cast<int32_t>(tokens.size());
      if (id < count) tokens[id].content = text;
    }
  }
  for (int32_t id = 0; id < count; ++id) {
    if (!tokens.contains(id)) tokens[id].content = "<SPECIAL_" + std::to_string(id) + ">";
  }
  return tokens;
}

}  // namespace

Result<TokenizerParts> read_tekken(std::string_view json) {
  auto parsed = JsonDoc::parse(json);
  if (!parsed)
    return fail(ErrorCode::kConfig,
                std::string(kTekken) + ": " + std::move(parsed.error().message));
  JsonFields fields(parsed->root(), kTekken);
  const JsonObject config_object = fields.object("config");
  const JsonArray entries = fields.array("vocab");
  WEIR_TRY(fields.status());
  JsonFields config(config_object, "tekken.json: config");
  const std::string pattern(config.text("pattern"));
  const int64_t size = config.integer("default_vocab_size");
  const int64_t special = config.integer("default_num_special_tokens");
  WEIR_TRY(config.status());
  constexpr int64_t kSpecialMax = 1 << 16;
  if (special < 0 || special > kSpecialMax || size < special || size > kVocabularyIdMax)
    return fail(ErrorCode::kConfig,
                "tekken.json: config: expected default_num_special_tokens from 0 to " +
                    std::to_string(kSpecialMax) + " and default_vocab_size from it to " +
                    std::to_string(kVocabularyIdMax) + ", found " + std::to_string(special) +
                    " and " + std::to_string(size));
  RankedTokens tokens;
  for (const JsonValue entry : entries) {
    JsonFields one(entry, "tekken.json: vocab");
    const int64_t rank = one.integer("rank");
    const std::optional<std::string> bytes = decode_base64(one.text("token_bytes"));
    WEIR_TRY(one.status());
    // A file has more tokens than its model has.
    if (rank >= size - special) continue;
    Result<void> added = rank < 0 || !bytes
                             ? fail(ErrorCode::kConfig, "expected token_bytes in base64")
                             : tokens.add(*bytes, rank + special, static_cast<uint32_t>(rank));
    if (!added)
      return fail(ErrorCode::kConfig, "tekken.json: vocab: rank " + std::to_string(rank) + ": " +
                                          added.error().message);
  }
  if (Result<void> checked = tokens.check_bytes(); !checked)
    return fail(ErrorCode::kConfig, "tekken.json: " + checked.error().message);
  TokenizerRest rest = byte_level_rest(pattern);
  WEIR_ASSIGN(rest.added, tekken_special(fields, special));
  for (const auto& [id, token] : rest.added) {
    if (token.content == "<s>") rest.before.assign(1, id);
  }
  WEIR_ASSIGN(Bpe model, std::move(tokens).model());
  return TokenizerParts{std::move(model), std::move(rest)};
}

}  // namespace weir::text
