#include "text/piece_model.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "base/base64.h"

namespace weir::text {

namespace {

// Scores in descending order are ranks; equal scores are equal ranks, of which the leftmost merges.
Result<Bpe> bpe_of(const PieceModel& model) {
  std::vector<float> scores;
  for (const PieceModel::Piece& piece : model.pieces) {
    if (piece.sought()) scores.push_back(piece.score);
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  Vocabulary vocabulary;
  vocabulary.reserve(model.pieces.size(), model.pieces.size() * 8);
  std::vector<uint32_t> ranks;
  for (const PieceModel::Piece& piece : model.pieces) {
    WEIR_TRY(vocabulary.add(piece.text, static_cast<int64_t>(ranks.size())));
    const auto rank =
        std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>()) -
        scores.begin();
    ranks.push_back(piece.sought() ? static_cast<uint32_t>(rank) : Bpe::kNoRank);
  }
  return Bpe::from_ranks(
      std::move(vocabulary), ranks,
      {.unknown = model.unknown, .byte_fallback = model.byte_fallback, .fuse_unknown = true});
}

Result<Unigram> unigram_of(const PieceModel& model) {
  std::vector<Unigram::Piece> pieces;
  for (const PieceModel::Piece& piece : model.pieces)
    pieces.push_back({piece.text, piece.score, piece.sought()});
  return Unigram::from_pieces(pieces, *model.unknown, model.byte_fallback);
}

std::string normaliser_json(const PieceModel& model, bool prefix) {
  std::string steps;
  const auto add = [&](std::string_view step) {
    steps.append(steps.empty() ? "" : ",").append(step);
  };
  if (!model.charsmap.empty()) {
    std::string step = R"({"type":"Precompiled","precompiled_charsmap":")";
    append_base64(step, std::as_bytes(std::span(model.charsmap)));
    add(step + "\"}");
  }
  if (model.remove_spaces) {
    add(R"({"type":"Replace","pattern":{"Regex":"\\A +| +\\z"},"content":""})");
    add(R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "})");
  }
  if (prefix) add(R"({"type":"Prepend","prepend":" "})");
  add("{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}");
  return R"({"type":"Sequence","normalizers":[)" + steps + "]}";
}

TokenizerRest rest_of(const PieceModel& model, const TokenizerConfig& config) {
  TokenizerRest rest;
  rest.normaliser = normaliser_json(model, model.dummy_prefix && config.legacy);
  if (model.dummy_prefix && !config.legacy)
    rest.pre_tokenizer =
        "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"first\","
        "\"split\":false}";
  rest.decoder =
      "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
      "\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}";
  if (model.dummy_prefix) rest.decoder += R"(,{"type":"Strip","content":" ","start":1,"stop":0})";
  rest.decoder += "]}";
  return rest;
}

void add_tokens(const PieceModel& model, const TokenizerConfig& config, TokenizerRest& rest) {
  std::optional<int32_t> bos, eos;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const PieceModel::Piece& piece = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (piece.type == PieceModel::Type::kControl &&
        piece.text == (config.bos.empty() ? "<s>" : config.bos))
      bos = id;
    if (piece.type == PieceModel::Type::kControl &&
        piece.text == (config.eos.empty() ? "</s>" : config.eos))
      eos = id;
    if (piece.type == PieceModel::Type::kControl || piece.type == PieceModel::Type::kUnknown)
      rest.added[id] = {.content = std::string(piece.text), .special = true};
    if (piece.type == PieceModel::Type::kUserDefined)
      rest.added[id] = {.content = std::string(piece.text), .special = false};
  }
  for (const auto& [id, token] : config.added) rest.added.insert_or_assign(id, token);
  if (!bos) bos = config.find(config.bos);
  if (!eos) eos = config.find(config.eos);
  if (config.add_bos.value_or(true) && bos) rest.before.push_back(*bos);
  if (config.add_eos.value_or(false) && eos) rest.after.push_back(*eos);
}

}  // namespace

Result<TokenizerParts> PieceModel::parts(const TokenizerConfig& config) const {
  TokenizerRest rest = rest_of(*this, config);
  add_tokens(*this, config, rest);
  if (bpe) {
    WEIR_ASSIGN(Bpe model, bpe_of(*this));
    return TokenizerParts{std::move(model), std::move(rest)};
  }
  WEIR_ASSIGN(Unigram model, unigram_of(*this));
  return TokenizerParts{std::move(model), std::move(rest)};
}

}  // namespace weir::text
