// Bpe: byte-pair encoding of one word: its characters, then the best-ranked merge of two neighbours
// (the leftmost of equals) until none is left.
//
// Threads: immutable after parse(); encode() may be called from any thread, each with its Scratch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/vocabulary.h"

namespace weir::text {

class Bpe {
 public:
  struct Candidate {
    uint32_t rank = 0;
    uint32_t position = 0;
    int32_t merged = 0;
  };
  struct Symbol {
    int32_t id = 0;
    uint32_t previous = 0, next = 0;  // Positions; kNoSymbol at the ends.
  };
  // Memory that encode() reuses.
  struct Scratch {
    std::vector<int32_t> ids;
    std::vector<Candidate> candidates;
    std::vector<Symbol> symbols;
    std::string text;
  };

  // What from_ranks() and from_merges() are told beside the tokens.
  struct Settings {
    std::optional<int32_t> unknown = {};
    bool byte_fallback = false;
    bool fuse_unknown = false;
    bool ignore_merges = false;
  };
  static constexpr uint32_t kNoRank = UINT32_MAX;

  // tokenizer.json's `model`.
  static Result<Bpe> parse(JsonValue json);
  // A model without a list of merges, as tiktoken and SentencePiece have it: two tokens merge where
  // their text is a token, the one of the lowest rank first. `ranks` has one for each id of
  // `vocabulary`; a token of kNoRank takes no part.
  static Result<Bpe> from_ranks(Vocabulary vocabulary, std::span<const uint32_t> ranks,
                                const Settings& settings);

  // A vocabulary and its merges in the order of their ranks, as tokenizer.json has them.
  static Result<Bpe> from_merges(Vocabulary vocabulary, JsonArray merges, const Settings& settings);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Appends the ids of a word. A character without id, fallback and unknown token is dropped.
  // REQUIRES: valid UTF-8.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  struct Merge {
    uint64_t pair = kNoPair;
    uint32_t rank = 0;
    int32_t merged = 0;
  };
  static constexpr uint64_t kNoPair = UINT64_MAX;
  static constexpr uint32_t kNoSymbol = UINT32_MAX;
  // Characters whose ids are in a table: all of the byte-level alphabet, Latin, Greek, Cyrillic.
  static constexpr char32_t kTableEnd = 0x600;

  void apply(const Settings& settings);
  Result<void> read_vocabulary(JsonObject json);
  Result<void> read_merges(JsonArray json);
  Result<void> add_merge(std::string_view left, std::string_view right, uint32_t rank);
  void insert_merge(const Merge& merge);
  void fill_tables();
  void find_borders();

  static uint64_t pair_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  static size_t hash_of(uint64_t pair);
  const Merge* find_merge(int32_t left, int32_t right) const;

  void encode_part(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;
  void initial_symbols(std::string_view word, Scratch& scratch) const;
  bool add_bytes(std::string_view character, std::vector<int32_t>& ids) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  Vocabulary vocabulary_;
  std::vector<Merge> merges_;  // Open addressing, a power of two, at most half full.
  std::array<int32_t, kTableEnd> character_ids_;  // -1: none.
  std::array<int32_t, 256> byte_ids_;             // <0x00> and following; -1: none.
  std::optional<int32_t> unknown_;
  std::string subword_prefix_, word_suffix_;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  // No merge joins a character to a U+2581 after it, except these characters.
  bool splits_before_space_ = false;
  std::vector<char32_t> before_space_;
};

}  // namespace weir::text
