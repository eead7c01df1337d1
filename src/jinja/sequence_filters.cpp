// Filters on sequences and mappings that answer at once.
#include <algorithm>

#include "jinja/attribute_path.h"
#include "jinja/builtin.h"
#include "jinja/iterator.h"
#include "jinja/lazy_filters.h"
#include "jinja/object.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

namespace {

bool flag(const Call& call, size_t i) { return call.has(i) && truthy(call[i]); }

Value make_list(Runtime& rt, const std::vector<Value>& items) {
  return rt.reserve(items.size() * sizeof(Value)) ? rt.list(items) : Value::error();
}

// A list that looks like the generator Python's filter returns: it can be gone through once.
Value once(Runtime& rt, const std::vector<Value>& items) {
  const Value list = make_list(rt, items);
  return list.is_error() ? list : Value::of(Type::kIterator, iterate(rt, list));
}

Value default_value(const Call& call) {
  const bool absent = call.self.is(Type::kUndefined) || (flag(call, 1) && !truthy(call.self));
  if (!absent) return call.self;
  return call.has(0) ? call[0] : call.rt.borrow("");
}

Value length(const Call& call) { return length_of(call.rt, call.self); }

Value list(const Call& call) {
  std::vector<Value> items;
  if (!collect(call.rt, call.self, items)) return Value::error();
  return make_list(call.rt, items);
}

Value first(const Call& call) {
  Iterator* items = iterate(call.rt, call.self);
  if (!items) return Value::error();
  const Value item = items->next(call.rt);
  return item.is_missing() ? call.rt.undefined("No first item, sequence was empty.") : item;
}

Value last(const Call& call) {
  if (call.self.is(Type::kUndefined)) return first(call);
  Iterator* items = iterate_reversed(call.rt, call.self);
  if (!items) return call.rt.fail("'", type_name(call.self.type), "' object is not reversible");
  const Value item = items->next(call.rt);
  return item.is_missing() ? call.rt.undefined("No last item, sequence was empty.") : item;
}

Value reverse(const Call& call) {
  if (call.self.is(Type::kStr))
    return get_slice(call.rt, call.self, Value::none(), Value::none(), Value::of(int64_t{-1}));
  if (Iterator* items = iterate_reversed(call.rt, call.self))
    return Value::of(Type::kIterator, items);
  std::vector<Value> items;
  if (call.rt.failed() || !collect(call.rt, call.self, items)) return Value::error();
  std::reverse(items.begin(), items.end());
  return make_list(call.rt, items);
}

Value join(const Call& call) {
  const AttributePath path = call.has(1) ? attribute_path(call.rt, call[1]) : AttributePath{};
  const Value separator = call.has(0) ? to_str(call.rt, call[0]) : call.rt.borrow("");
  if (separator.is_error()) return separator;
  Iterator* items = iterate(call.rt, call.self);
  if (!items) return Value::error();
  TextBuilder out(call.rt);
  for (bool is_first = true;; is_first = false) {
    Value item = items->next(call.rt);
    if (item.is_missing()) break;
    if (!item.is_error()) item = path.get(call.rt, item);
    if (item.is_error() || (!is_first && !out.add(separator.text())) ||
        !append_str(call.rt, out, item))
      return Value::error();
  }
  return out.take();
}

struct Keyed {
  Value key;
  Value item;
};

// Sorts by key, stably; false with the error set where two keys have no order.
bool sort_keyed(Runtime& rt, std::vector<Keyed>& items, bool reverse) {
  bool fine = true;
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    bool result = false;
    fine = fine && (reverse ? less(rt, b.key, a.key, result) : less(rt, a.key, b.key, result));
    return fine && result;
  });
  return fine;
}

Value items_of(Runtime& rt, const std::vector<Keyed>& keyed) {
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (const Keyed& entry : keyed) items.push_back(entry.item);
  return make_list(rt, items);
}

