// The syntax tree of a template, and what the resolver adds to it: which slot each name lives in.
//
// Threads: built once, then only read. Lives in the template's arena.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "jinja/builtin.h"
#include "jinja/value.h"

namespace weir::jinja {

// A variable's place: `hops` scopes out, then the slot there.
struct Slot {
  uint32_t hops = 0;
  uint32_t index = 0;
};

enum class ExprKind : uint8_t {
  kConstant,   // constant
  kName,       // name, slot
  kAttribute,  // a.name
  kItem,       // a[b]
  kSlice,      // a[b:c:d]
  kCall,       // a(items, keywords, *star, **star_star)
  kFilter,     // the same with a builtin; a is null inside {% filter %} and {% set %}
  kTest,
  kTuple,  // items
  kList,
  kDict,       // items: key, value, key, value, ...
  kCondition,  // b if a else c; c may be null
  kAnd,        // a, b
  kOr,
  kNot,  // a
  kNegate,
  kPlus,
  kAdd,  // a, b
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcat,        // items
  kCompare,       // a, then comparisons
  kNamespaceRef,  // name.attribute = ...; only a target
};

enum class CompareKind : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expr;

struct KeywordExpr {
  std::string_view name;
  Expr* value = nullptr;
};

struct ComparisonExpr {
  CompareKind kind = CompareKind::kEqual;
  Expr* right = nullptr;
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  uint16_t height = 1;  // Nodes on the longest way down.
  int32_t line = 0;
  Value constant;             // kConstant.
  const Str* name = nullptr;  // kName, kAttribute, kFilter, kTest, kNamespaceRef (the namespace).
  const Str* attribute = nullptr;  // kNamespaceRef.
  Slot slot;
  Expr* a = nullptr;
  Expr* b = nullptr;
  Expr* c = nullptr;
  Expr* d = nullptr;
  std::span<Expr*> items;
  std::span<KeywordExpr> keywords;
  std::span<ComparisonExpr> comparisons;
  Expr* star = nullptr;
  Expr* star_star = nullptr;
  // kFilter, kTest: null if there is none of this name, which is an error when it is used.
  const Builtin* builtin = nullptr;
  // kAttribute: the methods of that name, looked up once.
  const Builtin* str_method = nullptr;
  const Builtin* dict_method = nullptr;
};

enum class StatementKind : uint8_t {
  kText,         // text
  kPrint,        // exprs
  kIf,           // value, body, elifs (kIf too), otherwise
  kFor,          // target, value, test, body, otherwise
  kSet,          // target, value
  kSetBlock,     // target, value (a filter or null), body
  kMacro,        // name, parameters, body
  kCallBlock,    // value (the call), parameters, body
  kFilterBlock,  // value (a filter), body
  kWith,         // targets, exprs, body
  kGeneration,   // body
  kBreak,
  kContinue,
  kNeedsLoader,  // include, import, extends: transformers' environment has no loader.
};

// What a block does with its variables when it is entered; see resolver.h.
struct Load {
  enum class Kind : uint8_t { kResolve, kAlias, kUndefined };
  Kind kind = Kind::kUndefined;
  uint32_t slot = 0;
  Slot from;              // kAlias.
  std::string_view name;  // kResolve: a variable of the rendering, or a global.
  const Builtin* global = nullptr;
};

struct Frame {
  std::span<Load> loads;            // On entering.
  std::span<const uint32_t> slots;  // All of them, emptied on leaving.
};

// The parts of a kMacro or kCallBlock beyond its body.
struct MacroParts {
  std::span<std::string_view> names;  // Of the parameters.
  std::span<uint32_t> slots;
  std::span<Expr*> defaults;  // Of the last parameters.
  uint32_t slot_count = 0;    // Of its scope.
  // Slots of the special variables, kNoSlot where the body does not use them.
  static constexpr uint32_t kNoSlot = 0xffffffff;
  uint32_t caller = kNoSlot, kwargs = kNoSlot, varargs = kNoSlot;
  bool explicit_caller = false;
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  bool recursive = false;  // kFor.
  bool has_loop_variable = false;
  uint32_t loop_slot = 0;
  uint32_t slot_count = 0;  // Of a recursive loop's own scope.
  Slot slot;                // kMacro: where its name lives.
  int32_t line = 0;
  std::string_view text;
  const Str* name = nullptr;
  Expr* target = nullptr;
  Expr* test_target = nullptr;  // kFor with a test: the target as the test sees it.
  Expr* value = nullptr;
  Expr* test = nullptr;
  std::span<Expr*> exprs;
  std::span<Expr*> targets;
  std::span<Statement*> body;
  std::span<Statement*> elifs;
  std::span<Statement*> otherwise;
  Frame frame;            // Of the body.
  Frame otherwise_frame;  // kFor.
  Frame test_frame;       // kFor.
  MacroParts* macro = nullptr;
};

// A whole template.
struct Tree {
  std::span<Statement*> body;
  Frame frame;
  uint32_t slot_count = 0;
};

// Resolving and evaluating recurse over expressions; higher ones are refused. CPython's compiler
// gives up at about 100 to 300.
constexpr int kTreeHeightMax = 250;

// Keywords of a call and parameters of a macro are compared one with another.
constexpr size_t kKeywordsMax = 1'000;

}  // namespace weir::jinja
