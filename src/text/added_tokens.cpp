#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/json_fields.h"
#include "text/unicode.h"

namespace weir::text {

namespace {

// Each place of a text may be compared with the longest token. The longest known are below 100
// bytes.
constexpr size_t kContentBytesMax = 1024;
// The largest known vocabulary has 6,415.
constexpr size_t kTokensMax = 1 << 17;
// How far ids may lie above the model's: they follow without a gap in all known files, but tables
// by id must stay small in any.
constexpr int64_t kIdsAbove = 1 << 18;

bool word_ends_at(std::string_view text, size_t end) {
  return end > 0 && is_word(decode_utf8_before(text, end));
}
bool word_begins_at(std::string_view text, size_t begin) {
  return begin < text.size() && is_word(decode_utf8(text, begin));
}

// Where the white space before `end` begins, but not before `floor`.
size_t space_before(std::string_view text, size_t end, size_t floor) {
  while (end > floor) {
    size_t previous = end;
    if (!is_space(decode_utf8_before(text, previous))) break;
    end = previous;
  }
  return end;
}
size_t space_behind(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    size_t next = begin;
    if (!is_space(decode_utf8(text, next))) break;
    begin = next;
  }
  return begin;
}

}  // namespace

Result<AddedTokens> AddedTokens::parse(std::optional<JsonValue> json, const Vocabulary& vocabulary,
                                       const Normaliser& normaliser) {
  AddedTokens added;
  if (!json) return added;
  JsonArray entries;
  if (json->get(entries) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig, std::string("tokenizer.json: added_tokens: expected an array, "
                                                "found a ") +
                                        json_type_name(*json));
  for (const JsonValue entry : entries) {
    WEIR_ASSIGN(Token token, parse_token(entry, vocabulary));
    if (!token.content.empty()) WEIR_TRY(added.add(std::move(token)));
  }
  WEIR_TRY(added.build_tries(normaliser));
  return added;
}

Result<AddedTokens::Token> AddedTokens::parse_token(JsonValue json, const Vocabulary& vocabulary) {
  JsonFields fields(json, "tokenizer.json: added_tokens");
  Token token;
  token.content = fields.text("content");
  const int64_t id = fields.integer("id");
  token.special = fields.flag("special", false);
  token.single_word = fields.flag("single_word", false);
  token.strip_left = fields.flag("lstrip", false);
  token.strip_right = fields.flag("rstrip", false);
  token.normalised = fields.flag("normalized", !token.special);
  WEIR_TRY(fields.status());
  const std::string name = "tokenizer.json: added token " + token.content.substr(0, 64);
  if (token.content.size() > kContentBytesMax)
    return fail(ErrorCode::kConfig, name + ": expected at most " +
                                        std::to_string(kContentBytesMax) + " bytes, found " +
                                        std::to_string(token.content.size()));
  const int64_t id_end = std::min(kVocabularyIdMax, vocabulary.id_end() + kIdsAbove);
  if (id < 0 || id >= id_end)
    return fail(ErrorCode::kConfig, name + ": expected an id below " + std::to_string(id_end) +
                                        ", found " + std::to_string(id));
  const std::optional<int32_t> known = vocabulary.find(token.content);
  if (known && *known != id)
    return fail(ErrorCode::kConfig, name + ": expected id " + std::to_string(*known) +
                                        " as in the vocabulary, found " + std::to_string(id));
  token.id = static_cast<int32_t>(id);
  if (!known && vocabulary.has(token.id))
    return fail(ErrorCode::kConfig, name + ": expected an id of its own, found " +
                                        std::to_string(id) + ", which is that of " +
                                        std::string(vocabulary.token(token.id).substr(0, 64)));
  return token;
}

Result<void> AddedTokens::add(Token token) {
  const std::string name = "tokenizer.json: added token " + token.content.substr(0, 64);
  if (tokens_.size() >= kTokensMax)
    return fail(ErrorCode::kConfig,
                "tokenizer.json: added_tokens: expected at most " + std::to_string(kTokensMax));
  if (const std::optional<int32_t> known = find_id(token.content)) {
    if (*known == token.id) return {};
    return fail(ErrorCode::kConfig, name + ": expected one id, found " + std::to_string(*known) +
                                        " and " + std::to_string(token.id));
  }
  if (by_id_.contains(token.id))
    return fail(ErrorCode::kConfig, name + ": expected an id of its own, found " +
                                        std::to_string(token.id) + ", which is that of " +
                                        tokens_[by_id_[token.id]].content.substr(0, 64));
  by_content_.emplace(token.content, tokens_.size());
  by_id_.emplace(token.id, tokens_.size());
  id_end_ = std::max(id_end_, token.id + 1);
  tokens_.push_back(std::move(token));
  return {};
}

Result<void> AddedTokens::build_tries(const Normaliser& normaliser) {
  std::vector<std::string> patterns;
  for (const Token& token : tokens_) {
    std::string pattern = token.content;
    if (token.normalised) normaliser.apply(pattern);
    patterns.push_back(std::move(pattern));
  }
  std::vector<std::pair<std::string_view, int32_t>> strings[2];
  // The first of equal patterns wins: the special one.
  for (const bool special : {true, false}) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].special == special)
        strings[tokens_[i].normalised ? 1 : 0].emplace_back(patterns[i], static_cast<int32_t>(i));
    }
  }
  for (size_t i = 0; i < 2; ++i) tries_[i] = Trie(std::move(strings[i]));
  return {};
}

void AddedTokens::find(std::string_view text, bool normalised, bool special,
                       std::vector<Part>& parts) const {
  parts.clear();
  const Trie& trie = tries_[normalised ? 1 : 0];
  size_t plain = 0;  // Everything before is in `parts`.
  for (size_t i = 0; i < text.size();) {
    if (!trie.begins(static_cast<uint8_t>(text[i]))) {
      ++i;
      continue;
    }
    size_t bytes = 0;
    int32_t found = -1;
    trie.prefixes(text.substr(i), [&](size_t length, int32_t value) {
      bytes = length;
      found = value;
    });
    if (found < 0) {
      ++i;
      continue;
    }
    const Token& token = tokens_[static_cast<size_t>(found)];
    size_t begin = i, end = i + bytes;
    i = end;
    if (token.special && !special) continue;
    if (token.single_word && (word_ends_at(text, begin) || word_begins_at(text, end))) continue;
    if (token.strip_left) begin = space_before(text, begin, plain);
    if (token.strip_right) end = space_behind(text, end);
    if (plain < begin) parts.push_back({plain, begin});
    parts.push_back({begin, end, token.id});
    plain = end;
  }
  if (plain < text.size()) parts.push_back({plain, text.size()});
}

std::optional<int32_t> AddedTokens::find_id(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  if (found == by_content_.end()) return std::nullopt;
  return tokens_[found->second].id;
}

std::string_view AddedTokens::content(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::string_view{} : tokens_[found->second].content;
}

bool AddedTokens::is_special(int32_t id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && tokens_[found->second].special;
}

}  // namespace weir::text
