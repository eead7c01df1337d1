#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "text/json_fields.h"

namespace weir::text {

namespace {

// Up to here a scan of all pairs per merge beats a heap; about where both cost the same.
constexpr size_t kShortSymbols = 40;

// Of from_ranks(); the largest vocabulary known (200,000 tokens) has 450,000.
constexpr size_t kDerivedMergesMax = size_t{1} << 24;

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581, SentencePiece's space.

// Whether a candidate is merged after another: the heap's order.
struct Later {
  bool operator()(const Bpe::Candidate& a, const Bpe::Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }
};

}  // namespace

Result<Bpe> Bpe::parse(JsonValue json) {
  JsonFields fields(json, "tokenizer.json: model");
  Bpe model;
  const JsonObject vocabulary = fields.object("vocab");
  const JsonArray merges = fields.array("merges");
  const std::string_view unknown = fields.text("unk_token", "");
  model.subword_prefix_ = fields.text("continuing_subword_prefix", "");
  model.word_suffix_ = fields.text("end_of_word_suffix", "");
  model.byte_fallback_ = fields.flag("byte_fallback", false);
  model.fuse_unknown_ = fields.flag("fuse_unk", false);
  model.ignore_merges_ = fields.flag("ignore_merges", false);
  WEIR_TRY(fields.status());
  double dropout = 0;
  if (const auto value = fields.value("dropout");
      value && (value->get(dropout) != simdjson::SUCCESS || dropout != 0))
    return fail(ErrorCode::kConfig,
                "tokenizer.json: model.dropout: expected none (encoding must be deterministic)");
  WEIR_TRY(model.read_vocabulary(vocabulary));
  if (!unknown.empty()) model.unknown_ = model.vocabulary_.find(unknown);
  WEIR_TRY(model.read_merges(merges));
  model.fill_tables();
  model.find_borders();
  return model;
}

Result<void> Bpe::read_vocabulary(JsonObject json) {
  size_t count = 0, bytes = 0;
  for (const auto field : json) {
    ++count;
    bytes += field.key.size();
  }
  vocabulary_.reserve(count, bytes);
  for (const auto field : json) {
    int64_t id = 0;
    if (field.value.get(id) != simdjson::SUCCESS)
      return fail(ErrorCode::kConfig,
                  "tokenizer.json: model.vocab: token " + std::string(field.key.substr(0, 64)) +
                      ": expected an integer, found a " + json_type_name(field.value));
    WEIR_TRY(vocabulary_.add(field.key, id));
  }
  return {};
}

Result<void> Bpe::read_merges(JsonArray json) {
  size_t count = 0;
  for ([[maybe_unused]] const JsonValue merge : json) ++count;
  merges_.assign(std::bit_ceil(count * 2 + 2), Merge{});
  uint32_t rank = 0;
  for (const JsonValue merge : json) {
    std::string_view left, right, both;
    JsonArray pair;
    if (merge.get(both) == simdjson::SUCCESS) {
      if (both.starts_with("#version")) continue;
      const size_t space = both.find(' ');
      left = both.substr(0, space);
      right = space == std::string_view::npos ? std::string_view{} : both.substr(space + 1);
      if (right.find(' ') != std::string_view::npos) right = {};
    } else if (merge.get(pair) == simdjson::SUCCESS && pair.size() == 2) {
      if (pair.at(0).get(left) != simdjson::SUCCESS) left = {};
      if (pair.at(1).get(right) != simdjson::SUCCESS) right = {};
    }
    if (left.empty() || right.empty())
      return fail(ErrorCode::kConfig, "tokenizer.json: model.merges[" + std::to_string(rank) +
                                          "]: expected two tokens, \"a b\" or [\"a\", \"b\"]");
    WEIR_TRY(add_merge(left, right, rank++));
  }
  return {};
}

Result<void> Bpe::add_merge(std::string_view left, std::string_view right, uint32_t rank) {
  const auto missing = [&](std::string_view token) {
    return fail(ErrorCode::kConfig, "tokenizer.json: model.merges[" + std::to_string(rank) +
                                        "]: expected tokens of the vocabulary, found " +
                                        std::string(token.substr(0, 64)));
  };
  const std::optional<int32_t> left_id = vocabulary_.find(left), right_id = vocabulary_.find(right);
  if (!left_id) return missing(left);
  if (!right_id) return missing(right);
  std::string merged(left);
  merged += right.substr(std::min(right.size(), subword_prefix_.size()));
  const std::optional<int32_t> merged_id = vocabulary_.find(merged);
  if (!merged_id) return missing(merged);
  insert_merge({pair_of(*left_id, *right_id), rank, *merged_id});
  return {};
}

void Bpe::insert_merge(const Merge& merge) {
  const size_t mask = merges_.size() - 1;
  size_t i = hash_of(merge.pair) & mask;
  while (merges_[i].pair != kNoPair && merges_[i].pair != merge.pair) i = (i + 1) & mask;
  merges_[i] = merge;
}

Result<Bpe> Bpe::from_ranks(Vocabulary vocabulary, std::span<const uint32_t> ranks,
                            const Settings& settings) {
  CHECK(ranks.size() == static_cast<size_t>(vocabulary.id_end()));
  std::vector<Merge> merges;
  const auto ranked = [&](std::string_view token) -> std::optional<int32_t> {
    const std::optional<int32_t> id = vocabulary.find(token);
    return id && ranks[static_cast<size_t>(*id)] != kNoRank ? id : std::nullopt;
  };
  for (int32_t id = 0; id < vocabulary.id_end(); ++id) {
    const uint32_t rank = ranks[static_cast<size_t>(id)];
    const std::string_view token = vocabulary.token(id);
    if (rank == kNoRank || vocabulary.find(token) != id) continue;
    for (size_t cut = 0; cut < token.size();) {
      decode_utf8(token, cut);
      if (cut == token.size()) break;
      const std::optional<int32_t> left = ranked(token.substr(0, cut));
      const std::optional<int32_t> right = left ? ranked(token.substr(cut)) : std::nullopt;
      if (right) merges.push_back({pair_of(*left, *right), rank, id});
    }
    if (merges.size() > kDerivedMergesMax)
      return fail(ErrorCode::kTooLarge, "the vocabulary: expected at most " +
                                            std::to_string(kDerivedMergesMax) +
                                            " pairs of tokens that make a token, found more");
  }
  Bpe model;
  model.vocabulary_ = std::move(vocabulary);
  model.apply(settings);
  model.merges_.assign(std::bit_ceil(merges.size() * 2 + 2), Merge{});
  for (const Merge& merge : merges) model.insert_merge(merge);
  model.fill_tables();
  model.find_borders();
  return model;
}

Result<Bpe> Bpe::from_merges(Vocabulary vocabulary, JsonArray merges, const Settings& settings) {
  Bpe model;
  model.vocabulary_ = std::move(vocabulary);
  model.apply(settings);
  WEIR_TRY(model.read_merges(merges));
  model.fill_tables();
  model.find_borders();
  return model;
}

void Bpe::apply(const Settings& settings) {
  unknown_ = settings.unknown;
  byte_fallback_ = settings.byte_fallback;
  fuse_unknown_ = settings.fuse_unknown;
  ignore_merges_ = settings.ignore_merges;
}

void Bpe::fill_tables() {
  std::string text;
  character_ids_.fill(-1);
  for (char32_t c = 0; c < kTableEnd; ++c) {
    text.clear();
    append_utf8(text, c);
    character_ids_[c] = vocabulary_.find(text).value_or(-1);
  }
  for (size_t b = 0; b < byte_ids_.size(); ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(b));
    byte_ids_[b] = vocabulary_.find(name).value_or(-1);
  }
}

