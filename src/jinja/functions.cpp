// Global functions, and the methods of everything but str.
#include <algorithm>
#include <cstring>
#include <ctime>

#include "jinja/builtin.h"
#include "jinja/iterator.h"
#include "jinja/object.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

namespace {

Value range(const Call& call) {
  const auto& given = call.raw.positional;
  if (!call.raw.keywords.empty()) return call.rt.fail("range() takes no keyword arguments");
  if (given.empty() || given.size() > 3)
    return call.rt.fail("range expected 1 to 3 arguments, got ", std::to_string(given.size()));
  Range range;
  if (!to_int(call, given[given.size() > 1 ? 1 : 0], range.stop)) return Value::error();
  if (given.size() > 1 && !to_int(call, given[0], range.start)) return Value::error();
  if (given.size() > 2 && !to_int(call, given[2], range.step)) return Value::error();
  if (range.step == 0) return call.rt.fail("range() arg 3 must not be zero");
  if (range.size() > kRangeMax || range.size() < 0)
    return call.rt.fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (",
                        std::to_string(kRangeMax), ").");
  return Value::of(Type::kRange, call.rt.arena().make<Range>(range));
}

bool set_entry(Runtime& rt, Dict& dict, const Value& key, const Value& value) {
  if (!hashable(rt, key)) {
    rt.fail("unhashable type: '", type_name(key.type), "'");
    return false;
  }
  dict.set(rt.arena(), key, value);
  return rt.charge();
}

bool add_pairs(Runtime& rt, Dict& dict, const Value& pairs) {
  Iterator* items = iterate(rt, pairs);
  if (!items) return false;
  for (;;) {
    const Value pair = items->next(rt);
    if (pair.is_error()) return false;
    if (pair.is_missing()) return true;
    std::vector<Value> parts;
    if (!collect(rt, pair, parts)) return false;
    if (parts.size() != 2) {
      rt.fail("dictionary update sequence element has length ", std::to_string(parts.size()),
              "; 2 is required");
      return false;
    }
    if (!set_entry(rt, dict, parts[0], parts[1])) return false;
  }
}

// dict(mapping or pairs, **keywords); null with the error set.
Dict* make_dict(const Call& call) {
  Runtime& rt = call.rt;
  Dict* dict = rt.arena().make<Dict>();
  const auto& given = call.raw.positional;
  if (given.size() > 1) {
    rt.fail("dict expected at most 1 argument, got ", std::to_string(given.size()));
    return nullptr;
  }
  if (!given.empty() && given[0].is(Type::kUndefined)) {
    rt.fail_undefined(given[0]);
    return nullptr;
  }
  if (!given.empty() && given[0].is(Type::kDict)) {
    for (const Entry& entry : given[0].dict->entries())
      if (!set_entry(rt, *dict, entry.key, entry.value)) return nullptr;
  } else if (!given.empty() && !add_pairs(rt, *dict, given[0])) {
    return nullptr;
  }
  for (const Keyword& keyword : call.raw.keywords)
    if (!set_entry(rt, *dict, rt.borrow(keyword.name), keyword.value)) return nullptr;
  return dict;
}

Value dict(const Call& call) {
  Dict* made = make_dict(call);
  return made ? Value::of(Type::kDict, made) : Value::error();
}

Value namespace_of(const Call& call) {
  Dict* made = make_dict(call);
  return made ? Value::of(Type::kNamespace, call.rt.arena().make<Namespace>(made)) : Value::error();
}

Value cycler(const Call& call) {
  if (!call.raw.keywords.empty()) return call.rt.fail("cycler() takes no keyword arguments");
  if (call.raw.positional.empty()) return call.rt.fail("at least one item has to be provided");
  const Value items = call.rt.tuple(call.raw.positional);
  return Value::of(Type::kCycler, call.rt.arena().make<Cycler>(items.list->span(), size_t{0}));
}

Value joiner(const Call& call) {
  const Value separator = call.has(0) ? call[0] : call.rt.borrow(", ");
  return Value::of(Type::kJoiner, call.rt.arena().make<Joiner>(separator, false));
}

Value raise_exception(const Call& call) {
  const Value message = to_str(call.rt, call[0]);
  return message.is_error() ? message : call.rt.raise(std::string(message.text()));
}

Value strftime_now(const Call& call) {
  if (!call[0].is(Type::kStr))
    return call.rt.fail("strftime() argument 1 must be str, not ", type_name(call[0].type));
  constexpr size_t kFormatMax = 1024;
  constexpr size_t kSteps = 4'000;  // Of the longest format.
  if (!call.rt.charge(kSteps)) return Value::error();
  if (call[0].str->bytes > kFormatMax) return call.rt.fail("strftime_now's format is too long");
  // Python's own: microseconds. No zone, as datetime.now() has none. The rest is the C library's;
  // a first character tells an empty result from one that does not fit.
  std::string format = " ";
  const std::string_view given = call[0].text();
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '%' || i + 1 == given.size()) {
      format += given[i];
      continue;
    }
    const char kind = given[++i];
    if (kind == 'f') {
      format += "000000";
    } else if (kind != 'z' && kind != 'Z') {
      format += '%';
      format += kind;
    }
  }
  const std::time_t now = static_cast<std::time_t>(call.rt.now());
  std::tm parts{};
  if (!gmtime_r(&now, &parts)) return call.rt.fail("the time is out of range");
  char text[4 * kFormatMax];
  const size_t bytes = std::strftime(text, sizeof text, format.c_str(), &parts);
  if (bytes == 0) return call.rt.fail("strftime_now's result is too long");
  return call.rt.string({text + 1, bytes - 1});
}

