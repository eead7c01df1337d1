// The language of a grammar by its definition: which texts each expression stands for, found by
// trying all ways to split a text. Slow, and shares nothing with what compiles grammars.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "grammar/grammar.h"

namespace weir::grammar {

class Language {
 public:
  explicit Language(const Grammar& grammar) : grammar_(grammar) {}

  // REQUIRES: `text` has at most 31 bytes.
  bool holds(ExprId expr, std::string_view text) {
    text_ = text;
    const size_t count = grammar_.expr_count() * (text.size() + 1);
    known_.assign(count, 0);
    // Sets only grow: what calls itself is what it comes to when nothing changes any more.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t id = 0; id < grammar_.expr_count(); ++id)
        for (size_t at = 0; at <= text.size(); ++at) {
          const Ends found = derive(static_cast<ExprId>(id), at);
          Ends& known = known_[id * (text.size() + 1) + at];
          changed = changed || (found | known) != known;
          known |= found;
        }
    }
    return ends(expr, size_t{0}) >> text.size() & 1;
  }

 private:
  using Ends = uint32_t;  // A bit for each place in the text where an expression may end.

  Ends ends(ExprId expr, size_t at) const {
    return known_[static_cast<size_t>(expr) * (text_.size() + 1) + at];
  }
  Ends after(ExprId expr, Ends from) const {
    Ends result = 0;
    for (size_t at = 0; at <= text_.size(); ++at)
      if (from >> at & 1) result |= ends(expr, at);
    return result;
  }
  static Ends only(size_t at) { return Ends{1} << at; }

  Ends derive(ExprId id, size_t at) const {
    using Kind = Grammar::Kind;
    const Grammar::Expr& expr = grammar_.expr(id);
    const std::string_view rest = text_.substr(at);
    switch (expr.kind) {
      case Kind::kNothing:
        return 0;
      case Kind::kEmpty:
        return only(at);
      case Kind::kSymbols: {
        const int byte = rest.empty() ? -1 : static_cast<uint8_t>(rest[0]);
        return expr.a <= byte && byte <= expr.b ? only(at + 1) : 0;
      }
      case Kind::kLiteral: {
        const std::string_view text = grammar_.text(expr);
        return rest.starts_with(text) ? only(at + text.size()) : 0;
      }
      case Kind::kCharacters: {
        if (rest.empty() || utf8_front(rest).kind != Utf8Front::Kind::kValid) return 0;
        size_t bytes = 0;
        const char32_t character = decode_utf8(rest, bytes);
        for (const CharRange& range : grammar_.char_set(expr).ranges())
          if (range.first <= character && character <= range.last) return only(at + bytes);
        return 0;
      }
      case Kind::kConcat: {
        Ends reached = only(at);
        for (const ExprId child : grammar_.children(expr)) reached = after(child, reached);
        return reached;
      }
      case Kind::kAny: {
        Ends reached = 0;
        for (const ExprId child : grammar_.children(expr)) reached |= ends(child, at);
        return reached;
      }
      case Kind::kRepeat:
        return repeated(expr.a, expr.min, expr.max, only(at));
      case Kind::kRule:
        return ends(grammar_.rules()[static_cast<size_t>(expr.a)].body, at);
      case Kind::kList:
        return listed(grammar_.list_of(expr), at);
      case Kind::kMachine: {
        Ends reached = 0;
        for (size_t bytes = 0; bytes <= rest.size(); ++bytes)
          if (grammar_.machine_of(expr).accepts(rest.substr(0, bytes))) reached |= only(at + bytes);
        return reached;
      }
    }
    return 0;
  }

  Ends repeated(ExprId expr, int32_t min, int32_t max, Ends from) const {
    Ends reached = min == 0 ? from : 0;
    // More rounds than there are bytes: what may be empty fills up the rest.
    const int32_t rounds = std::min<int32_t>(max, min + static_cast<int32_t>(text_.size()) + 1);
    for (int32_t round = 1; round <= rounds; ++round) {
      from = after(expr, from);
      if (round >= min) reached |= from;
    }
    return reached;
  }

  // Each choice of which items are there, and how many of the rest.
  Ends listed(const List& list, size_t at) const {
    Ends result = 0;
    for (uint32_t chosen = 0; chosen < uint32_t{1} << list.items.size(); ++chosen) {
      Ends reached = only(at);
      int32_t count = 0;
      bool allowed = true;
      const auto add = [&](ExprId expr) {
        if (count++ > 0) reached = after(list.separator, reached);
        reached = after(expr, reached);
      };
      for (size_t i = 0; i < list.items.size(); ++i) {
        if (chosen >> i & 1)
          add(list.items[i].expr);
        else
          allowed = allowed && !list.items[i].required;
      }
      if (!allowed) continue;
      const int32_t named = count;
      for (size_t more = 0; more <= text_.size() + 1 && reached != 0; ++more) {
        // However many come by `rest`, they count as one towards the least.
        const int32_t counted = named + (count > named ? 1 : 0);
        if (counted >= list.min && count <= list.max && (count > 0 || !list.not_empty))
          result |= reached;
        if (list.rest == kNoExpr) break;
        add(list.rest);
      }
    }
    return result;
  }

  const Grammar& grammar_;
  std::string_view text_;
  std::vector<Ends> known_;
};

}  // namespace weir::grammar