Value sort(const Call& call) {
  std::vector<AttributePath> paths =
      attribute_paths(call.rt, call.has(2) ? call[2] : Value::missing());
  std::vector<Value> items;
  if (!collect(call.rt, call.self, items)) return Value::error();
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) {
    std::vector<Value> key;
    for (AttributePath& path : paths) {
      path.ignore_case = !flag(call, 1);
      key.push_back(path.get(call.rt, item));
      if (key.back().is_error()) return Value::error();
    }
    keyed.push_back({make_list(call.rt, key), item});
    if (keyed.back().key.is_error()) return Value::error();
  }
  if (!sort_keyed(call.rt, keyed, flag(call, 0))) return Value::error();
  return items_of(call.rt, keyed);
}

Value dictsort(const Call& call) {
  if (call.self.is(Type::kUndefined)) return call.rt.fail_undefined(call.self);
  if (!call.self.is(Type::kDict))
    return call.rt.fail("'", type_name(call.self.type), "' object has no attribute 'items'");
  bool by_value = false;
  if (call.has(1)) {
    if (!call[1].is(Type::kStr) || (call[1].text() != "key" && call[1].text() != "value"))
      return call.rt.fail("You can only sort by either \"key\" or \"value\"");
    by_value = call[1].text() == "value";
  }
  AttributePath whole;
  whole.ignore_case = !flag(call, 0);
  std::vector<Keyed> keyed;
  for (const Entry& entry : call.self.dict->entries()) {
    if (!call.rt.charge()) return Value::error();
    const Value key = whole.get(call.rt, by_value ? entry.value : entry.key);
    if (key.is_error()) return key;
    keyed.push_back({key, call.rt.tuple(entry.key, entry.value)});
  }
  if (!sort_keyed(call.rt, keyed, flag(call, 2))) return Value::error();
  return items_of(call.rt, keyed);
}

Value groupby(const Call& call) {
  AttributePath path = attribute_path(call.rt, call[0]);
  if (call.has(1)) path.otherwise = call[1];
  AttributePath key_path = path;
  key_path.ignore_case = !flag(call, 2);
  std::vector<Value> items;
  if (!collect(call.rt, call.self, items)) return Value::error();
  std::vector<Keyed> keyed;
  for (const Value& item : items) {
    keyed.push_back({key_path.get(call.rt, item), item});
    if (keyed.back().key.is_error()) return Value::error();
  }
  if (!sort_keyed(call.rt, keyed, false)) return Value::error();
  std::vector<Value> groups;
  for (size_t start = 0; start < keyed.size();) {
    size_t end = start + 1;
    while (end < keyed.size() && equal(call.rt, keyed[start].key, keyed[end].key)) ++end;
    const Value grouper = path.get(call.rt, keyed[start].item);
    const Value members = items_of(call.rt, {keyed.begin() + static_cast<std::ptrdiff_t>(start),
                                             keyed.begin() + static_cast<std::ptrdiff_t>(end)});
    if (grouper.is_error() || members.is_error()) return Value::error();
    groups.push_back(call.rt.tuple(grouper, members));
    groups.back().list->is_group = true;
    start = end;
  }
  return make_list(call.rt, groups);
}

template <Comparison better>
Value extreme(const Call& call) {
  AttributePath path = call.has(1) ? attribute_path(call.rt, call[1]) : AttributePath{};
  path.ignore_case = !flag(call, 0);
  Iterator* items = iterate(call.rt, call.self);
  if (!items) return Value::error();
  Value best = Value::missing(), best_key;
  for (;;) {
    const Value item = items->next(call.rt);
    if (item.is_error()) return item;
    if (item.is_missing()) break;
    const Value key = path.get(call.rt, item);
    if (key.is_error()) return key;
    if (!best.is_missing()) {
      const Value verdict = compare(call.rt, better, key, best_key);
      if (verdict.is_error()) return verdict;
      if (!verdict.boolean) continue;
    }
    best = item;
    best_key = key;
  }
  return best.is_missing() ? call.rt.undefined("No aggregated item, sequence was empty.") : best;
}

