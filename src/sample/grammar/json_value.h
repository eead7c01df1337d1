// JsonParts: the pieces that JSON grammars share: white space, strings, numbers, any value.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sample/grammar/grammar.h"

namespace weir::sample::grammar {

class JsonParts {
 public:
  explicit JsonParts(Grammar& grammar);

  ExprId space() const { return space_; }
  ExprId comma() const { return comma_; }          // With the white space behind it.
  ExprId character() const { return character_; }  // Of a string, in any spelling.
  ExprId text() const { return text_; }            // Any string.
  ExprId value();                                  // Anything.
  ExprId object();                                 // Any object.
  ExprId array();                                  // Any array.

  // Quotes around what is spelled for JSON already.
  ExprId quoted(ExprId content) { return grammar_.concat({quote_, content, quote_}); }
  ExprId bracketed(char open, ExprId content, char close);
  // A member of an object.
  ExprId member(ExprId name, ExprId value) { return grammar_.concat({name, colon_, value}); }
  // Of `item`, between `min` and `max`, with commas.
  ExprId items(ExprId item, int32_t min, int32_t max);

 private:
  void define_any();

  Grammar& grammar_;
  ExprId space_ = kNoExpr, comma_ = kNoExpr, colon_ = kNoExpr, quote_ = kNoExpr;
  ExprId character_ = kNoExpr, text_ = kNoExpr;
  RuleId object_ = -1, array_ = -1;
  ExprId value_ = kNoExpr;
};

}  // namespace weir::sample::grammar
