// Lexer: template text to tokens, with trim_blocks and lstrip_blocks on, as transformers sets
// Jinja.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/arena.h"

namespace weir::jinja {

enum class TokenKind : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kAdd,
  kSub,
  kDiv,
  kFloorDiv,
  kMul,
  kPow,
  kMod,
  kTilde,
  kLeftBracket,
  kRightBracket,
  kLeftParen,
  kRightParen,
  kLeftBrace,
  kRightBrace,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kAssign,
  kDot,
  kColon,
  kPipe,
  kComma,
  kSemicolon,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int32_t line = 1;
  // Data and strings without their escapes; names; numbers as written; operators too.
  std::string_view text;
};

// A template that cannot be read.
struct SyntaxError {
  std::string message;
  int32_t line = 0;  // 0: no error.
};

// The source as Jinja sees it: line ends are \n, one at the very end is dropped.
std::string normalise_newlines(std::string_view source);

// `source` is normalised, valid UTF-8, and outlives the tokens; unescaped strings go to the arena.
// False, with `error` set, if it is malformed.
bool tokenise(std::string_view source, Arena& arena, std::vector<Token>& tokens,
              SyntaxError& error);

}  // namespace weir::jinja
