#include "text/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/utf8.h"

namespace weir::text {

namespace {

// The longest known are below 100 bytes; a piece of n characters is cut in n - 1 ways.
constexpr size_t kPieceBytesMax = 512;

Error wrong(std::string_view what) {
  return {ErrorCode::kConfig, "tokenizer.model: " + std::string(what)};
}

// A field of a protocol buffer's message: a number, or bytes.
struct Field {
  uint64_t number = 0;
  uint64_t integer = 0;
  std::optional<std::string_view> bytes = {};
};

// The fields of one message, in their order.
class Message {
 public:
  Message(std::string_view bytes, std::string_view name) : rest_(bytes), name_(name) {}

  // False at the end.
  Result<bool> next(Field& field) {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    field = {};
    if (!varint(tag)) return tl::unexpected(broken("a field's tag"));
    field.number = tag >> 3;
    switch (tag & 7) {
      case 0:
        if (!varint(field.integer)) return tl::unexpected(broken("a number"));
        return true;
      case 1:
        if (!fixed(8, field.integer)) return tl::unexpected(broken("eight bytes"));
        return true;
      case 5:
        if (!fixed(4, field.integer)) return tl::unexpected(broken("four bytes"));
        return true;
      case 2: {
        uint64_t size = 0;
        if (!varint(size) || size > rest_.size())
          return tl::unexpected(broken("a length within the file"));
        field.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
      }
      default:
        return tl::unexpected(broken("a wire type of 0, 1, 2 or 5"));
    }
  }

 private:
  Error broken(std::string_view expected) const {
    return wrong(name_ + ": expected " + std::string(expected) + ", found " +
                 std::to_string(rest_.size()) + " bytes that are none");
  }

