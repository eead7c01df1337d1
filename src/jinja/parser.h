// Parser: tokens to a syntax tree, following Jinja's grammar.
//
// Threads: pure function.
#pragma once

#include <span>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace weir::jinja {

// Nodes go to the arena. False, with `error` set, if the template is malformed.
bool parse(std::span<const Token> tokens, Arena& arena, Tree& tree, SyntaxError& error);

}  // namespace weir::jinja
