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

#include "base/utf8.h"
#include "text/piece_model.h"

namespace weir::text {

namespace {

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

using Type = PieceModel::Type;
using Piece = PieceModel::Piece;

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
  if (piece.text.empty() || piece.text.size() > PieceModel::kBytesMax || !valid_utf8(piece.text))
    return tl::unexpected(wrong(name + ": expected a text of 1 to " +
                                std::to_string(PieceModel::kBytesMax) + " bytes in UTF-8, found " +
                                std::to_string(piece.text.size()) + " bytes"));
  if (!std::isfinite(piece.score)) return tl::unexpected(wrong(name + ": expected a finite score"));
  return piece;
}

Result<void> read_trainer(std::string_view bytes, PieceModel& model) {
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

Result<void> read_normaliser(std::string_view bytes, PieceModel& model) {
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

Result<PieceModel> read_model(std::string_view file) {
  Message message(file, "the file");
  PieceModel model;
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
        if (model.unknown) return tl::unexpected(wrong("expected one unknown piece, found two"));
        model.unknown = static_cast<int32_t>(model.pieces.size());
      }
      model.pieces.push_back(piece);
    }
    if (field.number == 2) WEIR_TRY(read_trainer(*field.bytes, model));
    if (field.number == 3) WEIR_TRY(read_normaliser(*field.bytes, model));
  }
  if (!model.unknown)
    return tl::unexpected(wrong("expected an unknown piece among " +
                                std::to_string(model.pieces.size()) + " pieces, found none"));
  return model;
}

}  // namespace

Result<TokenizerParts> read_sentencepiece(std::string_view file, const TokenizerConfig& config) {
  WEIR_ASSIGN(const PieceModel model, read_model(file));
  return model.parts(config);
}

}  // namespace weir::text
