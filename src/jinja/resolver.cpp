// Resolver, in two parts that take turns as in Jinja: analysing which names a frame loads and
// stores, then visiting its code to bind each name to a slot.
#include "jinja/resolver.h"
#include "base/concat.h"

#include <algorithm>
#include <set>
#include <vector>

#include "jinja/symbols.h"

namespace weir::jinja {

namespace {

// Applies `visit` to each direct child expression that is there.
template <class Visit>
void for_children(Expr* expr, Visit visit) {
  // Names are met in the order in which Jinja's node fields have them: the condition of an
  // expression first, then its parts.
  for (Expr* child : {expr->a, expr->b, expr->c, expr->d})
    if (child) visit(child);
  for (Expr* child : expr->items) visit(child);
  for (const KeywordExpr& keyword : expr->keywords) visit(keyword.value);
  for (const ComparisonExpr& comparison : expr->comparisons) visit(comparison.right);
  if (expr->star) visit(expr->star);
  if (expr->star_star) visit(expr->star_star);
}

// ---- Names used in a body without being declared there, in the order of Jinja's visitor --------

class UndeclaredNames {
 public:
  explicit UndeclaredNames(std::set<std::string_view> names) : names_(std::move(names)) {}

  void visit(std::span<Statement* const> body) {
    for (const Statement* statement : body) visit(*statement);
  }
  bool found(std::string_view name) const { return undeclared_.contains(name); }

 private:
  void load(Expr* expr) {
    if (!expr) return;
    if (expr->kind == ExprKind::kName) {
      if (names_.contains(expr->name->view())) undeclared_.insert(expr->name->view());
      return;
    }
    if (expr->kind == ExprKind::kNamespaceRef) return;
    for_children(expr, [this](Expr* child) { load(child); });
  }

  void store(Expr* target) {
    if (!target) return;
    if (target->kind == ExprKind::kName) names_.erase(target->name->view());
    for (Expr* item : target->items) store(item);
  }

  void visit(const Statement& statement) {
    // A set's and a loop's target comes first, a filter block's filter last.
    const bool value_last = statement.kind == StatementKind::kFilterBlock;
    store(statement.target);
    if (!value_last) load(statement.value);
    if (statement.macro) {
      for (const std::string_view name : statement.macro->names) names_.erase(name);
      for (Expr* expr : statement.macro->defaults) load(expr);
    }
    for (Expr* target : statement.targets) store(target);
    for (Expr* expr : statement.exprs) load(expr);
    visit(statement.body);
    visit(statement.elifs);
    visit(statement.otherwise);
    load(statement.test);
    if (value_last) load(statement.value);
  }

  std::set<std::string_view> names_;
  std::set<std::string_view> undeclared_;
};

class Resolver {
 public:
  Resolver(Arena& arena, SyntaxError& error) : arena_(arena), error_(error) {}

  bool run(Tree& tree) {
    Function root;
    Symbols symbols(nullptr, &root, 0);
    for (Statement* statement : tree.body) analyse(*statement, symbols);
    visit(tree.body, symbols, root, false);
    tree.frame = frame_of(symbols, root);
    tree.slot_count = root.slot_count;
    return error_.line == 0;
  }

 private:
  void fail(std::string message, int32_t line) {
    if (error_.line == 0) error_ = {std::move(message), line};
  }

  // ---- Analysis: which names does this frame load and store? Inner frames are left out. --------

  void analyse(Expr* expr, Symbols& symbols) {
    if (!expr) return;
    if (expr->kind == ExprKind::kName || expr->kind == ExprKind::kNamespaceRef) {
      symbols.load(expr->name->view());
      return;
    }
    for_children(expr, [&](Expr* child) { analyse(child, symbols); });
  }

  void analyse_target(Expr* target, Symbols& symbols, bool as_parameter) {
    if (target->kind == ExprKind::kNamespaceRef) {
      symbols.load(target->name->view());
    } else if (target->kind == ExprKind::kName) {
      if (as_parameter) {
        symbols.declare_parameter(target->name->view());
      } else {
        symbols.store(target->name->view());
      }
    }
    for (Expr* item : target->items) analyse_target(item, symbols, as_parameter);
  }

  void analyse(const Statement& statement, Symbols& symbols) {
    switch (statement.kind) {
      case StatementKind::kText:
      case StatementKind::kBreak:
      case StatementKind::kContinue:
      case StatementKind::kNeedsLoader:
      case StatementKind::kGeneration:
        return;
      case StatementKind::kPrint:
      case StatementKind::kWith:
        for (Expr* expr : statement.exprs) analyse(expr, symbols);
        return;
      case StatementKind::kIf:
        analyse_if(statement, symbols);
        return;
      case StatementKind::kFor:
      case StatementKind::kCallBlock:
      case StatementKind::kFilterBlock:
        analyse(statement.value, symbols);
        return;
      case StatementKind::kSet:
        analyse(statement.value, symbols);
        analyse_target(statement.target, symbols, false);
        return;
      case StatementKind::kSetBlock:
        // Jinja forgets the filter's arguments here; names in them would be its internal error.
        analyse(statement.value, symbols);
        analyse_target(statement.target, symbols, false);
        return;
      case StatementKind::kMacro:
        symbols.store(statement.name->view());
        return;
    }
  }

