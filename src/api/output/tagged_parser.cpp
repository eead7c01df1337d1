#include "api/output/tagged_parser.h"

#include <algorithm>
#include <array>

#include "api/output/call_format.h"
#include "api/output/literal_match.h"
#include "api/output/marker_search.h"
#include "api/output/reasoning_format.h"

namespace weir::api::output {

namespace {

// White space before a marker belongs to the marker, up to this much: it is held back until the
// text after it is known.
constexpr size_t kHeldSpaceMax = 64;

// Where the white space that ends before `end` begins.
size_t space_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && end - begin < kHeldSpaceMax && is_space(text[begin - 1])) --begin;
  return begin;
}

size_t leading_space(std::string_view text) {
  return static_cast<size_t>(std::ranges::find_if_not(text, is_space) - text.begin());
}

}  // namespace

TaggedParser::TaggedParser(const ParserOptions& options) : options_(options), gate_(options) {
  if (options.reasoning) state_ = options.begins_in_reasoning ? State::kReasoning : State::kStart;
  skip_space_ = state_ == State::kReasoning && !options.reasoning_is_content;
}

void TaggedParser::push(std::string_view text, Pieces& out) {
  held_ += text;
  run(false, out);
}

void TaggedParser::finish(Pieces& out) {
  run(true, out);
  if (state_ != State::kCall) return;
  const bool whole = reader_ && reader_->finish(gate_, out);
  end_call(!whole, out);
}

void TaggedParser::run(bool final, Pieces& out) {
  size_t at = 0;
  while (at < held_.size()) {
    const std::string_view text = std::string_view(held_).substr(at);
    std::optional<size_t> taken;
    switch (state_) {
      case State::kStart:
        taken = start(text, final, out);
        break;
      case State::kReasoning:
        taken = reasoning(text, final, out);
        break;
      case State::kHeader:
        taken = header(text, final);
        break;
      case State::kContent:
        taken = content(text, final, out);
        break;
      case State::kCall:
        taken = call(text, out);
        break;
    }
    if (!taken) break;
    at += *taken;
    if (again_.empty()) continue;
    held_.replace(0, at, again_);  // At most once a text: it crosses the text's beginning.
    again_.clear();
    at = 0;
  }
  held_.erase(0, at);
}

// Reasoning is where the output begins, or nowhere.
std::optional<size_t> TaggedParser::start(std::string_view text, bool final, Pieces& out) {
  const size_t space = leading_space(text);
  const std::string_view rest = text.substr(space);
  const std::string_view open = options_.reasoning->open;
  if (space <= kHeldSpaceMax && rest.starts_with(open)) {
    state_ = State::kReasoning;
    skip_space_ = !options_.reasoning_is_content;
    if (options_.reasoning_is_content)
      out.add(PieceKind::kContent, text.substr(0, space + open.size()));
    return space + open.size();
  }
  if (space <= kHeldSpaceMax && open.starts_with(rest) && !final) return std::nullopt;
  state_ = options_.reasoning_is_content ? State::kContent : State::kHeader;
  return 0;
}

// What stands before the answer, of formats that have such: it may all be missing.
std::optional<size_t> TaggedParser::header(std::string_view text, bool final) {
  const ReasoningFormat& format = *options_.reasoning;
  if (!format.after.empty() && text.starts_with(format.after)) return format.after.size();
  if (!final && (format.after.starts_with(text) || format.before_content.starts_with(text)))
    if (text != format.before_content) return std::nullopt;
  state_ = State::kContent;
  return text.starts_with(format.before_content) ? format.before_content.size() : 0;
}

