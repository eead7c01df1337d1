#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/utf8.h"
#include "text/json_fields.h"
#include "text/oniguruma.h"

namespace weir::text {

namespace {

// Longest known pre-tokenizer pattern: 2 KB.
constexpr size_t kPatternBytesMax = 32 * 1024;

// Backtracking steps per start of a match, some nanoseconds each. Real patterns take up to
// 50 for each character of the run that they try (measured: Kimi K2's on capitals); an expression
// of exponential cost ends here within a millisecond on a short text.
constexpr size_t kMatchLimit = 10'000;
constexpr size_t kMatchLimitPerByte = 64;
// A search sees so much of the text first, four times as much whenever it came to the end of that.
constexpr size_t kWindowMin = 64;
// What all searches of a text may see together. The steps above are counted anew at each start, and
// steps that run along many characters count once: without this, "a(?=a*b)|a" is quadratic. Real
// patterns see little more than what they match: at worst, where each match is one byte, a first
// window a byte. One that looks ahead to the end of a run of digits sees half the square of its
// length by threes, which suits runs of some 4,000.
constexpr size_t kSeenMin = size_t{4} << 20;
constexpr size_t kSeenPerByte = 4 * kWindowMin;
// Groups that repeat (class intersections become some) take tens of bytes of stack per character.
constexpr size_t kJitStackMin = 32 * 1024, kJitStackMax = 8 * 1024 * 1024;
constexpr uint32_t kHeapLimitKib = 64 * 1024;

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct JitStackDeleter {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
struct MatchContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// What a thread needs to run any expression; PCRE2 would allocate it for each match.
struct MatchState {
  std::unique_ptr<pcre2_match_data, MatchDataDeleter> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, MatchContextDeleter> context{
      pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, JitStackDeleter> stack{
      pcre2_jit_stack_create(kJitStackMin, kJitStackMax, nullptr)};

  MatchState() {
    CHECK(data && context);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    // No stack: JIT uses 32 KB of the thread's own.
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
  void set_limit(size_t subject_bytes) {
    const size_t limit = kMatchLimit + subject_bytes * kMatchLimitPerByte;
    pcre2_set_match_limit(context.get(),
                          static_cast<uint32_t>(std::min<size_t>(limit, UINT32_MAX)));
  }
};

thread_local MatchState match_state;

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[160];
  if (pcre2_get_error_message(code, text, sizeof text) < 0) return "error " + std::to_string(code);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Pattern::Compiled {
  pcre2_code* code = nullptr;
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { pcre2_code_free(code); }
};

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Result<Pattern> Pattern::regex(std::string_view oniguruma) {
  if (oniguruma.size() > kPatternBytesMax)
    return fail(ErrorCode::kConfig, "expected a regular expression of at most " +
                                        std::to_string(kPatternBytesMax) + " bytes, found " +
                                        std::to_string(oniguruma.size()));
  WEIR_ASSIGN(const std::string translated, translate_oniguruma(oniguruma));
  Pattern pattern;
  pattern.compiled_ = std::make_unique<Compiled>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pattern.compiled_->code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK,
      &error, &offset, context);
  pcre2_compile_context_free(context);
  if (pattern.compiled_->code == nullptr)
    return fail(ErrorCode::kConfig, "regular expression " + std::string(oniguruma.substr(0, 200)) +
                                        ": " + pcre2_message(error));
  // Without JIT (MemoryDenyWriteExecute) matching is some five times slower, not different.
  pcre2_jit_compile(pattern.compiled_->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
  return pattern;
}

Result<Pattern> Pattern::parse(std::optional<JsonValue> json, const std::string& where) {
  JsonObject object;
  if (!json || json->get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig, where + ".pattern: expected an object with String or Regex");
  JsonFields fields(*json, where + ".pattern");
  if (fields.value("String")) {
    const std::string_view text = fields.text("String");
    WEIR_TRY(fields.status());
    return literal(std::string(text));
  }
  const std::string_view text = fields.text("Regex");
  WEIR_TRY(fields.status());
  return regex(text);
}

Pattern::Outcome Pattern::next_literal(std::string_view subject, size_t from, Match& match) const {
  // glibc's memmem is linear; string_view::find is quadratic for hostile literals.
  const void* found =
      memmem(subject.data() + from, subject.size() - from, literal_.data(), literal_.size());
  if (found == nullptr) return Outcome::kNone;
  match.begin = static_cast<size_t>(static_cast<const char*>(found) - subject.data());
  match.end = match.begin + literal_.size();
  return Outcome::kFound;
}

// Matches within growing windows, so that what a search looks at can be paid for: a hard partial
// match is one that came to the end of its window, and so does not count.
Pattern::Outcome Pattern::next(std::string_view subject, size_t from, size_t& budget,
                               Match& match) const {
  if (!compiled_) return next_literal(subject, from, match);
  for (size_t window = kWindowMin;; window *= 4) {
    size_t end = std::min(subject.size() - from, window) + from;
    while (end < subject.size() && (static_cast<uint8_t>(subject[end]) & 0xc0) == 0x80) ++end;
    if (end - from > budget) return Outcome::kTooCostly;
    budget -= end - from;
    const bool whole = end == subject.size();
    const auto run = [&](uint32_t options) {
      return pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(subject.data()), end, from,
                         PCRE2_NO_UTF_CHECK | (whole ? 0 : PCRE2_PARTIAL_HARD) | options,
                         match_state.data.get(), match_state.context.get());
    };
    match_state.set_limit(end - from);
    int code = run(0);
    // The interpreter keeps its backtracking on the heap.
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) code = run(PCRE2_NO_JIT);
    if (!whole && (code == PCRE2_ERROR_PARTIAL || code == PCRE2_ERROR_NOMATCH)) continue;
    if (code == PCRE2_ERROR_NOMATCH) return Outcome::kNone;
    if (code < 0) return Outcome::kTooCostly;
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match_state.data.get());
    match = {bounds[0], bounds[1]};
    if (!whole && match.end >= end) continue;  // An empty match at the end looked at no character.
    // \K in a lookaround may move a start about.
    return match.begin >= from && match.end >= match.begin ? Outcome::kFound : Outcome::kTooCostly;
  }
}

bool Pattern::find_matches(std::string_view subject, std::vector<Match>& matches) const {
  matches.clear();
  size_t budget = kSeenMin + subject.size() * kSeenPerByte;
  std::optional<size_t> last_end;
  size_t from = 0;
  while (from <= subject.size()) {
    Match match;
    const Outcome outcome = next(subject, from, budget, match);
    if (outcome != Outcome::kFound) return outcome == Outcome::kNone;
    if (match.begin == match.end && match.end == last_end) {
      if (from == subject.size()) break;
      decode_utf8(subject, from);
      continue;
    }
    matches.push_back(match);
    from = match.end;
    last_end = match.end;
  }
  return true;
}

}  // namespace weir::text
