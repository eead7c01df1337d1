// JsonParts: the pieces that JSON grammars share: white space, strings, numbers, any value.
//
// White space has one rule. After a bracket or a comma, and before a closing bracket: nothing, one
// space, or a line end and an indentation; after a colon: nothing or one space. An indentation is
// of at most 4 columns (or tabs) for each level of brackets that the value may have, 8 at the least
// and 64 at the most: what people and json.dumps(indent=4) write, and too little to fill an answer
// with.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace weir::grammar {

class JsonParts {
 public:
  // What a value of any depth is taken to have: deeper ones are rare, and all right with less
  // indentation than they would have.
  static constexpr int kFreeLevels = 6;

  // `levels`: of brackets within brackets, in all that is made of these parts.
  explicit JsonParts(Grammar& grammar, int levels = kFreeLevels);

  ExprId space() const { return space_; }
  ExprId comma() const { return comma_; }          // With the white space after it.
  ExprId character() const { return character_; }  // Of a string, in any spelling.
  ExprId text() const { return text_; }            // Any string.
  ExprId value();                                  // Anything.
  ExprId object();                                 // Any object.
  ExprId array();                                  // Any array.

  // Quotes around what is spelled for JSON already.
  ExprId quoted(ExprId content) { return grammar_.concat({quote_, content, quote_}); }
  // `or_empty`: or nothing between the brackets; content is never empty then, so that there is
  // white space only once.
  ExprId bracketed(char open, ExprId content, char close, bool or_empty = false);
  // A member of an object.
  ExprId member(ExprId name, ExprId value) { return grammar_.concat({name, colon_, value}); }
  // Between `min` and `max` times `item`, with commas.
  ExprId items(ExprId item, int32_t min, int32_t max);

 private:
  void define_any();

  Grammar& grammar_;
  ExprId space_ = kNoExpr, comma_ = kNoExpr, colon_ = kNoExpr, quote_ = kNoExpr;
  ExprId character_ = kNoExpr, text_ = kNoExpr;
  RuleId object_ = -1, array_ = -1;
  ExprId value_ = kNoExpr;
};

}  // namespace weir::grammar
