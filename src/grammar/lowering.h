// Lowering: expressions to nondeterministic automata. Decides which rules are copied into their
// users (so that determinisation merges them) and which are called, and turns long repetitions into
// counted calls, so that `{0,10000}` costs no ten thousand copies.
//
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "grammar/grammar.h"

namespace weir::grammar {

// What an edge of an automaton may call: `machine`, from min to max times in a row.
struct CallTarget {
  int32_t machine = 0;
  int32_t min = 1;
  int32_t max = 1;
  bool counted() const { return min != 1 || max != 1; }
};

class Lowering {
 public:
  enum class Style : uint8_t {
    kCalls,       // As said above.
    kWrittenOut,  // Nothing is called. REQUIRES: no recursion.
  };

  explicit Lowering(Grammar& grammar, Style style = Style::kCalls);

  // Sorts the rules; an error names a rule that is not defined. Machine 0 is the root.
  Result<void> prepare();
  // REQUIRES: machine < machine_count(). May add machines and calls.
  Result<Nfa> build(int32_t machine);
  // Any expression of the grammar, without prepare(). REQUIRES: style kWrittenOut.
  Result<Nfa> build_single(ExprId expr);

  int32_t machine_count() const { return static_cast<int32_t>(machines_.size()); }
  std::string_view machine_name(int32_t machine) const;
  const std::vector<CallTarget>& calls() const { return calls_; }

 private:
  struct Machine {
    ExprId body = kNoExpr;
    RuleId rule = -1;  // -1: part of one.
  };

  void collect_references(RuleId rule, std::vector<RuleId>& out);
  void order_rules();
  void judge(RuleId rule);
  int64_t size(ExprId id);

  Result<Nfa> build_body(ExprId body);
  // Adds what lies between two states.
  void lower(ExprId id, int32_t from, int32_t to);
  void lower_characters(const CharSet& set, int32_t from, int32_t to);
  void lower_repeat(const Grammar::Expr& expr, int32_t from, int32_t to);
  void lower_copies(ExprId id, int32_t min, int32_t max, int32_t from, int32_t to);
  void lower_many(ExprId id, int32_t min, int32_t max, int32_t from, int32_t to);
  // An expression of so many copies; its number is the same whenever the expression is.
  ExprId block_of(ExprId id, int32_t copies);
  void lower_list(const List& list, int32_t from, int32_t to);
  void lower_counted_list(const List& list, int32_t from, int32_t to);
  void lower_machine(const Dfa& dfa, int32_t from, int32_t to);
  void lower_rule(RuleId rule, int32_t from, int32_t to);
  void add_call(CallTarget target, int32_t from, int32_t to);
  int32_t machine_of(ExprId body, RuleId rule);

  Grammar& grammar_;
  const Style style_;
  std::vector<std::vector<RuleId>> references_;  // By rule.
  std::vector<int32_t> use_count_;               // By rule.
  std::vector<bool> recursive_, copied_;         // By rule.
  std::vector<RuleId> callees_first_;
  std::vector<int64_t> rule_size_;  // By rule, in NFA states.
  std::vector<int64_t> expr_size_;  // By expression; -1: not known yet.
  std::vector<Machine> machines_;
  std::map<std::pair<ExprId, RuleId>, int32_t> machine_numbers_;
  std::map<ExprId, ExprId> blocks_;
  std::vector<CallTarget> calls_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> call_numbers_;
  Nfa nfa_;
  int32_t copy_depth_ = 0;
};

}  // namespace weir::grammar
