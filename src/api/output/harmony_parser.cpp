#include "api/output/harmony_parser.h"

#include <algorithm>
#include <array>

#include "api/output/literal_match.h"
#include "api/output/marker_search.h"

namespace weir::api::output {

namespace {

using std::string_view;

constexpr string_view kMessage = "<|message|>";
constexpr string_view kChannel = "<|channel|>";
constexpr string_view kStart = "<|start|>";
constexpr string_view kFunctions = "functions.";
constexpr auto kMessageOnly = std::to_array<string_view>({kMessage});
// What ends a message's text: its own end, or the next one's beginning if that was forgotten.
constexpr auto kEnds =
    std::to_array<string_view>({"<|end|>", "<|call|>", "<|return|>", kStart, kChannel});
// What a header may begin with; an output that begins with anything else is a text.
constexpr auto kHeaders = std::to_array<string_view>({kChannel, kStart, kMessage, "to="});
constexpr size_t kHeaderBytesMax = 1024;
constexpr size_t kSpaceMax = 64;  // Before a header.

// The word after a key, up to white space or a marker.
string_view word_behind(string_view header, string_view key) {
  const size_t at = header.find(key);
  if (at == string_view::npos) return {};
  const string_view rest = header.substr(at + key.size());
  return rest.substr(0, rest.find_first_of(" \t\r\n<"));
}

}  // namespace

void HarmonyParser::push(string_view text, Pieces& out) {
  held_ += text;
  run(false, out);
}

void HarmonyParser::finish(Pieces& out) {
  run(true, out);
  if (state_ == State::kCall) fail_call(out);
}

void HarmonyParser::run(bool final, Pieces& out) {
  size_t at = 0;
  while (at < held_.size()) {
    const string_view text = string_view(held_).substr(at);
    const State before = state_;
    size_t taken = 0;
    if (state_ == State::kHeader)
      taken = header(text, final, out);
    else if (state_ == State::kCallEnd)
      taken = call_end(text);
    else if (state_ == State::kCall)
      taken = call(text, out);
    else
      taken = body(text, final, out);
    if (taken == 0 && state_ == before) break;
    at += taken;
  }
  held_.erase(0, at);
}

size_t HarmonyParser::header(string_view text, bool final, Pieces& out) {
  const size_t space = static_cast<size_t>(std::ranges::find_if_not(text, is_space) - text.begin());
  const string_view rest = text.substr(space);
  const bool may_begin =
      space <= kSpaceMax && std::ranges::any_of(kHeaders, [&](string_view begin) {
        return rest.starts_with(begin) || begin.starts_with(rest);
      });
  if (may_begin) {
    const size_t end = find_marker(rest.substr(0, kHeaderBytesMax), kMessageOnly).at;
    if (rest.substr(end).starts_with(kMessage) && end + kMessage.size() <= kHeaderBytesMax) {
      begin_body(text.substr(0, space + end + kMessage.size()), out);
      return space + end + kMessage.size();
    }
    if (!final && rest.size() < kHeaderBytesMax) return 0;
  }
  state_ = State::kBody;
  reasoning_ = false;
  // The marker that would begin it is none: it must not begin a header again.
  const size_t shown = space > kSpaceMax ? space : std::min(text.size(), space + 1);
  show(text.substr(0, shown), out);
  return shown;
}

void HarmonyParser::begin_body(string_view header, Pieces& out) {
  const string_view channel = word_behind(header, kChannel);
  string_view recipient = word_behind(header, "to=");
  reasoning_ = channel == "analysis";
  state_ = State::kBody;
  if (recipient.starts_with(kFunctions)) recipient.remove_prefix(kFunctions.size());
  const bool call = !recipient.empty() && options_.calls && gate_.begin(recipient, {}, out);
  if (!call) {
    if (!recipient.empty() || options_.reasoning_is_content) out.add(PieceKind::kContent, header);
    return;
  }
  if (!options_.calls_bound) gate_.open(header);
  state_ = State::kCall;
  arguments_.reset();
  begun_ = false;
}

void HarmonyParser::show(string_view text, Pieces& out) const {
  const bool reasoning = reasoning_ && !options_.reasoning_is_content;
  out.add(reasoning ? PieceKind::kReasoning : PieceKind::kContent, text);
}

size_t HarmonyParser::body(string_view text, bool final, Pieces& out) {
  const Found found = find_marker(text, kEnds);
  const size_t end = found.marker.empty() && final ? text.size() : found.at;
  show(text.substr(0, end), out);
  if (found.marker.empty()) return end;
  state_ = State::kHeader;
  const bool next = found.marker == kStart || found.marker == kChannel;
  if (options_.reasoning_is_content && !next) out.add(PieceKind::kContent, found.marker);
  return found.at + (next ? 0 : found.marker.size());
}

size_t HarmonyParser::call(string_view text, Pieces& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    const bool held = gate_.take(byte);
    if (!begun_ && is_space(byte) && held) continue;
    begun_ = begun_ || byte == '{';
    const JsonScanner::Step step =
        begun_ && held ? arguments_.push(byte) : JsonScanner::Step::kFail;
    if (step == JsonScanner::Step::kFail) {
      if (held) gate_.give_back();
      fail_call(out);
      return i;
    }
    gate_.arguments({&byte, 1}, out);
    if (step == JsonScanner::Step::kMore) continue;
    if (gate_.end(out))
      state_ = State::kCallEnd;
    else
      fail_call(out);
    return i + 1;
  }
  return text.size();
}

// White space before the marker after a call belongs to the marker.
size_t HarmonyParser::call_end(string_view text) {
  const size_t space = static_cast<size_t>(std::ranges::find_if_not(text, is_space) - text.begin());
  if (space < text.size()) {
    state_ = State::kBody;
    reasoning_ = false;
  }
  return space;
}

void HarmonyParser::fail_call(Pieces& out) {
  gate_.close(out, true);
  state_ = State::kBody;
  reasoning_ = false;
}

}  // namespace weir::api::output