  bool varint(uint64_t& value) {
    value = 0;
    for (size_t i = 0; i < 10 && i < rest_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(rest_[i]);
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }

  bool fixed(size_t size, uint64_t& value) {
    if (rest_.size() < size) return false;
    std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  std::string name_;
};

enum class Type : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Piece {
  std::string_view text;
  float score = 0;
  Type type = Type::kNormal;
  bool sought() const { return type == Type::kNormal || type == Type::kUnused; }
};

// What sentencepiece_model.proto has, with its defaults.
struct Model {
  std::vector<Piece> pieces;
  bool bpe = false;
  bool byte_fallback = false;
  int32_t unknown = -1;
  std::string_view charsmap;
  bool dummy_prefix = true;
  bool remove_spaces = true;
};

Result<Piece> read_piece(std::string_view bytes, size_t index) {
  const std::string name = "piece " + std::to_string(index);
  Message message(bytes, name);
  Piece piece;
  Field field;
  while (true) {
    WEIR_ASSIGN(const bool more, message.next(field));
    if (!more) break;
    if (field.number == 1 && field.bytes) piece.text = *field.bytes;
    if (field.number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.integer));
    if (field.number != 3) continue;
    if (field.integer < 1 || field.integer > 6)
      return tl::unexpected(
          wrong(name + ": expected a type from 1 to 6, found " + std::to_string(field.integer)));
    piece.type = static_cast<Type>(field.integer);
  }
  if (piece.text.empty() || piece.text.size() > kPieceBytesMax || !valid_utf8(piece.text))
    return tl::unexpected(wrong(name + ": expected a text of 1 to " +
                                std::to_string(kPieceBytesMax) + " bytes in UTF-8, found " +
                                std::to_string(piece.text.size()) + " bytes"));
  if (!std::isfinite(piece.score)) return tl::unexpected(wrong(name + ": expected a finite score"));
  return piece;
}

Result<void> read_trainer(std::string_view bytes, Model& model) {
  Message message(bytes, "trainer_spec");
  Field field;
  while (true) {
    WEIR_ASSIGN(const bool more, message.next(field));
    if (!more) return {};
    if (field.number == 3) {
      if (field.integer != 1 && field.integer != 2)
        return tl::unexpected(
            wrong("trainer_spec.model_type: expected 1 (unigram) or 2 (BPE), found " +
                  std::to_string(field.integer)));
      model.bpe = field.integer == 2;
    }
    if (field.number == 24 && field.integer != 0)
      return tl::unexpected(
          wrong("trainer_spec.treat_whitespace_as_suffix: expected false, found true"));
    if (field.number == 35) model.byte_fallback = field.integer != 0;
  }
}

Result<void> read_normaliser(std::string_view bytes, Model& model) {
  Message message(bytes, "normalizer_spec");
  Field field;
  while (true) {
    WEIR_ASSIGN(const bool more, message.next(field));
    if (!more) return {};
    if (field.number == 2 && field.bytes) model.charsmap = *field.bytes;
    if (field.number == 3) model.dummy_prefix = field.integer != 0;
    if (field.number == 4) model.remove_spaces = field.integer != 0;
    if (field.number == 5 && field.integer == 0)
      return tl::unexpected(
          wrong("normalizer_spec.escape_whitespaces: expected true, found false"));
  }
}

Result<Model> read_model(std::string_view file) {
  Message message(file, "the file");
  Model model;
  Field field;
  while (true) {
    WEIR_ASSIGN(const bool more, message.next(field));
    if (!more) break;
    if (!field.bytes) continue;
    if (field.number == 1) {
      if (model.pieces.size() >= static_cast<size_t>(kVocabularyIdMax))
        return tl::unexpected(
            wrong("expected at most " + std::to_string(kVocabularyIdMax) + " pieces"));
      WEIR_ASSIGN(const Piece piece, read_piece(*field.bytes, model.pieces.size()));
      if (piece.type == Type::kUnknown) {
        if (model.unknown >= 0)
          return tl::unexpected(wrong("expected one unknown piece, found two"));
        model.unknown = static_cast<int32_t>(model.pieces.size());
      }
      model.pieces.push_back(piece);
    }
    if (field.number == 2) WEIR_TRY(read_trainer(*field.bytes, model));
    if (field.number == 3) WEIR_TRY(read_normaliser(*field.bytes, model));
  }
  if (model.unknown < 0)
    return tl::unexpected(wrong("expected an unknown piece among " +
                                std::to_string(model.pieces.size()) + " pieces, found none"));
  return model;
}

// Scores in descending order are ranks; equal scores are equal ranks, of which the leftmost merges.
Result<Bpe> bpe_of(const Model& model) {
  std::vector<float> scores;
  for (const Piece& piece : model.pieces) {
    if (piece.sought()) scores.push_back(piece.score);
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  Vocabulary vocabulary;
  vocabulary.reserve(model.pieces.size(), model.pieces.size() * 8);
  std::vector<uint32_t> ranks;
  for (const Piece& piece : model.pieces) {
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

Result<Unigram> unigram_of(const Model& model) {
  std::vector<Unigram::Piece> pieces;
  for (const Piece& piece : model.pieces)
    pieces.push_back({piece.text, piece.score, piece.sought()});
  return Unigram::from_pieces(pieces, model.unknown, model.byte_fallback);
}

std::string normaliser_json(const Model& model, bool prefix) {
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

TokenizerRest rest_of(const Model& model, const TokenizerConfig& config) {
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

void add_tokens(const Model& model, const TokenizerConfig& config, TokenizerRest& rest) {
  std::optional<int32_t> bos, eos;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (piece.type == Type::kControl && piece.text == (config.bos.empty() ? "<s>" : config.bos))
      bos = id;
    if (piece.type == Type::kControl && piece.text == (config.eos.empty() ? "</s>" : config.eos))
      eos = id;
    if (piece.type == Type::kControl || piece.type == Type::kUnknown)
      rest.added[id] = {.content = std::string(piece.text), .special = true};
    if (piece.type == Type::kUserDefined)
      rest.added[id] = {.content = std::string(piece.text), .special = false};
  }
  for (const auto& [id, token] : config.added) rest.added.insert_or_assign(id, token);
  if (!bos) bos = config.find(config.bos);
  if (!eos) eos = config.find(config.eos);
  if (config.add_bos.value_or(true) && bos) rest.before.push_back(*bos);
  if (config.add_eos.value_or(false) && eos) rest.after.push_back(*eos);
}

}  // namespace

Result<TokenizerParts> read_sentencepiece(std::string_view file, const TokenizerConfig& config) {
  WEIR_ASSIGN(const Model model, read_model(file));
  TokenizerRest rest = rest_of(model, config);
  add_tokens(model, config, rest);
  if (model.bpe) {
    WEIR_ASSIGN(Bpe bpe, bpe_of(model));
    return TokenizerParts{std::move(bpe), std::move(rest)};
  }
  WEIR_ASSIGN(Unigram unigram, unigram_of(model));
  return TokenizerParts{std::move(unigram), std::move(rest)};
}

}  // namespace weir::text