// SentencePiece models often see a whole text as one word. If hardly any token has U+2581 inside,
// the word can be cut before each U+2581 without changing the result, into parts that are short.
void Bpe::find_borders() {
  if (ignore_merges_ || !subword_prefix_.empty() || !word_suffix_.empty() ||
      !vocabulary_.find(kSpaceMark))
    return;
  // A character that leaves no symbol would let its neighbours meet.
  const bool all_bytes = byte_fallback_ && std::all_of(byte_ids_.begin(), byte_ids_.end(),
                                                       [](int32_t id) { return id >= 0; });
  if (!unknown_ && !all_bytes) return;
  for (int32_t id = 0; id < vocabulary_.id_end(); ++id) {
    const std::string_view token = vocabulary_.token(id);
    for (size_t at = token.find(kSpaceMark, 1); at != std::string_view::npos;
         at = token.find(kSpaceMark, at + 1)) {
      // A byte or unknown token stands for other text than its own; nothing can be said then.
      const std::string_view head = token.substr(0, at);
      if (head.size() >= 6 && head.substr(head.size() - 6).starts_with("<0x")) return;
      if (unknown_ && head.ends_with(vocabulary_.token(*unknown_))) return;
      size_t before = at;
      before_space_.push_back(decode_utf8_before(token, before));
    }
  }
  std::sort(before_space_.begin(), before_space_.end());
  before_space_.erase(std::unique(before_space_.begin(), before_space_.end()), before_space_.end());
  splits_before_space_ = true;
}

size_t Bpe::hash_of(uint64_t pair) {
  pair *= 0x9e3779b97f4a7c15;
  return static_cast<size_t>(pair ^ pair >> 32);
}

const Bpe::Merge* Bpe::find_merge(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  const size_t mask = merges_.size() - 1;
  for (size_t i = hash_of(pair) & mask; merges_[i].pair != kNoPair; i = (i + 1) & mask) {
    if (merges_[i].pair == pair) return &merges_[i];
  }
  return nullptr;
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    if (const std::optional<int32_t> id = vocabulary_.find(word)) {
      ids.push_back(*id);
      return;
    }
  }
  if (!splits_before_space_) return encode_part(word, scratch, ids);
  size_t begin = 0;
  for (size_t at = 0; (at = word.find(kSpaceMark, at)) != std::string_view::npos;
       at += kSpaceMark.size()) {
    if (at == begin) continue;
    size_t before = at;
    if (std::binary_search(before_space_.begin(), before_space_.end(),
                           decode_utf8_before(word, before)))
      continue;
    encode_part(word.substr(begin, at - begin), scratch, ids);
    begin = at;
  }
  encode_part(word.substr(begin), scratch, ids);
}

