#include "kv/layout.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "kernels/coded_layout.h"

namespace weir::kv {

namespace {

// Heads and pages begin at cache lines: kernels read them with full vectors.
constexpr int64_t kLineBytes = 64;

// The prefix cache has pages of a window for one in so many blocks. A remembered text needs those
// of the last window before each place where another may go on: texts of eight windows and more
// keep all that they need for their end.
constexpr int32_t kCachedDivisor = 8;
// And first blocks, which stay numbers where others are codes, for one in so many: texts that begin
// differently have 2,048 tokens each on average. A first block that is gone is computed again, with
// all that comes after it.
constexpr int32_t kFirstsDivisor = 64;

// Whether a layer has codes of 8 bits where others have fewer. Which layers an answer depends on most
// differs from model to model (bench/README.md: the first of 8, the eleventh of 30), and no weights
// tell: so the first has, and one of every four. Of fewer than four layers none.
constexpr int64_t kLayersOfBytes = 4;
bool has_bytes(int64_t layer, int64_t layers) {
  return layers >= kLayersOfBytes && (layer == 0 || layer % kLayersOfBytes == kLayersOfBytes / 2);
}

int64_t whole_lines(int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

// What of layers lies in pages, without a base. `Need`: with heads and dimensions.
template <class Need>
kernels::KvPages pages_for(const Need& need, int64_t head_bytes, kernels::FloatType type) {
  kernels::KvPages pages;
  pages.type = type;
  pages.head_bytes = head_bytes;
  pages.page_bytes = need.heads * head_bytes;
  pages.kv_heads = need.heads;
  pages.k_dim = need.k_dim;
  pages.v_dim = need.v_dim;
  return pages;
}

// A head's K, [k_dim][page_keys], and V, [page_keys][v_dim], unless that is in K; in whole lines.
int64_t head_bytes(const PagedNeed& need, kernels::FloatType type) {
  const int64_t values = need.values_in_keys ? 0 : need.v_dim;
  const int64_t bytes = (need.k_dim + values) * need.page_keys() * element_bytes(type);
  return whole_lines(bytes);
}

bool sensible(const PagedNeed& need) {
  // Without values it is a page's own: numbers that no row attends to.
  const bool values = need.v_dim > 0 || (need.v_dim == 0 && need.tokens_per_key == kPageTokens);
  return need.heads > 0 && need.k_dim > 0 && values && need.window >= 0 &&
         need.tokens_per_key > 0 && (need.tokens_per_key == 1 || need.window == 0) &&
         (!need.values_in_keys ||
          (need.v_dim <= need.k_dim && need.k_dim <= kernels::kValuesInKeysMax));
}

bool sensible(const CrossNeed& need) {
  return need.heads > 0 && need.k_dim > 0 && need.v_dim > 0 && need.rows > 0;
}

// Distinct windows, the widest first, as many as there are groups for.
std::vector<int32_t> windows_of(const std::vector<MemoryNeed>& needs) {
  std::vector<int32_t> windows;
  for (const MemoryNeed& need : needs)
    if (const auto* paged = std::get_if<PagedNeed>(&need); paged != nullptr && paged->window > 0)
      windows.push_back(paged->window);
  std::ranges::sort(windows, std::greater<>());
  const auto repeated = std::ranges::unique(windows);
  windows.erase(repeated.begin(), repeated.end());
  windows.resize(std::min(windows.size(), size_t{kWindowsMax}));
  return windows;
}

// Its keys and values become codes: those of windows are few, and stay as they are.
bool becomes_codes(const PagedNeed& need) {
  return need.takes_codes && need.window == 0 && need.k_dim % 4 == 0 && need.v_dim % 4 == 0 &&
         need.k_dim <= kernels::kCodedDimMax && need.v_dim <= kernels::kCodedDimMax;
}

// Why none of the layers has codes.
Error nothing_to_code(const std::vector<MemoryNeed>& needs, Format format) {
  int32_t windows = 0, others = 0, states = 0;
  for (const MemoryNeed& need : needs) {
    const auto* paged = std::get_if<PagedNeed>(&need);
    if (paged == nullptr)
      states += std::holds_alternative<StateNeed>(need) ? 1 : 0;
    else
      (paged->window > 0 ? windows : others) += 1;
  }
  return {
      ErrorCode::kConfig,
      std::string("--kv-cache ") + format.name() +
          ": expected layers that keep keys and values of all tokens, in heads of a multiple of "
          "4 numbers; found " +
          std::to_string(windows) + " with windows, " + std::to_string(states) +
          " with states and " + std::to_string(others) +
          " that keep other things (latents, for example), which stay f16; use --kv-cache f16"};
}

}  // namespace

// Which layers have codes, and of how many bits.
Result<void> MemoryLayout::choose_codes() {
  codes_.resize(needs_.size());
  if (!format_.coded()) return {};
  std::vector<size_t> layers;
  for (size_t i = 0; i < needs_.size(); ++i)
    if (const auto* paged = std::get_if<PagedNeed>(&needs_[i]); paged && becomes_codes(*paged))
      layers.push_back(i);
  if (layers.empty()) return tl::unexpected(nothing_to_code(needs_, format_));
  const int64_t count = std::ssize(layers);
  for (int64_t n = 0; n < count; ++n) {
    const auto& need = std::get<PagedNeed>(needs_[layers[static_cast<size_t>(n)]]);
    const bool bytes = has_bytes(n, count);
    kernels::CodedPages& codes = codes_[layers[static_cast<size_t>(n)]];
    codes.kv_heads = need.heads;
    codes.k_dim = need.k_dim;
    codes.v_dim = need.v_dim;
    codes.k_bits = bytes ? 8 : format_.key_bits();
    codes.v_bits = bytes ? 8 : format_.value_bits();
    codes.head_bytes = kernels::coded_head_bytes(codes);
    codes.page_bytes = codes.head_bytes * need.heads;
  }
  return {};
}

Result<MemoryLayout> MemoryLayout::make(std::vector<MemoryNeed> needs, Format format,
                                        int32_t tape_tokens) {
  if (format == Format::kNone)
    return fail(ErrorCode::kConfig, "KV cache: expected type f16 or f32");
  MemoryLayout layout;
  layout.format_ = format;
  layout.tape_tokens_ = tape_tokens;
  layout.groups_.push_back({});
  for (const int32_t window : windows_of(needs)) layout.groups_.push_back({.window = window});
  for (size_t i = 0; i < needs.size(); ++i) {
    layout.group_of_.push_back(0);
    if (const auto* state = std::get_if<StateNeed>(&needs[i]); state && state->bytes <= 0)
      return fail(ErrorCode::kConfig, "KV cache: layer " + std::to_string(i) +
                                          ": expected a state of some bytes, found " +
                                          std::to_string(state->bytes));
    if (const auto* cross = std::get_if<CrossNeed>(&needs[i]); cross && !sensible(*cross))
      return fail(ErrorCode::kConfig,
                  "KV cache: layer " + std::to_string(i) +
                      ": expected heads, dimensions and rows to attend to, found " +
                      std::to_string(cross->heads) + " heads, keys of " +
                      std::to_string(cross->k_dim) + ", values of " +
                      std::to_string(cross->v_dim) + ", " + std::to_string(cross->rows) + " rows");
    const auto* paged = std::get_if<PagedNeed>(&needs[i]);
    if (paged == nullptr) continue;
    if (!sensible(*paged))
      return fail(ErrorCode::kConfig,
                  "KV cache: layer " + std::to_string(i) +
                      ": expected heads and dimensions, found " + std::to_string(paged->heads) +
                      " heads, keys of " + std::to_string(paged->k_dim) + ", values of " +
                      std::to_string(paged->v_dim) + ", window " + std::to_string(paged->window) +
                      ", a key for " + std::to_string(paged->tokens_per_key) + " tokens");
    if (paged->window > 0)
      while (layout.group_of_[i] + 1 < std::ssize(layout.groups_) &&
             layout.groups_[static_cast<size_t>(layout.group_of_[i] + 1)].window >= paged->window)
        ++layout.group_of_[i];
  }
  layout.needs_ = std::move(needs);
  WEIR_TRY(layout.choose_codes());
  if (format.coded()) layout.groups_.push_back({.window = 1, .hot = true});
  for (int32_t i = 0; i < layout.layer_count(); ++i) {
    Group& group = layout.groups_[static_cast<size_t>(layout.group_of(i))];
    const kernels::CodedPages& codes = layout.codes_of(i);
    const int64_t bytes = layout.pages_of(i).page_bytes;
    group.page_bytes += codes.page_bytes > 0 ? codes.page_bytes : bytes;
    if (codes.page_bytes > 0) layout.groups_.back().page_bytes += bytes;
  }
  return layout;
}

kernels::KvPages MemoryLayout::pages_of(int32_t layer) const {
  const auto* paged = std::get_if<PagedNeed>(&needs_[static_cast<size_t>(layer)]);
  if (paged == nullptr) return pages_for(PagedNeed{}, 0, format_.type());
  kernels::KvPages pages = pages_for(*paged, head_bytes(*paged, format_.type()), format_.type());
  pages.values_in_keys = paged->values_in_keys;
  return pages;
}

kernels::KvPages MemoryLayout::cross_pages_of(int32_t layer) const {
  const auto* cross = std::get_if<CrossNeed>(&needs_[static_cast<size_t>(layer)]);
  if (cross == nullptr) return pages_for(CrossNeed{}, 0, format_.type());
  const PagedNeed page = {.heads = cross->heads, .k_dim = cross->k_dim, .v_dim = cross->v_dim};
  return pages_for(*cross, head_bytes(page, format_.type()), format_.type());
}

int32_t MemoryLayout::cross_rows() const {
  int32_t rows = 0;
  for (const MemoryNeed& need : needs_)
    if (const auto* cross = std::get_if<CrossNeed>(&need)) rows = std::max(rows, cross->rows);
  return rows;
}

int64_t MemoryLayout::cross_bytes() const {
  int64_t bytes = 0;
  for (int32_t layer = 0; layer < layer_count(); ++layer)
    bytes += cross_pages() * cross_pages_of(layer).page_bytes;
  return bytes;
}

int64_t MemoryLayout::state_bytes(int32_t layer) const {
  const auto* state = std::get_if<StateNeed>(&needs_[static_cast<size_t>(layer)]);
  return state == nullptr ? 0 : whole_lines(state->bytes) + tape_tokens_ * tape_bytes(layer);
}

int64_t MemoryLayout::tape_bytes(int32_t layer) const {
  const auto* state = std::get_if<StateNeed>(&needs_[static_cast<size_t>(layer)]);
  return state == nullptr ? 0 : whole_lines(state->tape_bytes);
}

int64_t MemoryLayout::state_bytes() const {
  int64_t bytes = 0;
  for (int32_t layer = 0; layer < layer_count(); ++layer) bytes += state_bytes(layer);
  return bytes;
}

int64_t MemoryLayout::checkpoint_bytes() const {
  int64_t bytes = 0;
  for (int32_t layer = 0; layer < layer_count(); ++layer)
    bytes += state_bytes(layer) - tape_tokens_ * tape_bytes(layer);
  return bytes;
}

std::vector<int32_t> page_counts(std::span<const MemoryLayout::Group> groups, int32_t blocks,
                                 const MemoryLoad& load) {
  std::vector<int32_t> counts;
  for (const MemoryLayout::Group& group : groups) {
    const int64_t held = group.window == 0 ? std::numeric_limits<int32_t>::max()
                                           : window_pages_held(group.window, load);
    const int64_t all = blocks + (group.window == 0 ? 0 : window_pages_loaded(group.window, load));
    // Sequences that share blocks have hot pages of their own, and that of their first block.
    counts.push_back(static_cast<int32_t>(
        group.hot ? held + load.running_max + blocks / kFirstsDivisor
                  : std::min(all, held + blocks / kCachedDivisor)));
  }
  return counts;
}

}  // namespace weir::kv
