// Filters that return generators: nothing is evaluated, and nothing fails, before someone asks.
#include "jinja/lazy_filters.h"

#include "jinja/attribute_path.h"
#include "jinja/iterator.h"
#include "jinja/operators.h"

namespace weir::jinja {

namespace {

// What a generator over another iterable remembers.
struct Pipe {
  Value input;
  Iterator* source = nullptr;  // Null until the first item is asked for.
  Arguments arguments;
  bool by_attribute = false;  // selectattr, rejectattr.
  bool wanted = true;         // false: reject, rejectattr.
  // Found out from the arguments at the first item.
  const Builtin* builtin = nullptr;
  AttributePath path;
  Dict* seen = nullptr;
};

Pipe* make_pipe(const Call& call) {
  Runtime& rt = call.rt;
  Pipe* pipe = rt.arena().make<Pipe>();
  pipe->input = call.self;
  const auto& raw = call.raw;
  pipe->arguments.positional =
      rt.arena().copy(std::vector<Value>(raw.positional.begin(), raw.positional.end()));
  pipe->arguments.keywords =
      rt.arena().copy(std::vector<Keyword>(raw.keywords.begin(), raw.keywords.end()));
  return pipe;
}

Value next_entry(Runtime& rt, void* state) {
  auto& pipe = *static_cast<Pipe*>(state);
  if (!pipe.source) {
    if (pipe.input.is(Type::kUndefined)) return Value::missing();
    if (!pipe.input.is(Type::kDict)) return rt.fail("Can only get item pairs from a mapping.");
    pipe.source =
        iterate(rt, Value::of(Type::kDictView,
                              rt.arena().make<DictView>(pipe.input.dict, DictView::Kind::kItems)));
  }
  return pipe.source->next(rt);
}

// map(attribute=..., default=...) or map("filter", arguments...).
bool prepare_map(Runtime& rt, Pipe& pipe) {
  Arguments& arguments = pipe.arguments;
  if (arguments.positional.empty()) {
    Value attribute = Value::missing(), otherwise = Value::missing();
    std::string_view unknown;
    for (const Keyword& keyword : arguments.keywords) {
      if (keyword.name == "attribute") {
        attribute = keyword.value;
      } else if (keyword.name == "default") {
        otherwise = keyword.value;
      } else {
        unknown = keyword.name;
      }
    }
    if (attribute.is_missing()) {
      rt.fail("map requires a filter argument");
    } else if (!unknown.empty()) {
      rt.fail("Unexpected keyword argument '", unknown, "'");
    } else {
      pipe.path = attribute_path(rt, attribute);
      pipe.path.otherwise = otherwise;
    }
    return !rt.failed();
  }
  const Value& name = arguments.positional[0];
  pipe.builtin = name.is(Type::kStr) ? find_filter(name.text()) : nullptr;
  if (!pipe.builtin) {
    rt.fail("No filter named ", (name.is(Type::kStr) ? std::string(name.text()) : "that"), ".");
    return false;
  }
  arguments.positional = arguments.positional.subspan(1);
  return true;
}

Value next_mapped(Runtime& rt, void* state) {
  auto& pipe = *static_cast<Pipe*>(state);
  if (!pipe.source) {
    if (!truthy(pipe.input)) return Value::missing();
    if (!prepare_map(rt, pipe)) return Value::error();
    pipe.source = iterate(rt, pipe.input);
    if (!pipe.source) return Value::error();
  }
  const Value item = pipe.source->next(rt);
  if (item.is_missing() || item.is_error()) return item;
  return pipe.builtin ? invoke(rt, *pipe.builtin, item, pipe.arguments) : pipe.path.get(rt, item);
}

// select("test", arguments...), selectattr("attribute", "test", arguments...).
bool prepare_select(Runtime& rt, Pipe& pipe) {
  auto& positional = pipe.arguments.positional;
  if (pipe.by_attribute) {
    if (positional.empty()) {
      rt.fail("Missing parameter for attribute name");
      return false;
    }
    pipe.path = attribute_path(rt, positional[0]);
    positional = positional.subspan(1);
  }
  if (positional.empty()) return true;
  const Value& name = positional[0];
  pipe.builtin = name.is(Type::kStr) ? find_test(name.text()) : nullptr;
  if (!pipe.builtin) {
    rt.fail("No test named ", (name.is(Type::kStr) ? std::string(name.text()) : "that"), ".");
    return false;
  }
  positional = positional.subspan(1);
  return true;
}

Value next_selected(Runtime& rt, void* state) {
  auto& pipe = *static_cast<Pipe*>(state);
  if (!pipe.source) {
    if (!truthy(pipe.input)) return Value::missing();
    if (!prepare_select(rt, pipe)) return Value::error();
    pipe.source = iterate(rt, pipe.input);
    if (!pipe.source) return Value::error();
  }
  for (;;) {
    const Value item = pipe.source->next(rt);
    if (item.is_missing() || item.is_error()) return item;
    Value verdict = pipe.path.get(rt, item);
    if (!verdict.is_error() && pipe.builtin)
      verdict = invoke(rt, *pipe.builtin, verdict, pipe.arguments);
    if (verdict.is_error()) return verdict;
    if (truthy(verdict) == pipe.wanted) return item;
  }
}

Value next_unique(Runtime& rt, void* state) {
  auto& pipe = *static_cast<Pipe*>(state);
  if (!pipe.source) {
    pipe.source = iterate(rt, pipe.input);
    if (!pipe.source) return Value::error();
    pipe.seen = rt.arena().make<Dict>();
  }
  for (;;) {
    const Value item = pipe.source->next(rt);
    if (item.is_missing() || item.is_error()) return item;
    const Value key = pipe.path.get(rt, item);
    if (key.is_error()) return key;
    if (!hashable(rt, key)) return rt.fail("unhashable type: '", type_name(key.type), "'");
    if (pipe.seen->find(key)) continue;
    pipe.seen->set(rt.arena(), key, Value::of(true));
    return item;
  }
}

Value make_select(const Call& call, bool by_attribute, bool wanted) {
  Pipe* pipe = make_pipe(call);
  pipe->by_attribute = by_attribute;
  pipe->wanted = wanted;
  return make_generator(call.rt, next_selected, pipe);
}

}  // namespace

Value filter_items(const Call& call) {
  return make_generator(call.rt, next_entry, make_pipe(call));
}

Value filter_map(const Call& call) { return make_generator(call.rt, next_mapped, make_pipe(call)); }
Value filter_select(const Call& call) { return make_select(call, false, true); }
Value filter_reject(const Call& call) { return make_select(call, false, false); }
Value filter_selectattr(const Call& call) { return make_select(call, true, true); }
Value filter_rejectattr(const Call& call) { return make_select(call, true, false); }

Value filter_unique(const Call& call) {
  Pipe* pipe = make_pipe(call);
  if (call.has(1)) pipe->path = attribute_path(call.rt, call[1]);
  pipe->path.ignore_case = !call.has(0) || !truthy(call[0]);
  return make_generator(call.rt, next_unique, pipe);
}

}  // namespace weir::jinja