  void analyse_if(const Statement& statement, Symbols& symbols) {
    analyse(statement.value, symbols);
    std::vector<Symbols::Changes> branches;
    for (const std::span<Statement* const> body :
         {statement.body, statement.elifs, statement.otherwise}) {
      branches.push_back(symbols.branch([&] {
        for (const Statement* inner : body) analyse(*inner, symbols);
      }));
    }
    symbols.merge(branches);
  }

  // ---- Visiting: binding names to slots --------------------------------------------------------

  static Slot slot_at(const Place& place, const Function& here) {
    return {static_cast<uint32_t>(here.depth - place.function->depth), place.slot};
  }

  // `soft`: directly in an if or a conditional expression, where a filter may be missing until it
  // is used.
  void visit(Expr* expr, const Symbols& symbols, const Function& function, bool soft) {
    if (!expr) return;
    if (expr->kind == ExprKind::kName || expr->kind == ExprKind::kNamespaceRef) {
      expr->slot = slot_at(*symbols.find(expr->name->view()), function);
      return;
    }
    const bool is_filter = expr->kind == ExprKind::kFilter;
    if ((is_filter || expr->kind == ExprKind::kTest) && !expr->builtin && !soft)
      fail(concat({"No ", (is_filter ? "filter" : "test"), " named '", expr->name->view(), "'."}),
           expr->line);
    soft = soft || expr->kind == ExprKind::kCondition;
    for_children(expr, [&](Expr* child) { visit(child, symbols, function, soft); });
  }

  void visit(std::span<Statement* const> body, const Symbols& symbols, Function& function,
             bool soft) {
    for (Statement* statement : body) visit(*statement, symbols, function, soft);
  }

  void visit(Statement& statement, const Symbols& symbols, Function& function, bool soft) {
    switch (statement.kind) {
      case StatementKind::kText:
      case StatementKind::kBreak:
      case StatementKind::kContinue:
      case StatementKind::kNeedsLoader:
        return;
      case StatementKind::kPrint:
        for (Expr* expr : statement.exprs) visit(expr, symbols, function, soft);
        return;
      case StatementKind::kIf:
        visit(statement.value, symbols, function, true);
        visit(statement.body, symbols, function, true);
        visit(statement.elifs, symbols, function, true);
        visit(statement.otherwise, symbols, function, true);
        return;
      case StatementKind::kFor:
        visit_for(statement, symbols, function, soft);
        return;
      case StatementKind::kSet:
        visit(statement.target, symbols, function, soft);
        visit(statement.value, symbols, function, soft);
        return;
      case StatementKind::kSetBlock:
      case StatementKind::kFilterBlock:
      case StatementKind::kWith:
        visit_block(statement, symbols, function, soft);
        return;
      case StatementKind::kMacro:
        visit_macro(statement, symbols, function);
        statement.slot = slot_at(*symbols.find(statement.name->view()), function);
        return;
      case StatementKind::kCallBlock:
      case StatementKind::kGeneration:
        visit_macro(statement, symbols, function);
        visit(statement.value, symbols, function, soft);
        return;
    }
  }

  static Symbols inner(const Symbols& symbols, Function& function) {
    return Symbols(&symbols, &function, symbols.level() + kLevelStep);
  }

  // {% set %}...{% endset %}, {% filter %}, {% with %}: a frame in the same function.
  void visit_block(Statement& statement, const Symbols& symbols, Function& function, bool soft) {
    Symbols block = inner(symbols, function);
    for (Expr* target : statement.targets) analyse_target(target, block, true);
    for (Statement* child : statement.body) analyse(*child, block);
    if (statement.kind == StatementKind::kFilterBlock) analyse(statement.value, block);
    if (statement.target) visit(statement.target, symbols, function, soft);
    for (Expr* target : statement.targets) visit(target, block, function, false);
    for (Expr* expr : statement.exprs) visit(expr, symbols, function, soft);
    visit(statement.body, block, function, false);
    visit(statement.value, block, function, false);
    statement.frame = frame_of(block, function);
  }

  // Loop variables are never assigned to by other means.
  void refuse_loop_target(const Statement& statement) {
    const auto check = [this](const auto& self, const Expr* target) -> void {
      if (target->kind == ExprKind::kName && target->name->view() == "loop")
        fail("Can't assign to special loop variable in for-loop target", target->line);
      for (const Expr* item : target->items) self(self, item);
    };
    if (statement.target) check(check, statement.target);
    for (const auto& body : {statement.body, statement.elifs, statement.otherwise})
      for (const Statement* child : body) refuse_loop_target(*child);
  }

