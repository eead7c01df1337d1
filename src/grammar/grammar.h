// Grammar: a language over bytes as rules of expressions. What every front end (JSON Schema, regex,
// GBNF, Lark, choices) makes, and the compiler reads. Not yet an automaton.
//
// Expressions form a DAG: an ExprId may be used in several places. Building never fails; a grammar
// that outgrows its limits is marked and refused by the compiler.
//
// Threads: a plain value; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/char_set.h"
#include "grammar/dfa.h"

namespace weir::grammar {

using ExprId = int32_t;
using RuleId = int32_t;
inline constexpr int32_t kUnbounded = INT32_MAX;
inline constexpr ExprId kNoExpr = -1;

// An element of a list with separators, such as the members of an object.
struct ListItem {
  ExprId expr = kNoExpr;
  bool required = false;
};

// Items in this order, each at most once, those that are not required perhaps left out; then `rest`
// any number of times; `separator` between any two. Of all together at most `max`, and at least
// `min` where what comes by `rest` counts as one: its names may be equal.
struct List {
  std::vector<ListItem> items;
  ExprId separator = kNoExpr;
  ExprId rest = kNoExpr;
  int32_t min = 0;
  int32_t max = kUnbounded;
  bool not_empty = false;  // The same as min = 1, for less.
};

class Grammar {
 public:
  enum class Kind : uint8_t {
    kNothing,     // No sentence at all.
    kEmpty,       // The empty sentence.
    kSymbols,     // One byte (or end of text) of [a, b].
    kLiteral,     // Bytes: text [a, a + b).
    kCharacters,  // One character in UTF-8: character set a.
    kConcat,      // Children [a, a + b).
    kAny,         // One of children [a, a + b).
    kRepeat,      // Child a, min to max times.
    kRule,        // Rule a.
    kList,        // List a.
    kMachine,     // Automaton a, which has no calls.
  };
  struct Expr {
    Kind kind = Kind::kNothing;
    int32_t a = 0, b = 0;
    int32_t min = 0, max = 0;
  };
  struct Rule {
    std::string name;  // For messages.
    ExprId body = kNoExpr;
    bool keep = false;  // Never copied into its users.
  };

  // Limits of one grammar: far beyond any schema that a model could follow, about 50 MB.
  static constexpr size_t kExprsMax = 1 << 20;
  static constexpr size_t kTextBytesMax = 16 << 20;

  Grammar();

  ExprId nothing() const { return 0; }
  ExprId empty() const { return 1; }
  ExprId symbols(uint16_t first, uint16_t last);
  ExprId literal(std::string_view text);
  ExprId characters(const CharSet& set);
  ExprId concat(std::span<const ExprId> parts);
  ExprId concat(std::initializer_list<ExprId> parts) {
    return concat(std::span(parts.begin(), parts.size()));
  }
  ExprId any(std::span<const ExprId> parts);
  ExprId any(std::initializer_list<ExprId> parts) {
    return any(std::span(parts.begin(), parts.size()));
  }
  // REQUIRES: 0 <= min <= max.
  ExprId repeat(ExprId expr, int32_t min, int32_t max);
  ExprId optional(ExprId expr) { return repeat(expr, 0, 1); }
  ExprId list(List list);
  ExprId machine(Dfa dfa);
  ExprId rule(RuleId rule);

  RuleId add_rule(std::string_view name, bool keep = false);
  void define(RuleId rule, ExprId body) { rules_[static_cast<size_t>(rule)].body = body; }

  const Expr& expr(ExprId id) const { return exprs_[static_cast<size_t>(id)]; }
  std::span<const ExprId> children(const Expr& expr) const {
    return std::span(children_).subspan(static_cast<size_t>(expr.a), static_cast<size_t>(expr.b));
  }
  std::string_view text(const Expr& expr) const {
    return std::string_view(text_).substr(static_cast<size_t>(expr.a), static_cast<size_t>(expr.b));
  }
  const CharSet& char_set(const Expr& expr) const { return sets_[static_cast<size_t>(expr.a)]; }
  const List& list_of(const Expr& expr) const { return lists_[static_cast<size_t>(expr.a)]; }
  const Dfa& machine_of(const Expr& expr) const { return machines_[static_cast<size_t>(expr.a)]; }
  std::span<const Rule> rules() const { return rules_; }
  size_t expr_count() const { return exprs_.size(); }

  RuleId root = -1;
  // What front ends and compiler may still spend.
  Budget budget;

  bool too_large() const {
    return exprs_.size() > kExprsMax || children_.size() > 4 * kExprsMax ||
           rules_.size() > kExprsMax || text_.size() > kTextBytesMax;
  }

 private:
  ExprId add(Expr expr);
  ExprId add_children(Kind kind, std::span<const ExprId> parts);

  std::vector<Expr> exprs_;
  std::vector<ExprId> children_;
  std::string text_;
  std::vector<CharSet> sets_;
  std::vector<List> lists_;
  std::vector<Dfa> machines_;
  std::vector<Rule> rules_;
};

}  // namespace weir::grammar
