// Any text as the output of a model, in every format of calls and of reasoning: however it is cut,
// the pieces are the same, calls are whole and their arguments JSON, and nothing is lost.
//
// Bytes from 0x80 on stand for what outputs are made of, so that markers are met often.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/output/call_format.h"
#include "api/output/output_parser.h"
#include "api/output/reasoning_format.h"
#include "base/check.h"
#include "base/json.h"

namespace {

using namespace weir::api::output;

struct PieceCopy {
  PieceKind kind;
  std::string text, id;
  bool operator==(const PieceCopy&) const = default;
};

constexpr auto kWords = std::to_array<std::string_view>({
    "{\"name\": \"f\", \"arguments\": {}}",
    "{\"name\": \"f\", \"parameters\": {\"a\": 1}}",
    "f",
    "g",
    "{\"a\": [1, true]}",
    "{}",
    "{\"name\": \"",
    "\", \"arguments\": ",
    "\"",
    "\\",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ";",
    ":",
    "(",
    ")",
    "=",
    "'",
    "\n",
    " ",
    "<",
    ">",
    "call:",
    "functions.f:0",
    "```json\n",
    "\n```",
    "a",
    "é",
    "</",
    "<parameter=a>",
    "</parameter>",
    "<parameter name=\"a\">",
    "</invoke>",
    "<invoke name=\"f\">",
    "<function=f>",
    "</function>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<|\"|>",
    "<escape>",
    "to=functions.f",
    "<|call|>",
    "<|start|>",
    "assistant",
});

// What byte 0x80 + i stands for: words of all formats, then markers of this one.
std::vector<std::string_view> vocabulary(const CallFormat* calls,
                                         const ReasoningFormat* reasoning) {
  std::vector<std::string_view> words(kWords.begin(), kWords.end());
  const auto add = [&](std::string_view text) {
    if (!text.empty()) words.push_back(text);
  };
  if (calls) {
    for (const std::string_view marker : calls->begins) add(marker);
    for (const std::string_view part :
         {calls->grammar.section_begin, calls->grammar.call_begin, calls->grammar.after_name,
          calls->grammar.call_end, calls->grammar.section_end, calls->markers})
      add(part);
  }
  if (reasoning)
    for (const std::string_view part :
         {reasoning->open, reasoning->close, reasoning->before_content, reasoning->after})
      add(part);
  return words;
}

std::vector<PieceCopy> parse(const ParserOptions& options, std::string_view text, uint32_t seed) {
  const auto parser = make_parser(options);
  std::vector<PieceCopy> all;
  Pieces pieces;
  const auto take = [&] {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece piece = pieces[i];
      const bool joins = !all.empty() && all.back().kind == piece.kind &&
                         piece.kind != PieceKind::kCallBegin && piece.kind != PieceKind::kCallEnd;
      if (joins)
        all.back().text += piece.text;
      else
        all.push_back({piece.kind, std::string(piece.text), std::string(piece.id)});
    }
    pieces.clear();
  };
  while (!text.empty()) {
    seed = seed * 1664525 + 1013904223;
    const size_t bytes = seed == 0 ? text.size() : std::min<size_t>(text.size(), 1 + (seed >> 28));
    parser->push(text.substr(0, bytes), pieces);
    take();
    text.remove_prefix(bytes);
  }
  parser->finish(pieces);
  take();
  return all;
}

std::vector<PieceCopy> parse_whole(const ParserOptions& options, std::string_view text) {
  const auto parser = make_parser(options);
  Pieces pieces;
  parser->push(text, pieces);
  parser->finish(pieces);
  std::vector<PieceCopy> all;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece piece = pieces[i];
    all.push_back({piece.kind, std::string(piece.text), std::string(piece.id)});
  }
  return all;
}

