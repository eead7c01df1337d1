// Values: hashing, dictionaries, lengths.
#include "jinja/value.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "jinja/codepoint.h"
#include "jinja/runtime.h"

namespace weir::jinja {

namespace {

// Nesting of tuples that may be a key.
constexpr int kKeyDepthMax = 16;

bool hashable_within(Runtime& rt, const Value& value, int depth) {
  if (!rt.charge()) return false;
  switch (value.type) {
    case Type::kStr:
    case Type::kBigInt:
      return rt.charge(value.str->bytes >> 5);
    case Type::kList:
    case Type::kDict:
      return false;
    case Type::kTuple:
      if (depth == 0) return false;
      for (const Value& item : value.list->span())
        if (!hashable_within(rt, item, depth - 1)) return false;
      return true;
    default:
      return true;
  }
}

// Secret per process, so that a request cannot choose keys that collide.
uint64_t hash_secret() {
  static const uint64_t secret = [] {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
  }();
  return secret;
}

uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<Uint128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t hash_text(std::string_view text) {
  const uint64_t secret = hash_secret();
  uint64_t hash = mix(text.size() ^ 0x9e3779b97f4a7c15, secret);
  while (text.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    hash = mix(hash ^ word, secret);
    text.remove_prefix(8);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, text.data(), text.size());
  return mix(hash ^ tail, secret ^ 0xa0761d6478bd642f);
}

// An integer and the float of the same value are the same key.
uint64_t hash_number(double number) {
  if (number >= -0x1p63 && number < 0x1p63 && number == std::floor(number))
    return mix(static_cast<uint64_t>(static_cast<int64_t>(number)), hash_secret());
  uint64_t bits;
  std::memcpy(&bits, &number, 8);
  return mix(bits, hash_secret() ^ 0xe7037ed1a0b428db);
}

}  // namespace

int64_t Str::length() const {
  if (chars == kUncounted) chars = static_cast<int64_t>(count_codepoints(view()));
  return chars;
}

int64_t Range::size() const {
  // In 128 bits: the ends may be as far apart as integers get.
  const auto from = static_cast<Int128>(start), to = static_cast<Int128>(stop);
  if (step > 0 && to > from) return static_cast<int64_t>((to - from - 1) / step + 1);
  if (step < 0 && to < from)
    return static_cast<int64_t>((from - to - 1) / -static_cast<Int128>(step) + 1);
  return 0;
}

int64_t Range::at(int64_t index) const {
  const auto number = static_cast<Int128>(start) + static_cast<Int128>(index) * step;
  return static_cast<int64_t>(std::clamp<Int128>(number, std::numeric_limits<int64_t>::min(),
                                                 std::numeric_limits<int64_t>::max()));
}

bool hashable(Runtime& rt, const Value& value) { return hashable_within(rt, value, kKeyDepthMax); }

uint64_t hash_of(const Value& value) {
  switch (value.type) {
    case Type::kStr:
    case Type::kBigInt:
      return hash_text(value.text());
    case Type::kBool:
    case Type::kInt:
      return mix(static_cast<uint64_t>(value.as_integer()), hash_secret());
    case Type::kFloat:
      return hash_number(value.number);
    case Type::kTuple: {
      uint64_t hash = 0x589965cc75374cc3;
      for (const Value& item : value.list->span()) hash = mix(hash ^ hash_of(item), hash_secret());
      return hash;
    }
    case Type::kNone:
    case Type::kUndefined:
      return static_cast<uint64_t>(value.type);
    default:
      return mix(reinterpret_cast<uintptr_t>(value.identity), hash_secret());
  }
}

bool same_key(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
  if (a.is_number() && b.is_number()) {
    const Value& integral = a.is_integral() ? a : b;
    if (!integral.is_integral()) return a.number == b.number;
    // Compared as integers: a float cannot tell 2^53 + 1 from 2^53.
    const double number = a.is_integral() ? b.number : a.number;
    return number >= -0x1p63 && number < 0x1p63 && number == std::floor(number) &&
           static_cast<int64_t>(number) == integral.as_integer();
  }
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::kStr:
    case Type::kBigInt:
      return a.text() == b.text();
    case Type::kNone:
    case Type::kUndefined:
      return true;
    case Type::kTuple:
      if (a.list->size != b.list->size) return false;
      for (size_t i = 0; i < a.list->size; ++i)
        if (!same_key(a.list->items[i], b.list->items[i])) return false;
      return true;
    default:
      return a.identity == b.identity;
  }
}

