// Runtime: what every operation of one rendering needs: memory, the budget of work, the error.
//
// Failing: an operation that cannot go on calls fail(), which keeps the first message, and returns
// the error value (or false, nullptr); its caller returns at once. Nothing is thrown.
//
// Threads: owned by the rendering's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/concat.h"
#include "jinja/jinja.h"
#include "jinja/value.h"

namespace weir::jinja {

// Jinja's sandbox's own limit on what range() gives.
constexpr int64_t kRangeMax = 100'000;
// Generators that draw on one another, where Python gives up at about 300.
constexpr int kGeneratorDepthMax = 200;
// Lists and dictionaries inside one another, where an operation follows them to the ground.
constexpr int kNestingMax = 400;

class Runtime {
 public:
  Runtime(const Limits& limits, int64_t now) : limits_(limits), now_(now), steps_(limits.steps) {}

  Arena& arena() { return arena_; }
  const Limits& limits() const { return limits_; }
  int64_t now() const { return now_; }

  // Keeps the first message; returns the error value.
  template <class... Parts>
  Value fail(const Parts&... parts) {
    return fail_with(weir::concat({parts...}));
  }
  // Fails as raise_exception does: the message is the template's, shown without its line.
  Value raise(std::string_view message) {
    raised_ = !failed_;
    return fail(message);
  }
  bool failed() const { return failed_; }
  bool raised() const { return raised_; }
  const std::string& message() const { return message_; }

  // Pays for work. False, with the error set, when the budget or the memory is spent.
  bool charge(size_t steps = 1) {
    steps_ -= static_cast<int64_t>(steps);
    return steps_ >= 0 && arena_.used() <= limits_.memory_bytes ? true : exhausted();
  }
  // Pays for going over that many bytes of text.
  bool charge_bytes(size_t bytes) { return charge(1 + (bytes >> 5)); }
  // A generator asks another one. False, with the error set, where that goes too deep; each call
  // needs its leave_generator(), then too.
  bool enter_generator() {
    if (++generator_depth_ <= kGeneratorDepthMax) return true;
    fail("maximum recursion depth exceeded");
    return false;
  }
  void leave_generator() { --generator_depth_; }
  // To be asked before allocating what untrusted input chose the size of. Pays for filling it, too.
  bool reserve(size_t bytes);

  Value string(std::string_view text, bool markup = false) {
    return borrow(arena_.copy(text), markup);
  }
  // Text that outlives the rendering's values: part of another string, or a literal.
  Value borrow(std::string_view text, bool markup = false) {
    return Value::of(arena_.make<Str>(text.data(), text.size(), kUncounted, markup));
  }
  Value concat(std::string_view a, std::string_view b, bool markup);
  Value list(std::span<const Value> items) { return sequence(Type::kList, items); }
  Value tuple(std::span<const Value> items) { return sequence(Type::kTuple, items); }
  Value tuple(const Value& a, const Value& b) {
    const Value items[] = {a, b};
    return tuple(items);
  }
  Value undefined(const Undefined& why) {
    return Value::of(Type::kUndefined, arena_.make<Undefined>(why));
  }
  Value undefined(std::string_view hint) {
    Undefined why;
    why.hint = hint;
    return undefined(why);
  }
  // Fails with the reason why it is undefined.
  Value fail_undefined(const Value& value);

 private:
  Value fail_with(std::string message);
  Value sequence(Type type, std::span<const Value> items);
  bool exhausted();

  Limits limits_;
  int64_t now_;
  int64_t steps_;
  int generator_depth_ = 0;
  Arena arena_;
  bool failed_ = false;
  bool raised_ = false;
  std::string message_;
  // The last concatenation's spare room: text built up piece by piece is not copied each time.
  char* spare_ = nullptr;
  size_t spare_bytes_ = 0;
};

// Text being built, within the memory limit. Once full it ignores what is added, and fails.
class TextBuilder {
 public:
  explicit TextBuilder(Runtime& rt) : rt_(rt) {}

  bool add(std::string_view text);
  bool add(char c) { return add(std::string_view(&c, 1)); }
  // `times` copies.
  bool fill(std::string_view text, size_t times);
  std::string_view view() const { return text_; }
  Value take(bool markup = false);

 private:
  Runtime& rt_;
  std::string text_;
};

// Values being collected, within the memory limit.
class ListBuilder {
 public:
  explicit ListBuilder(Runtime& rt) : rt_(rt) {}

  bool add(const Value& value);
  std::vector<Value>& items() { return items_; }
  Value take(Type type = Type::kList);

 private:
  Runtime& rt_;
  std::vector<Value> items_;
};

}  // namespace weir::jinja