Value sum(const Call& call) {
  const AttributePath path = call.has(0) ? attribute_path(call.rt, call[0]) : AttributePath{};
  Value total = call.has(1) ? call[1] : Value::of(int64_t{0});
  if (total.is(Type::kStr))
    return call.rt.fail("sum() can't sum strings [use ''.join(seq) instead]");
  Iterator* items = iterate(call.rt, call.self);
  if (!items) return Value::error();
  for (;;) {
    Value item = items->next(call.rt);
    if (item.is_missing()) return total;
    if (!item.is_error()) item = path.get(call.rt, item);
    if (item.is_error()) return item;
    total = add(call.rt, total, item);
    if (total.is_error()) return total;
  }
}

Value attribute(const Call& call) {
  if (!call[0].is(Type::kStr)) return call.rt.fail("attribute name must be string");
  return get_own_attribute(call.rt, call.self, *call[0].str);
}

Value batch(const Call& call) {
  int64_t count = 0;
  std::vector<Value> items;
  if (!to_int(call, call[0], count) || !collect(call.rt, call.self, items)) return Value::error();
  std::vector<Value> rows, row;
  for (const Value& item : items) {
    if (static_cast<int64_t>(row.size()) == count) {
      rows.push_back(make_list(call.rt, row));
      if (rows.back().is_error()) return Value::error();
      row.clear();
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    const bool fill = call.has(1) && !call[1].is(Type::kNone);
    if (fill && count > static_cast<int64_t>(row.size())) {
      if (count > kRangeMax)
        return call.rt.fail("batch is larger than ", std::to_string(kRangeMax));
      row.resize(static_cast<size_t>(count), call[1]);
    }
    rows.push_back(make_list(call.rt, row));
    if (rows.back().is_error()) return Value::error();
  }
  return once(call.rt, rows);
}

Value slice(const Call& call) {
  int64_t count = 0;
  std::vector<Value> items;
  if (!to_int(call, call[0], count) || !collect(call.rt, call.self, items)) return Value::error();
  if (count == 0) return call.rt.fail("integer division or modulo by zero");
  if (count > kRangeMax) return call.rt.fail("more than ", std::to_string(kRangeMax), " slices");
  const auto length = static_cast<int64_t>(items.size());
  std::vector<Value> slices;
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t each = length / count, with_extra = length % count;
    const int64_t start = offset + i * each;
    if (i < with_extra) ++offset;
    const int64_t end = offset + (i + 1) * each;
    std::vector<Value> part(items.begin() + start, items.begin() + end);
    if (call.has(1) && !call[1].is(Type::kNone) && i >= with_extra) part.push_back(call[1]);
    slices.push_back(make_list(call.rt, part));
    if (slices.back().is_error()) return Value::error();
  }
  return once(call.rt, slices);
}

constexpr Builtin kFilters[] = {
    {"attr", "name", attribute},
    {"batch", "linecount fill_with?", batch},
    {"count", "/", length},
    {"d", "default_value? boolean?", default_value},
    {"default", "default_value? boolean?", default_value},
    {"dictsort", "case_sensitive? by? reverse?", dictsort},
    {"first", "", first},
    {"groupby", "attribute default? case_sensitive?", groupby},
    {"items", "", filter_items},
    {"join", "d? attribute?", join},
    {"last", "", last},
    {"length", "/", length},
    {"list", "", list},
    {"map", "*", filter_map},
    {"max", "case_sensitive? attribute?", extreme<Comparison::kGreater>},
    {"min", "case_sensitive? attribute?", extreme<Comparison::kLess>},
    {"reject", "*", filter_reject},
    {"rejectattr", "*", filter_rejectattr},
    {"reverse", "", reverse},
    {"select", "*", filter_select},
    {"selectattr", "*", filter_selectattr},
    {"slice", "slices fill_with?", slice},
    {"sort", "reverse? case_sensitive? attribute?", sort},
    {"sum", "attribute? start?", sum},
    {"unique", "case_sensitive? attribute?", filter_unique},
};

}  // namespace

std::span<const Builtin> sequence_filters() { return kFilters; }

}  // namespace weir::jinja
