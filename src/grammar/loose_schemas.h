// LooseSchemas: the schemas of a grammar of parts of which only that is bound which can be enforced
// (functions that are not strict). What is left out is named after its schema:
// "tools[0].function.parameters: uniqueItems at /properties/tags".
//
// Where all of them are too much for one grammar, or one of them allows nothing, some are given up:
// any object is then as good.
//
// Threads: a plain value; one thread at a time.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace weir::grammar {

class LooseSchemas {
 public:
  // An expression of the schema's values; the same one for the same name. Means nothing once the
  // grammar's budget is exhausted, which the caller has to see.
  ExprId bind(Grammar& grammar, std::string_view name, const std::string& schema);

  bool empty() const { return schemas_.empty(); }
  // After a grammar of all of them has failed: gives up those that alone need more than their share
  // of what a grammar may cost, or allow nothing. False: none of them, or all were given up
  // already. Means nothing once `interrupt` has fired.
  bool give_up_some(Interrupt* interrupt = nullptr);
  bool give_up_all();

  // What was left out by the last attempt, in the order of the grammar.
  std::vector<std::string> left_out() const;
  // Begins another attempt.
  void begin() { schemas_.clear(); }

 private:
  struct Schema {
    std::string name, text;
    ExprId expr = kNoExpr;
    std::vector<std::string> left_out;
  };

  std::vector<Schema> schemas_;
  std::set<std::string, std::less<>> given_up_;
};

}  // namespace weir::grammar
