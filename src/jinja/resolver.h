// Resolver: gives every variable its place before anything is rendered.
//
// Jinja compiles a template to Python functions whose local variables are decided in advance; what
// a name means at some point (the loop's own variable, the outer one, one the caller passed, none)
// follows from that analysis, not from what has been assigned so far. This is the same analysis
// (jinja2.idtracking), with slots in place of Python's locals.
//
// Threads: pure function.
#pragma once

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace weir::jinja {

// Fills in slots and frames. False, with `error` set, for what Jinja refuses to compile.
bool resolve(Arena& arena, Tree& tree, SyntaxError& error);

}  // namespace weir::jinja
