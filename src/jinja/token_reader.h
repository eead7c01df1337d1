// TokenReader: the place in the token stream where parsing stands, and the first error.
//
// Threads: owned by one parse.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/concat.h"
#include "jinja/lexer.h"

namespace weir::jinja {

// The token as messages name it.
std::string describe(const Token& token);

// A failed parse sets the error once; parsing functions then return null or false, all the way up,
// without a further message.
class TokenReader {
 public:
  TokenReader(std::span<const Token> tokens, SyntaxError& error) : tokens_(tokens), error_(error) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_name(std::string_view name) const { return is_name(current(), name); }
  static bool is_name(const Token& token, std::string_view name) {
    return token.kind == TokenKind::kName && token.text == name;
  }
  bool take_if(TokenKind kind) {
    if (!at(kind)) return false;
    take();
    return true;
  }
  bool take_name(std::string_view name) {
    if (!at_name(name)) return false;
    take();
    return true;
  }

  std::nullptr_t fail(std::string message, int32_t line) {
    if (error_.line == 0) error_ = {std::move(message), line};
    return nullptr;
  }
  std::nullptr_t fail(std::string message) { return fail(std::move(message), current().line); }

  bool expect(TokenKind kind, const char* what) {
    if (take_if(kind)) return true;
    fail(concat({"expected ", what, ", found ", describe(current())}));
    return false;
  }
  bool expect_name(std::string_view name) {
    if (take_name(name)) return true;
    fail(concat({"expected ", name, ", found ", describe(current())}));
    return false;
  }

  // Counts a level of the parser's recursion for as long as it lives.
  class Deeper {
   public:
    explicit Deeper(TokenReader& reader) : reader_(reader) { ++reader_.depth_; }
    ~Deeper() { --reader_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

    // With the error set.
    bool too_deep() const {
      if (reader_.depth_ <= kDepthMax) return false;
      reader_.fail("nested too deeply");
      return true;
    }

   private:
    TokenReader& reader_;
  };

 private:
  // A pair of brackets takes five levels and some 3 KB of stack. CPython runs out at about 80
  // pairs.
  static constexpr int kDepthMax = 500;

  std::span<const Token> tokens_;
  SyntaxError& error_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace weir::jinja