template <class Matches>
const Entry* Dict::probe(uint64_t hash, Matches matches) const {
  for (size_t slot = hash & index_mask_; index_[slot] != 0; slot = (slot + 1) & index_mask_) {
    const Entry& entry = entries_[index_[slot] - 1];
    if (matches(entry)) return &entry;
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  const auto matches = [key](const Entry& entry) {
    return entry.key.is(Type::kStr) && entry.key.text() == key;
  };
  if (index_) {
    const Entry* found = probe(hash_text(key), matches);
    return found ? &found->value : nullptr;
  }
  for (const Entry& entry : entries())
    if (matches(entry)) return &entry.value;
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is(Type::kStr)) return find(key.text());
  const auto matches = [&key](const Entry& entry) { return same_key(entry.key, key); };
  if (index_) {
    const Entry* found = probe(hash_of(key), matches);
    return found ? &found->value : nullptr;
  }
  for (const Entry& entry : entries())
    if (matches(entry)) return &entry.value;
  return nullptr;
}

void Dict::set(Arena& arena, const Value& key, const Value& value) {
  if (const Value* found = find(key)) {
    *const_cast<Value*>(found) = value;
    return;
  }
  if (size_ == capacity_) reserve(arena, capacity_ ? capacity_ * 2 : 4);
  entries_[size_++] = {key, value};
  if (index_) insert_index(static_cast<uint32_t>(size_ - 1));
}

void Dict::reserve(Arena& arena, size_t capacity) {
  if (capacity <= capacity_) return;
  Entry* grown = arena.make_array<Entry>(capacity);
  std::uninitialized_copy(entries_, entries_ + size_, grown);
  entries_ = grown;
  capacity_ = capacity;
  if (capacity_ > kLinearMax) build_index(arena);
}

void Dict::build_index(Arena& arena) {
  size_t slots = 2 * kLinearMax;
  while (slots < 2 * capacity_) slots *= 2;
  index_ = arena.make_array<uint32_t>(slots);
  std::memset(index_, 0, slots * sizeof(uint32_t));
  index_mask_ = slots - 1;
  for (size_t i = 0; i < size_; ++i) insert_index(static_cast<uint32_t>(i));
}

void Dict::insert_index(uint32_t entry) {
  size_t slot = hash_of(entries_[entry].key) & index_mask_;
  while (index_[slot] != 0) slot = (slot + 1) & index_mask_;
  index_[slot] = entry + 1;
}

std::string_view type_name(Type type) {
  switch (type) {
    case Type::kError:
      return "error";
    case Type::kMissing:
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "NoneType";
    case Type::kBool:
      return "bool";
    case Type::kInt:
    case Type::kBigInt:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kStr:
      return "str";
    case Type::kList:
      return "list";
    case Type::kTuple:
      return "tuple";
    case Type::kDict:
      return "dict";
    case Type::kDictView:
      return "dict view";
    case Type::kRange:
      return "range";
    case Type::kIterator:
      return "generator";
    case Type::kNamespace:
      return "Namespace";
    case Type::kFunction:
      return "function";
    case Type::kMethod:
      return "builtin_function_or_method";
    case Type::kMacro:
      return "Macro";
    case Type::kLoop:
      return "LoopContext";
    case Type::kCycler:
      return "Cycler";
    case Type::kJoiner:
      return "Joiner";
  }
  return "?";
}

}  // namespace weir::jinja
