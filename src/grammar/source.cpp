#include "grammar/source.h"

#include <utility>

#include "base/utf8.h"
#include "grammar/compiler.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/lark.h"
#include "grammar/part_reader.h"
#include "grammar/regex.h"

namespace weir::grammar {

namespace {

constexpr size_t kChoicesMax = 20'000;
constexpr size_t kChoiceBytesMax = 1 << 20;

Result<ExprId> choice(Grammar& grammar, const std::vector<std::string>& choices) {
  if (choices.empty() || choices.size() > kChoicesMax)
    return fail(ErrorCode::kInvalid, "Expected from 1 to " + std::to_string(kChoicesMax) +
                                         " choices, found " + std::to_string(choices.size()) + ".");
  std::vector<ExprId> ways;
  size_t bytes = 0;
  for (const std::string& text : choices) {
    bytes += text.size();
    if (!valid_utf8(text) || bytes > kChoiceBytesMax)
      return fail(ErrorCode::kInvalid, "Expected choices of valid UTF-8, of at most " +
                                           std::to_string(kChoiceBytesMax) + " bytes together.");
    ways.push_back(grammar.literal(text));
  }
  return grammar.any(ways);
}

bool is_lark(const GrammarSource& source) {
  return source.kind == GrammarSource::Kind::kGrammar &&
         source.text.find("::=") == std::string::npos;
}

// Within a grammar of parts; kinds that define rules set the root, which is then one among others.
// Parts are not nested.
Result<ExprId> expression(Grammar& grammar, const GrammarSource& source, Spelling spelling) {
  using Kind = GrammarSource::Kind;
  if (spelling != Spelling::kPlain && source.kind != Kind::kRegex && !is_lark(source))
    return fail(ErrorCode::kUnsupported, "Within a JSON string only a regex or Lark is possible.");
  switch (source.kind) {
    case Kind::kJsonObject:
      return json_object(grammar);
    case Kind::kJsonSchema:
      return json_schema(grammar, source.text);
    case Kind::kRegex:
      return regex(grammar, source.text, spelling, RegexMatch::kWhole);
    case Kind::kChoice:
      return choice(grammar, source.choices);
    case Kind::kParts:
      return fail(ErrorCode::kInvalid, "A grammar of parts within another one.");
    case Kind::kGbnf:
    case Kind::kGrammar:
      break;
  }
  WEIR_TRY(is_lark(source) ? lark(grammar, source.text, spelling) : gbnf(grammar, source.text));
  return grammar.rule(grammar.root);
}

Result<ExprId> body_of(Grammar& draft, const GrammarSource& source, LooseSchemas& schemas) {
  if (source.kind != GrammarSource::Kind::kParts)
    return expression(draft, source, Spelling::kPlain);
  return read_parts(draft, source.text, &expression, schemas);
}

Result<std::unique_ptr<Automaton>> compile_once(const GrammarSource& source, LooseSchemas& schemas,
                                                Interrupt* interrupt) {
  Grammar draft;
  draft.budget.interrupt = interrupt;
  schemas.begin();
  WEIR_ASSIGN(const ExprId body, body_of(draft, source, schemas));
  if (draft.budget.exhausted()) return too_complex();
  draft.root = draft.add_rule("root");
  draft.define(draft.root, body);
  WEIR_ASSIGN(auto automaton, compile(std::move(draft)));
  automaton->set_left_out(schemas.left_out());
  return automaton;
}

}  // namespace

Result<void> check_source(const GrammarSource& source) {
  LooseSchemas schemas;
  Grammar draft;
  WEIR_TRY(body_of(draft, source, schemas));
  return {};
}

// What is refused by name is a schema that is not loose.
Result<std::unique_ptr<Automaton>> compile(const GrammarSource& source, Interrupt* interrupt) {
  LooseSchemas schemas;
  const auto interrupted = [&] { return interrupt && interrupt->fired(); };
  auto automaton = compile_once(source, schemas, interrupt);
  const auto may_help = [&] {
    return !automaton && !interrupted() && automaton.error().code != ErrorCode::kUnsupported &&
           !schemas.empty();
  };
  if (may_help() && schemas.give_up_some(interrupt))
    automaton = compile_once(source, schemas, interrupt);
  if (may_help() && schemas.give_up_all()) automaton = compile_once(source, schemas, interrupt);
  // Whatever it has come to: an interruption looks like a budget that is used up.
  if (interrupted()) return interruption();
  return automaton;
}

tl::unexpected<Error> interruption() {
  return fail(ErrorCode::kCancelled, "The compilation of the grammar was interrupted.");
}

}  // namespace weir::grammar
