#include "text/unigram.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "text/json_fields.h"

namespace weir::text {

namespace {

// What an unknown character costs beyond the worst token (SentencePiece's kUnkPenalty).
constexpr double kUnknownPenalty = 10.0;

// Every place of a word tries tokens up to the longest: this bounds the work per byte. The longest
// known are below 100 bytes.
constexpr size_t kTokenBytesMax = 1024;

}  // namespace

Result<Unigram> Unigram::parse(JsonValue json) {
  JsonFields fields(json, "tokenizer.json: model");
  const JsonArray entries = fields.array("vocab");
  const int64_t unknown = fields.integer("unk_id");
  const bool byte_fallback = fields.flag("byte_fallback", false);
  WEIR_TRY(fields.status());
  std::vector<Piece> pieces;
  for (const JsonValue entry : entries) {
    JsonArray pair;
    Piece piece;
    piece.sought = true;
    if (entry.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get(piece.text) != simdjson::SUCCESS ||
        pair.at(1).get(piece.score) != simdjson::SUCCESS || piece.text.size() > kTokenBytesMax)
      return fail(ErrorCode::kConfig, "tokenizer.json: model.vocab[" +
                                          std::to_string(pieces.size()) +
                                          "]: expected [token, score], the token of at most " +
                                          std::to_string(kTokenBytesMax) + " bytes");
    pieces.push_back(piece);
  }
  if (unknown < 0 || unknown >= static_cast<int64_t>(pieces.size()))
    return fail(ErrorCode::kConfig, "tokenizer.json: model.unk_id: expected an id below " +
                                        std::to_string(pieces.size()) + ", found " +
                                        std::to_string(unknown));
  return from_pieces(pieces, static_cast<int32_t>(unknown), byte_fallback);
}

Result<Unigram> Unigram::from_pieces(std::span<const Piece> pieces, int32_t unknown,
                                     bool byte_fallback) {
  CHECK(unknown >= 0 && static_cast<size_t>(unknown) < pieces.size());
  Unigram model;
  model.byte_fallback_ = byte_fallback;
  model.vocabulary_.reserve(pieces.size(), pieces.size() * 8);
  model.scores_.reserve(pieces.size());
  double score_min = std::numeric_limits<double>::infinity();
  for (const Piece& piece : pieces) {
    WEIR_TRY(model.vocabulary_.add(piece.text, static_cast<int64_t>(model.scores_.size())));
    model.scores_.push_back(piece.score);
    if (piece.sought) score_min = std::min(score_min, piece.score);
  }
  model.unknown_ = unknown;
  model.unknown_score_ = score_min - kUnknownPenalty;

  std::vector<std::pair<std::string_view, int32_t>> strings;
  strings.reserve(pieces.size());
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!pieces[id].sought) continue;
    const std::string_view token = model.vocabulary_.token(static_cast<int32_t>(id));
    strings.emplace_back(token, model.vocabulary_.find(token).value_or(static_cast<int32_t>(id)));
  }
  model.trie_ = Trie(std::move(strings));
  for (size_t b = 0; b < model.byte_ids_.size(); ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(b));
    model.byte_ids_[b] = model.vocabulary_.find(name).value_or(-1);
  }
  return model;
}

void Unigram::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  std::vector<Node>& nodes = scratch.nodes;
  nodes.assign(word.size() + 1, Node{});
  const auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
    Node& node = nodes[end];
    const double total = score + nodes[begin].score;
    if (node.id < 0 || total > node.score) node = {total, begin, id};
  };
  for (size_t begin = 0; begin < word.size();) {
    size_t next = begin;
    decode_utf8(word, next);
    bool has_character = false;
    trie_.prefixes(word.substr(begin), [&](size_t bytes, int32_t id) {
      offer(begin, begin + bytes, scores_[static_cast<size_t>(id)], id);
      has_character = has_character || begin + bytes == next;
    });
    if (!has_character) offer(begin, next, unknown_score_, unknown_);
    begin = next;
  }

  // Backwards along the best path; unknown characters side by side are one.
  scratch.backwards.clear();
  size_t end = word.size();
  while (end > 0) {
    size_t begin = nodes[end].begin;
    if (nodes[end].id == unknown_) {
      while (begin > 0 && nodes[begin].id == unknown_) begin = nodes[begin].begin;
    }
    push_backwards(word.substr(begin, end - begin), scratch.backwards);
    end = begin;
  }
  ids.insert(ids.end(), scratch.backwards.rbegin(), scratch.backwards.rend());
}

void Unigram::push_backwards(std::string_view text, std::vector<int32_t>& backwards) const {
  if (const std::optional<int32_t> id = vocabulary_.find(text)) {
    backwards.push_back(*id);
    return;
  }
  const auto has_id = [&](char b) { return byte_ids_[static_cast<uint8_t>(b)] >= 0; };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), has_id)) {
    for (size_t i = text.size(); i > 0; --i)
      backwards.push_back(byte_ids_[static_cast<uint8_t>(text[i - 1])]);
    return;
  }
  backwards.push_back(unknown_);
}

}  // namespace weir::text
