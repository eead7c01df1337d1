// Value: what a template computes with; Python's types as far as templates can see them.
//
// Values are small and copied freely; what they point to lives in an Arena (the rendering's, or the
// template's for constants) and is immutable except for List (pop), Namespace and iterators.
//
// Threads: a rendering's values belong to its thread; a template's constants are only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "jinja/arena.h"

namespace weir::jinja {

// What sums and products of two 64-bit integers fit into.
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

enum class Type : uint8_t {
  kError,      // Evaluation failed; the Runtime holds the reason. Handed upwards at once.
  kMissing,    // A variable that has no value, an argument that was not given.
  kUndefined,  // Jinja's Undefined: prints nothing, is falsy and empty, refuses the rest.
  kNone,
  kBool,
  kInt,
  kBigInt,  // Beyond 64 bits signed, from JSON: prints, compares equal, nothing else.
  kFloat,
  kStr,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kIterator,
  kNamespace,
  kFunction,  // A global function or class.
  kMethod,    // A method bound to its object.
  kMacro,
  kLoop,
  kCycler,
  kJoiner,
};

struct Str;
struct List;
class Dict;
struct DictView;
struct Range;
struct Iterator;
struct Namespace;
struct Builtin;
struct Method;
struct Macro;
struct Loop;
struct Cycler;
struct Joiner;
struct Undefined;
class Runtime;

struct Value {
  Type type = Type::kMissing;
  union {
    bool boolean;
    int64_t integer;
    double number;
    const Str* str;  // kStr, and the digits of a kBigInt.
    List* list;      // kList and kTuple.
    Dict* dict;
    const DictView* view;
    const Range* range;
    Iterator* iterator;
    Namespace* space;
    const Builtin* function;
    const Method* method;
    const Macro* macro;
    Loop* loop;
    Cycler* cycler;
    Joiner* joiner;
    const Undefined* undefined;
    const void* identity = nullptr;
  };

  static Value error() { return of(Type::kError); }
  static Value missing() { return of(Type::kMissing); }
  static Value none() { return of(Type::kNone); }
  static Value of(Type type) {
    Value v;
    v.type = type;
    return v;
  }
  static Value of(bool flag) {
    Value v = of(Type::kBool);
    v.boolean = flag;
    return v;
  }
  static Value of(int64_t number) {
    Value v = of(Type::kInt);
    v.integer = number;
    return v;
  }
  static Value of(double number) {
    Value v = of(Type::kFloat);
    v.number = number;
    return v;
  }
  static Value of(const Str* text) {
    Value v = of(Type::kStr);
    v.str = text;
    return v;
  }
  // Any of the pointers above; `type` says which.
  static Value of(Type type, const void* object) {
    Value v = of(type);
    v.identity = object;
    return v;
  }

  bool is(Type t) const { return type == t; }
  bool is_error() const { return type == Type::kError; }
  bool is_missing() const { return type == Type::kMissing; }
  bool is_sequence() const { return type == Type::kList || type == Type::kTuple; }
  // int or bool, of 64 bits.
  bool is_integral() const { return type == Type::kInt || type == Type::kBool; }
  bool is_number() const { return is_integral() || type == Type::kFloat; }
  int64_t as_integer() const { return type == Type::kBool ? boolean : integer; }
  double as_double() const {
    return type == Type::kFloat ? number : static_cast<double>(as_integer());
  }
  std::string_view text() const;
};

constexpr int64_t kUncounted = -1;

struct Str {
  const char* data = nullptr;
  size_t bytes = 0;
  mutable int64_t chars = kUncounted;  // Code points. Constants are counted when parsed.
  bool markup = false;                 // markupsafe.Markup: what joins it is HTML-escaped.

  std::string_view view() const { return {data, bytes}; }
  int64_t length() const;
  bool ascii() const { return static_cast<size_t>(length()) == bytes; }
};

inline std::string_view Value::text() const { return str->view(); }

struct List {
  Value* items = nullptr;
  size_t size = 0;
  bool is_group = false;  // A tuple of groupby: also has the attributes `grouper` and `list`.

  std::span<const Value> span() const { return {items, size}; }
};

struct Range {
  int64_t start = 0, stop = 0, step = 1;

  int64_t size() const;
  // Saturates: an end that is no member may lie beyond 64 bits.
  int64_t at(int64_t index) const;
};

struct Entry {
  Value key;
  Value value;
};

// Insertion-ordered. Up to kLinearMax entries are searched one by one, more through a hash table.
class Dict {
 public:
  static constexpr size_t kLinearMax = 8;

  size_t size() const { return size_; }
  std::span<const Entry> entries() const { return {entries_, size_}; }

  // nullptr if absent. REQUIRES: key is hashable.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  // Inserts or assigns; a key that is there keeps its place. REQUIRES: key is hashable.
  void set(Arena& arena, const Value& key, const Value& value);
  void reserve(Arena& arena, size_t capacity);

 private:
  template <class Matches>
  const Entry* probe(uint64_t hash, Matches matches) const;
  void build_index(Arena& arena);
  void insert_index(uint32_t entry);

  Entry* entries_ = nullptr;
  uint32_t* index_ = nullptr;  // Entry number + 1, 0 is free; power of two, at most half full.
  size_t size_ = 0;
  size_t capacity_ = 0;
  size_t index_mask_ = 0;
};

struct DictView {
  enum class Kind : uint8_t { kKeys, kValues, kItems };
  Dict* dict = nullptr;
  Kind kind = Kind::kKeys;
};

struct Namespace {
  Dict* attributes = nullptr;
};

// Why something is undefined; the message is only composed when it is needed.
struct Undefined {
  std::string_view hint = {};       // The whole message, if not empty.
  Value name = Value::missing();    // What was looked for.
  Value object = Value::missing();  // In what; missing for a variable.
};

struct Cycler {
  std::span<const Value> items;
  size_t next = 0;
};

struct Joiner {
  Value separator;
  bool used = false;
};

// None, numbers, strings and tuples of such; objects by identity. Tuples too deep are not. Pays for
// one look-up of the key: hashing and comparing follow a tuple's items to the ground, and tuples
// that share items are small and have very many. False, with the error set, too if it cannot.
bool hashable(Runtime& rt, const Value& value);
uint64_t hash_of(const Value& value);
// Equality of hashable values, as dictionaries need it.
bool same_key(const Value& a, const Value& b);

// As Python's type(x).__name__.
std::string_view type_name(Type type);

}  // namespace weir::jinja