// Calls: in order, of known functions, and, where nothing has bound them, whole and JSON.
int check_calls(const ParserOptions& options, const std::vector<PieceCopy>& pieces) {
  int calls = 0;
  bool open = false;
  std::string arguments;
  for (const PieceCopy& piece : pieces) {
    if (piece.kind == PieceKind::kCallBegin) {
      CHECK(options.calls_bound || !open);
      CHECK(piece.text == "f" || piece.text == "g");
      open = true;
      ++calls;
      arguments.clear();
    } else if (piece.kind == PieceKind::kCallArguments) {
      CHECK(open);
      arguments += piece.text;
    } else if (piece.kind == PieceKind::kCallEnd) {
      CHECK(open);
      open = false;
      const auto doc = weir::JsonDoc::parse(arguments);
      CHECK(options.calls_bound || (doc && doc->root().is_object()));
    } else {
      CHECK(options.calls_bound || !open);
      CHECK(!piece.text.empty());
    }
  }
  CHECK(options.calls_bound || !open);
  CHECK(options.parallel || calls <= 1);
  return calls;
}

std::string without_space(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') out += c;
  return out;
}

// Whether `shown` is `text` without what may stand before an answer, at `at`: `after` any number of
// times, then `before_content`.
bool lacks_header_alone(std::string_view shown, std::string text, size_t at,
                        const std::string& after, const std::string& before_content) {
  while (shown != text) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with(before_content) &&
        shown == std::string(text).erase(at, before_content.size()))
      return true;
    if (after.empty() || !rest.starts_with(after)) return false;
    text.erase(at, after.size());
  }
  return true;
}

// Where there is no call, all of the text is there but for the markers of reasoning.
void check_nothing_lost(const ParserOptions& options, const std::vector<PieceCopy>& pieces,
                        std::string_view text) {
  std::string shown;
  for (const PieceCopy& piece : pieces) shown += piece.text;
  if (!options.reasoning || options.reasoning_is_content) {
    CHECK(shown == text);
    return;
  }
  const ReasoningFormat& format = *options.reasoning;
  const std::string open = without_space(format.open), close = without_space(format.close),
                    after = without_space(format.after),
                    before_content = without_space(format.before_content);
  shown = without_space(shown);
  std::string rest = without_space(text);
  if (!options.begins_in_reasoning) {
    if (lacks_header_alone(shown, rest, 0, after, before_content)) return;
    CHECK(rest.starts_with(open));
    rest.erase(0, open.size());
  }
  if (shown == rest) return;  // Reasoning without an end.
  const size_t at = rest.find(close);
  CHECK(at != std::string::npos);
  CHECK(lacks_header_alone(shown, rest.erase(at, close.size()), at, after, before_content));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  ParserOptions options;
  const size_t call_format = data[0] % (call_formats().size() + 1);
  const size_t reasoning_format = data[1] % (reasoning_formats().size() + 1);
  if (call_format > 0) options.calls = &call_formats()[call_format - 1];
  if (reasoning_format > 0) options.reasoning = &reasoning_formats()[reasoning_format - 1];
  if (!options.calls && !options.reasoning) return 0;
  options.functions = {{"f", {"a"}}, {"g", {}}};
  options.parallel = data[2] & 1;
  options.calls_bound = data[2] & 2;
  options.begins_in_reasoning = options.reasoning && (data[2] & 4);
  options.reasoning_is_content = data[2] & 8;
  const uint32_t seed = data[3];

  const auto words = vocabulary(options.calls, options.reasoning);
  std::string text;
  for (size_t i = 4; i < size; ++i)
    if (data[i] >= 0x80)
      text += words[data[i] % words.size()];
    else
      text += static_cast<char>(data[i]);

  const std::vector<PieceCopy> pieces = parse_whole(options, text);
  CHECK(pieces == parse(options, text, seed));
  CHECK(pieces == parse(options, text, seed + 1000));
  const int calls = check_calls(options, pieces);
  const bool messages = (options.calls && options.calls->messages) ||
                        (options.reasoning && options.reasoning->messages);
  if (calls == 0 && !messages) check_nothing_lost(options, pieces, text);
  return 0;
}
