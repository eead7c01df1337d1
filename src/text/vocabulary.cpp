#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace weir::text {

namespace {

// Ids may leave holes, but a table by id must not cost much more than the file it came from.
constexpr int64_t kHolesPerEntry = 16;
constexpr int64_t kHolesMin = 1 << 16;

uint64_t hash_of(std::string_view token) { return std::hash<std::string_view>{}(token); }

}  // namespace

void Vocabulary::reserve(size_t entries, size_t bytes) {
  expected_ = entries;
  bytes_.reserve(bytes);
  entries_.reserve(entries);
  if (entries * 2 > slots_.size()) rehash(std::bit_ceil(entries * 2));
}

Result<void> Vocabulary::add(std::string_view token, int64_t id) {
  const auto name = [&] { return "token " + std::string(token.substr(0, 64)); };
  const int64_t holes_end =
      std::max(static_cast<int64_t>(std::max(count_ + 1, expected_)) * kHolesPerEntry, kHolesMin);
  if (id < 0 || id >= kVocabularyIdMax || id >= holes_end)
    return fail(ErrorCode::kConfig, name() + ": expected an id from 0 to " +
                                        std::to_string(std::min(holes_end, kVocabularyIdMax) - 1) +
                                        ", found " + std::to_string(id));
  if (has(static_cast<int32_t>(id)))
    return fail(ErrorCode::kConfig,
                name() + ": expected an id of its own, found " + std::to_string(id) +
                    ", which is also that of " +
                    std::string(this->token(static_cast<int32_t>(id)).substr(0, 64)));
  if (bytes_.size() + token.size() >= kHole)
    return fail(ErrorCode::kTooLarge, "the vocabulary's tokens are longer than 4 GiB together");
  const auto index = static_cast<size_t>(id);
  if (index >= entries_.size()) entries_.resize(index + 1);
  entries_[index] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(token.size())};
  bytes_.append(token);
  ++count_;
  if (count_ * 2 > slots_.size()) {
    rehash(std::max<size_t>(64, slots_.size() * 2));
  } else {
    insert(token, static_cast<int32_t>(id));
  }
  return {};
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const uint64_t hash = hash_of(token);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask; slots_[i].id >= 0; i = (i + 1) & mask) {
    if (slots_[i].tag == tag && this->token(slots_[i].id) == token) return slots_[i].id;
  }
  return std::nullopt;
}

std::string_view Vocabulary::token(int32_t id) const {
  if (!has(id)) return {};
  const Entry& entry = entries_[static_cast<size_t>(id)];
  return std::string_view(bytes_).substr(entry.offset, entry.bytes);
}

void Vocabulary::insert(std::string_view token, int32_t id) {
  const uint64_t hash = hash_of(token);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i].id >= 0 && !(slots_[i].tag == tag && this->token(slots_[i].id) == token))
    i = (i + 1) & mask;
  slots_[i] = {tag, id};
}

void Vocabulary::rehash(size_t slots) {
  slots_.assign(slots, Slot{});
  for (size_t id = 0; id < entries_.size(); ++id) {
    if (entries_[id].bytes != kHole)
      insert(token(static_cast<int32_t>(id)), static_cast<int32_t>(id));
  }
}

}  // namespace weir::text