constexpr Builtin kFunctions[] = {
    {"cycler", "*", cycler},
    {"dict", "*", dict},
    {"joiner", "sep?", joiner},
    {"namespace", "*", namespace_of},
    {"raise_exception", "message", raise_exception},
    {"range", "*", range},
    {"strftime_now", "format", strftime_now},
};

// ---- dict --------------------------------------------------------------------------------------

Value dict_get(const Call& call) {
  if (!hashable(call.rt, call[0]))
    return call.rt.fail("unhashable type: '", type_name(call[0].type), "'");
  if (const Value* found = call.self.dict->find(call[0])) return *found;
  return call.has(1) ? call[1] : Value::none();
}

template <DictView::Kind kind>
Value dict_view(const Call& call) {
  return Value::of(Type::kDictView, call.rt.arena().make<DictView>(call.self.dict, kind));
}

Value dict_copy(const Call& call) {
  Dict* copy = call.rt.arena().make<Dict>();
  for (const Entry& entry : call.self.dict->entries())
    if (!set_entry(call.rt, *copy, entry.key, entry.value)) return Value::error();
  return Value::of(Type::kDict, copy);
}

constexpr Builtin kDictMethods[] = {
    {"copy", "", dict_copy},
    {"get", "/ key default?", dict_get},
    {"items", "", dict_view<DictView::Kind::kItems>},
    {"keys", "", dict_view<DictView::Kind::kKeys>},
    {"values", "", dict_view<DictView::Kind::kValues>},
};

// ---- list, tuple, range ------------------------------------------------------------------------

Value count_item(const Call& call) {
  std::vector<Value> items;
  if (!collect(call.rt, call.self, items)) return Value::error();
  int64_t times = 0;
  for (const Value& item : items) times += equal(call.rt, item, call[0]) ? 1 : 0;
  return call.rt.failed() ? Value::error() : Value::of(times);
}

Value index_of_item(const Call& call) {
  std::vector<Value> items;
  if (!collect(call.rt, call.self, items)) return Value::error();
  const auto size = static_cast<int64_t>(items.size());
  int64_t start = 0, stop = size;
  if (call.has(1) && !to_int(call, call[1], start)) return Value::error();
  if (call.has(2) && !to_int(call, call[2], stop)) return Value::error();
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (stop < 0) stop = std::max<int64_t>(stop + size, 0);
  for (int64_t i = start; i < std::min(stop, size); ++i) {
    if (equal(call.rt, items[static_cast<size_t>(i)], call[0])) return Value::of(i);
    if (call.rt.failed()) return Value::error();
  }
  return call.rt.fail(short_repr(call.rt, call[0]), " is not in the ", type_name(call.self.type));
}

Value list_copy(const Call& call) {
  if (!call.rt.reserve(call.self.list->size * sizeof(Value))) return Value::error();
  return call.rt.list(call.self.list->span());
}

// Jinja 3.1's sandbox forbids append and its like, but not pop and clear.
Value list_pop(const Call& call) {
  List& list = *call.self.list;
  int64_t index = -1;
  if (call.has(0) && !to_int(call, call[0], index)) return Value::error();
  const auto size = static_cast<int64_t>(list.size);
  if (size == 0) return call.rt.fail("pop from empty list");
  if (index < 0) index += size;
  if (index < 0 || index >= size) return call.rt.fail("pop index out of range");
  Value* at = list.items + index;
  const Value item = *at;
  if (!call.rt.charge_bytes((list.size - static_cast<size_t>(index)) * sizeof(Value)))
    return Value::error();
  std::copy(at + 1, list.items + list.size, at);
  --list.size;
  return item;
}

Value list_clear(const Call& call) {
  call.self.list->size = 0;
  return Value::none();
}

constexpr Builtin kListMethods[] = {
    {"clear", "", list_clear},        {"copy", "", list_copy},
    {"count", "/ value", count_item}, {"index", "/ value start? stop?", index_of_item},
    {"pop", "/ index?", list_pop},
};

constexpr Builtin kTupleMethods[] = {
    {"count", "/ value", count_item},
    {"index", "/ value start? stop?", index_of_item},
};

// ---- loop, cycler ------------------------------------------------------------------------------

Value loop_cycle(const Call& call) {
  const auto& items = call.raw.positional;
  if (items.empty()) return call.rt.fail("no items for cycling given");
  return items[static_cast<size_t>(call.self.loop->index0) % items.size()];
}

Value loop_changed(const Call& call) {
  Loop& loop = *call.self.loop;
  const Value given = call.rt.tuple(call.raw.positional);
  const bool same = !loop.changed.is_missing() && equal(call.rt, loop.changed, given);
  if (call.rt.failed()) return Value::error();
  loop.changed = given;
  return Value::of(!same);
}

constexpr Builtin kLoopMethods[] = {
    {"changed", "*", loop_changed},
    {"cycle", "*", loop_cycle},
};

Value cycler_next(const Call& call) {
  Cycler& cycler = *call.self.cycler;
  const Value item = cycler.items[cycler.next];
  cycler.next = (cycler.next + 1) % cycler.items.size();
  return item;
}

Value cycler_reset(const Call& call) {
  call.self.cycler->next = 0;
  return Value::none();
}

constexpr Builtin kCyclerMethods[] = {
    {"next", "", cycler_next},
    {"reset", "", cycler_reset},
};

}  // namespace

std::span<const Builtin> functions() { return kFunctions; }
std::span<const Builtin> dict_methods() { return kDictMethods; }
std::span<const Builtin> list_methods() { return kListMethods; }
std::span<const Builtin> tuple_methods() { return kTupleMethods; }
std::span<const Builtin> loop_methods() { return kLoopMethods; }
std::span<const Builtin> cycler_methods() { return kCyclerMethods; }

}  // namespace weir::jinja
