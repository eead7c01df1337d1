#include "text/charsmap.h"

#include <cstring>

#include "base/base64.h"
#include "base/unicode.h"
#include "base/utf8.h"

namespace weir::text {

namespace {

// The crate tries a whole grapheme cluster only below this length, then its characters.
constexpr size_t kClusterBytesEnd = 6;

// The fields of a double-array unit.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value(uint32_t unit) { return unit & 0x7fffffff; }
uint32_t label(uint32_t unit) { return unit & 0x800000ff; }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view base64) {
  const std::optional<std::string> blob = decode_base64(base64);
  if (!blob) return fail(ErrorCode::kConfig, "precompiled_charsmap: expected base64");
  uint32_t trie_bytes = 0;
  if (blob->size() >= sizeof trie_bytes) std::memcpy(&trie_bytes, blob->data(), sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % sizeof(uint32_t) != 0 ||
      trie_bytes > blob->size() - sizeof trie_bytes)
    return fail(ErrorCode::kConfig, "precompiled_charsmap: expected a trie within " +
                                        std::to_string(blob->size()) + " bytes, found one of " +
                                        std::to_string(trie_bytes));
  Charsmap map;
  map.units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map.units_.data(), blob->data() + sizeof trie_bytes, trie_bytes);
  map.replacements_ = blob->substr(sizeof trie_bytes + trie_bytes);
  if (!valid_utf8(map.replacements_))
    return fail(ErrorCode::kConfig, "precompiled_charsmap: expected replacements in UTF-8");
  return map;
}

std::optional<std::string_view> Charsmap::replacement(std::string_view text) const {
  uint32_t node = offset(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte == 0) return std::nullopt;
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) return std::nullopt;
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) return std::nullopt;
    const size_t begin = value(units_[node]);
    if (begin >= replacements_.size() ||
        (static_cast<uint8_t>(replacements_[begin]) & 0xc0) == 0x80)
      return std::nullopt;
    const std::string_view rest = std::string_view(replacements_).substr(begin);
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

void Charsmap::append_normalised(std::string& out, std::string_view text, size_t bytes_max) const {
  std::vector<size_t> ends;
  grapheme_ends(text, ends);
  size_t begin = 0;
  for (const size_t end : ends) {
    if (out.size() > bytes_max) return;
    const std::string_view cluster = text.substr(begin, end - begin);
    begin = end;
    if (cluster.size() < kClusterBytesEnd) {
      if (const auto whole = replacement(cluster)) {
        out += *whole;
        continue;
      }
    }
    for (size_t i = 0; i < cluster.size() && out.size() <= bytes_max;) {
      const size_t start = i;
      decode_utf8(cluster, i);
      const std::string_view character = cluster.substr(start, i - start);
      out += replacement(character).value_or(character);
    }
  }
}

}  // namespace weir::text