  void visit_for(Statement& statement, const Symbols& symbols, Function& outer, bool soft) {
    refuse_loop_target(statement);
    Function own{.parent = &outer, .depth = outer.depth + 1};
    Function& function = statement.recursive ? own : outer;
    Symbols body = inner(symbols, function), otherwise = inner(symbols, function);
    UndeclaredNames special({"loop"});
    special.visit(statement.body);
    statement.has_loop_variable = statement.recursive || special.found("loop");
    if (statement.has_loop_variable) statement.loop_slot = body.declare_parameter("loop").slot;
    analyse_target(statement.target, body, true);
    for (Statement* child : statement.body) analyse(*child, body);
    for (Statement* child : statement.otherwise) analyse(*child, otherwise);
    if (statement.test) visit_test(statement, symbols, outer);
    visit(statement.target, body, function, false);
    visit(statement.value, symbols, outer, soft);
    visit(statement.body, body, function, false);
    visit(statement.otherwise, otherwise, function, false);
    statement.frame = frame_of(body, function);
    statement.otherwise_frame = frame_of(otherwise, function);
    statement.slot_count = own.slot_count;
  }

  // A loop's test is a generator function in Python, around the iterable. Here it runs in the
  // scope of the loop, with slots of its own.
  void visit_test(Statement& statement, const Symbols& symbols, Function& function) {
    Symbols test(&symbols, &function, symbols.level() + kLevelStep + kTestLevel);
    statement.test_target = copy_target(statement.target);
    analyse_target(statement.test_target, test, true);
    analyse(statement.test, test);
    visit(statement.test_target, test, function, false);
    visit(statement.test, test, function, false);
    statement.test_frame = frame_of(test, function);
  }

  Expr* copy_target(const Expr* target) {
    Expr* copy = arena_.make<Expr>(*target);
    std::vector<Expr*> items;
    for (const Expr* item : target->items) items.push_back(copy_target(item));
    copy->items = arena_.copy(items);
    return copy;
  }

  void visit_macro(Statement& statement, const Symbols& symbols, Function& outer) {
    MacroParts& parts = *statement.macro;
    Function function{.parent = &outer, .depth = outer.depth + 1};
    Symbols body = inner(symbols, function);
    const auto analyse_all = [&] {
      for (const std::string_view name : parts.names) body.declare_parameter(name);
      for (Expr* expr : parts.defaults) analyse(expr, body);
      for (Statement* child : statement.body) analyse(*child, body);
    };
    analyse_all();
    declare_specials(statement, body);
    analyse_all();
    std::vector<uint32_t> slots;
    for (const std::string_view name : parts.names) slots.push_back(body.find(name)->slot);
    parts.slots = arena_.copy(slots);
    for (Expr* expr : parts.defaults) visit(expr, body, function, false);
    visit(statement.body, body, function, false);
    statement.frame = frame_of(body, function);
    parts.slot_count = function.slot_count;
  }

  // caller, kwargs and varargs exist in a macro that uses them.
  void declare_specials(Statement& statement, Symbols& body) {
    MacroParts& parts = *statement.macro;
    UndeclaredNames special({"caller", "kwargs", "varargs"});
    special.visit(statement.body);
    const auto position = [&parts](std::string_view name) {
      return static_cast<size_t>(std::find(parts.names.begin(), parts.names.end(), name) -
                                 parts.names.begin());
    };
    const size_t count = parts.names.size();
    parts.explicit_caller = position("caller") < count;
    if (special.found("caller")) {
      if (parts.explicit_caller && position("caller") + parts.defaults.size() < count)
        fail("the special \"caller\" argument must be omitted or be given a default",
             statement.line);
      if (!parts.explicit_caller) parts.caller = body.declare_parameter("caller").slot;
    }
    if (special.found("kwargs") && position("kwargs") == count)
      parts.kwargs = body.declare_parameter("kwargs").slot;
    if (special.found("varargs") && position("varargs") == count)
      parts.varargs = body.declare_parameter("varargs").slot;
  }

  Frame frame_of(const Symbols& symbols, const Function& function) {
    std::vector<Load> loads;
    std::vector<uint32_t> slots;
    for (const auto& [name, state] : symbols.names()) {
      const Source& source = state.source;
      slots.push_back(state.place.slot);
      Load load;
      load.slot = state.place.slot;
      switch (source.kind) {
        case Source::Kind::kParameter:
          continue;
        case Source::Kind::kUndefined:
          break;
        case Source::Kind::kAlias:
          load.kind = Load::Kind::kAlias;
          load.from = slot_at(source.from, function);
          break;
        case Source::Kind::kResolve:
          load.kind = Load::Kind::kResolve;
          load.name = source.name;
          load.global = find_function(source.name);
          break;
      }
      loads.push_back(load);
    }
    const std::span<uint32_t> all = arena_.copy(slots);
    return {arena_.copy(loads), all};
  }

  // Levels of test frames lie between those of the frames around.
  static constexpr int kLevelStep = 2;
  static constexpr int kTestLevel = 1;

  Arena& arena_;
  SyntaxError& error_;
};

}  // namespace

bool resolve(Arena& arena, Tree& tree, SyntaxError& error) {
  return Resolver(arena, error).run(tree);
}

}  // namespace weir::jinja