void Bpe::encode_part(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  initial_symbols(word, scratch);
  if (scratch.ids.size() <= kShortSymbols) {
    merge_short(scratch);
  } else {
    merge_long(scratch);
  }
  ids.insert(ids.end(), scratch.ids.begin(), scratch.ids.end());
}

void Bpe::initial_symbols(std::string_view word, Scratch& scratch) const {
  scratch.ids.clear();
  const bool decorated = !subword_prefix_.empty() || !word_suffix_.empty();
  bool unknown_pending = false;
  const auto flush = [&] {
    if (unknown_pending) scratch.ids.push_back(*unknown_);
    unknown_pending = false;
  };
  for (size_t i = 0; i < word.size();) {
    const size_t begin = i;
    const char32_t c = decode_utf8(word, i);
    std::string_view character = word.substr(begin, i - begin);
    int32_t id = -1;
    if (decorated) {
      scratch.text.clear();
      if (begin > 0) scratch.text += subword_prefix_;
      scratch.text += character;
      if (i == word.size()) scratch.text += word_suffix_;
      character = scratch.text;
    }
    if (!decorated && c < kTableEnd) {
      id = character_ids_[c];
    } else {
      id = vocabulary_.find(character).value_or(-1);
    }
    if (id >= 0) {
      flush();
      scratch.ids.push_back(id);
    } else if (byte_fallback_ && add_bytes(character, scratch.ids)) {
      // As in the crate, an unknown character before these bytes comes after them.
      continue;
    } else if (unknown_) {
      if (!fuse_unknown_) flush();
      unknown_pending = true;
    }
  }
  flush();
}

// All bytes of a character, or none.
bool Bpe::add_bytes(std::string_view character, std::vector<int32_t>& ids) const {
  for (const char b : character) {
    if (byte_ids_[static_cast<uint8_t>(b)] < 0) return false;
  }
  for (const char b : character) ids.push_back(byte_ids_[static_cast<uint8_t>(b)]);
  return true;
}

// scratch.candidates[i] is the merge of symbols i and i + 1, of the worst rank if there is none.
void Bpe::merge_short(Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<Candidate>& candidates = scratch.candidates;
  const auto candidate = [&](size_t i) {
    const Merge* merge = find_merge(ids[i], ids[i + 1]);
    return merge ? Candidate{merge->rank, 0, merge->merged} : Candidate{UINT32_MAX, 0, 0};
  };
  candidates.clear();
  for (size_t i = 0; i + 1 < ids.size(); ++i) candidates.push_back(candidate(i));
  while (!candidates.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < candidates.size(); ++i) {
      if (candidates[i].rank < candidates[best].rank) best = i;
    }
    if (candidates[best].rank == UINT32_MAX) return;
    ids[best] = candidates[best].merged;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
    candidates.erase(candidates.begin() + static_cast<ptrdiff_t>(best));
    if (best < candidates.size()) candidates[best] = candidate(best);
    if (best > 0) candidates[best - 1] = candidate(best - 1);
  }
}

// n log n: candidates wait in a heap; those whose symbols have changed since are passed over.
void Bpe::merge_long(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::vector<Candidate>& heap = scratch.candidates;
  const auto count = static_cast<uint32_t>(scratch.ids.size());
  constexpr int32_t kRemoved = -1;
  symbols.clear();
  heap.clear();
  for (uint32_t i = 0; i < count; ++i)
    symbols.push_back(
        {scratch.ids[i], i == 0 ? kNoSymbol : i - 1, i + 1 == count ? kNoSymbol : i + 1});
  for (uint32_t i = 0; i + 1 < count; ++i) {
    if (const Merge* merge = find_merge(symbols[i].id, symbols[i + 1].id))
      heap.push_back({merge->rank, i, merge->merged});
  }
  std::make_heap(heap.begin(), heap.end(), Later{});
  const auto push = [&](uint32_t left) {
    if (left == kNoSymbol || symbols[left].next == kNoSymbol) return;
    if (const Merge* merge = find_merge(symbols[left].id, symbols[symbols[left].next].id)) {
      heap.push_back({merge->rank, left, merge->merged});
      std::push_heap(heap.begin(), heap.end(), Later{});
    }
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), Later{});
    const Candidate top = heap.back();
    heap.pop_back();
    Symbol& left = symbols[top.position];
    if (left.id == kRemoved || left.next == kNoSymbol) continue;
    Symbol& right = symbols[left.next];
    const Merge* merge = find_merge(left.id, right.id);
    if (merge == nullptr || merge->merged != top.merged) continue;
    left.id = top.merged;
    left.next = right.next;
    right.id = kRemoved;
    if (left.next != kNoSymbol) symbols[left.next].previous = top.position;
    push(left.previous);
    push(top.position);
  }
  scratch.ids.clear();
  for (uint32_t i = 0; i != kNoSymbol; i = symbols[i].next) scratch.ids.push_back(symbols[i].id);
}

}  // namespace weir::text