std::optional<size_t> TaggedParser::reasoning(std::string_view text, bool final, Pieces& out) {
  if (skip_space_) {
    const size_t space = leading_space(text);
    if (space == text.size()) return space;
    skip_space_ = false;
    if (space > 0) return space;
  }
  const std::array<std::string_view, 1> close = {options_.reasoning->close};
  const Found found = find_marker(text, close);
  if (options_.reasoning_is_content) {
    const size_t end = final ? text.size() : found.at + found.marker.size();
    if (!found.marker.empty()) state_ = State::kContent;
    const size_t shown = found.marker.empty() ? end : found.at + found.marker.size();
    if (shown == 0) return std::nullopt;
    out.add(PieceKind::kContent, text.substr(0, shown));
    return shown;
  }
  if (!found.marker.empty()) {
    out.add(PieceKind::kReasoning, text.substr(0, space_before(text, found.at)));
    state_ = State::kHeader;
    skip_space_ = true;
    return found.at + found.marker.size();
  }
  const size_t shown = final ? text.size() : space_before(text, found.at);
  if (shown == 0) return std::nullopt;
  out.add(PieceKind::kReasoning, text.substr(0, shown));
  return shown;
}

std::optional<size_t> TaggedParser::content(std::string_view text, bool final, Pieces& out) {
  if (skip_space_) {
    const size_t space = leading_space(text);
    if (space == text.size()) return space;
    skip_space_ = false;
    if (space > 0) return space;
  }
  if (!options_.calls || !gate_.may_begin()) {
    out.add(PieceKind::kContent, text);
    return text.size();
  }
  if (bare_ && !options_.calls->bare.empty()) {
    const std::optional<size_t> begun = bare_call(text, final);
    if (!begun || state_ == State::kCall) return begun;
  }
  bare_ = false;
  const Found found = find_marker(text, options_.calls->begins);
  const size_t before = space_before(text, found.at);
  if (!found.marker.empty()) {
    out.add(PieceKind::kContent, text.substr(0, before));
    state_ = State::kCall;
    marker_ = found.marker;
    const size_t end = found.at + found.marker.size();
    gate_.open(text.substr(before, end - before));
    return end;
  }
  const size_t shown = final ? text.size() : before;
  if (shown == 0) return std::nullopt;
  out.add(PieceKind::kContent, text.substr(0, shown));
  return shown;
}

// A call that nothing announces but its first byte.
std::optional<size_t> TaggedParser::bare_call(std::string_view text, bool final) {
  const size_t space = leading_space(text);
  if (space > kHeldSpaceMax) return 0;
  if (space == text.size()) return final ? std::optional<size_t>(0) : std::nullopt;
  if (options_.calls->bare.find(text[space]) == std::string_view::npos) return 0;
  gate_.open(text.substr(0, space));
  state_ = State::kCall;
  marker_ = {};
  return space;
}

size_t TaggedParser::call(std::string_view text, Pieces& out) {
  using Step = CallReader::Step;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (!gate_.take(byte)) {
      end_call(true, out);
      return i;
    }
    if (!reader_) {
      if (is_space(byte)) continue;
      reader_ = options_.calls->reader(marker_, byte);
    }
    const Step step = reader_ ? reader_->push(byte, gate_, out) : Step::kFail;
    if (step == Step::kMore) continue;
    if (step != Step::kDone) gate_.give_back();
    const std::string again = step == Step::kFail ? begun_marker() : std::string();
    end_call(step == Step::kFail, out);
    if (again.size() <= i) return step == Step::kDone ? i + 1 : i - again.size();
    again_ = again;
    return i;
  }
  return text.size();
}

// A marker may begin within what has failed: "<tool_call><tool" is not over.
std::string TaggedParser::begun_marker() {
  size_t longest = 0;
  for (const std::string_view marker : options_.calls->begins)
    longest = std::max(longest, marker.size());
  return gate_.take_back(longest, [&](std::string_view end) {
    return std::ranges::any_of(options_.calls->begins, [&](std::string_view marker) {
      return marker.size() > end.size() && marker.starts_with(end);
    });
  });
}

void TaggedParser::end_call(bool failed, Pieces& out) {
  gate_.close(out, failed);
  reader_.reset();
  state_ = State::kContent;
  skip_space_ = !failed;
  bare_ = !failed;  // What has failed does not begin again.
}

}  // namespace weir::api::output
