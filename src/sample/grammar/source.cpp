#include "sample/grammar/source.h"

#include <functional>
#include <utility>

#include "base/utf8.h"
#include "sample/grammar/compiler.h"
#include "sample/grammar/gbnf.h"
#include "sample/grammar/json_schema.h"
#include "sample/grammar/lark.h"
#include "sample/grammar/parts.h"
#include "sample/grammar/regex.h"

namespace weir::sample::grammar {

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
  return parts(draft, source.text, &expression, schemas);
}

Result<std::unique_ptr<Automaton>> compile_once(const GrammarSource& source,
                                                LooseSchemas& schemas) {
  Grammar draft;
  schemas.begin();
  WEIR_ASSIGN(const ExprId body, body_of(draft, source, schemas));
  if (draft.budget.exhausted()) return too_complex();
  draft.root = draft.add_rule("root");
  draft.define(draft.root, body);
  WEIR_ASSIGN(auto automaton, compile(std::move(draft)));
  automaton->set_left_out(schemas.left_out());
  return automaton;
}

uint64_t hash_of(const GrammarSource& source) {
  uint64_t hash = std::hash<std::string>()(source.text) + static_cast<uint64_t>(source.kind);
  for (const std::string& text : source.choices)
    hash = (hash ^ std::hash<std::string>()(text)) * 0x9e3779b97f4a7c15;
  return hash;
}

size_t bytes_of(const GrammarSource& source) {
  size_t sum = source.text.size();
  for (const std::string& text : source.choices) sum += text.size() + sizeof text;
  return sum;
}

}  // namespace

Result<void> check_source(const GrammarSource& source) {
  LooseSchemas schemas;
  Grammar draft;
  WEIR_TRY(body_of(draft, source, schemas));
  return {};
}

// What is refused by name is a schema that is not loose.
Result<std::unique_ptr<Automaton>> compile(const GrammarSource& source) {
  LooseSchemas schemas;
  auto automaton = compile_once(source, schemas);
  const auto may_help = [&] {
    return !automaton && automaton.error().code != ErrorCode::kUnsupported && !schemas.empty();
  };
  if (may_help() && schemas.give_up_some()) automaton = compile_once(source, schemas);
  if (may_help() && schemas.give_up_all()) automaton = compile_once(source, schemas);
  return automaton;
}

std::shared_ptr<const Automaton> GrammarCache::find(uint64_t hash, const GrammarSource& source) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second->source != source) continue;
    entries_.splice(entries_.begin(), entries_, it->second);
    return it->second->automaton;
  }
  return nullptr;
}

void GrammarCache::drop_oldest() {
  const auto oldest = std::prev(entries_.end());
  const auto [begin, end] = by_hash_.equal_range(oldest->hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second != oldest) continue;
    by_hash_.erase(it);
    break;
  }
  bytes_ -= oldest->bytes;
  entries_.pop_back();
}

// Compiled without the lock: two who ask at once for the same may both compile it.
Result<std::shared_ptr<const Automaton>> GrammarCache::get(const GrammarSource& source,
                                                           const Finish& finish) {
  const uint64_t hash = hash_of(source);
  {
    const std::lock_guard lock(mutex_);
    if (auto found = find(hash, source)) {
      ++hits_;
      return found;
    }
  }
  WEIR_ASSIGN(auto compiled, compile(source));
  if (finish) finish(*compiled);
  const std::shared_ptr<const Automaton> automaton = std::move(compiled);
  const std::lock_guard lock(mutex_);
  if (auto found = find(hash, source)) return found;
  const size_t bytes = automaton->memory_bytes() + bytes_of(source);
  if (bytes > bytes_max_) return automaton;
  entries_.push_front({hash, source, automaton, bytes});
  by_hash_.emplace(hash, entries_.begin());
  bytes_ += bytes;
  while (entries_.size() > entries_max_ || bytes_ > bytes_max_) drop_oldest();
  return automaton;
}

size_t GrammarCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

uint64_t GrammarCache::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

}  // namespace weir::sample::grammar
