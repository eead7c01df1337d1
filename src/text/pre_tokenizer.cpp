#include "text/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/json_fields.h"
#include "text/unicode.h"

namespace weir::text {

namespace {

constexpr size_t kStepsMax = 64;
constexpr int kDepthMax = 8;
// ByteLevel doubles a text at worst, Metaspace quadruples it: their number bounds the growth.
constexpr int kRewritesMax = 3;

// GPT-2's, which ByteLevel has built in.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Spans of characters for which `matches` holds, each character by itself; others together.
template <class Span, class Matches>
void character_spans(std::string_view word, Matches&& matches, std::vector<Span>& spans) {
  size_t plain = 0;
  for (size_t i = 0; i < word.size();) {
    const size_t begin = i;
    if (!matches(decode_utf8(word, i))) continue;
    if (plain < begin) spans.push_back({plain, begin, false});
    spans.push_back({begin, i, true});
    plain = i;
  }
  if (plain < word.size()) spans.push_back({plain, word.size(), false});
}

// Unmatched are the runs of word characters and of other non-spaces; matched what lies between.
template <class Span>
void word_spans(std::string_view word, std::vector<Span>& spans) {
  const auto kind = [](char32_t c) { return is_word(c) ? 2 : is_space(c) ? 0 : 1; };
  int current = -1;
  for (size_t i = 0; i < word.size();) {
    const size_t begin = i;
    const int next = kind(decode_utf8(word, i));
    if (next != current) spans.push_back({begin, begin, next == 0});
    spans.back().end = i;
    current = next;
  }
}

}  // namespace

Result<PreTokenizer> PreTokenizer::parse(std::optional<JsonValue> json) {
  PreTokenizer result;
  if (json) WEIR_TRY(result.add(*json, 0));
  const auto rewrites = std::count_if(
      result.steps_.begin(), result.steps_.end(),
      [](const Step& s) { return s.kind == Kind::kByteLevel || s.kind == Kind::kMetaspace; });
  if (rewrites > kRewritesMax)
    return fail(ErrorCode::kConfig,
                "tokenizer.json: pre_tokenizer: expected at most " + std::to_string(kRewritesMax) +
                    " of ByteLevel and Metaspace, found " + std::to_string(rewrites));
  return result;
}

Result<void> PreTokenizer::add(JsonValue json, int depth) {
  JsonFields fields(json, "tokenizer.json: pre_tokenizer");
  const std::string_view type = fields.text("type");
  WEIR_TRY(fields.status());
  if (depth > kDepthMax || steps_.size() >= kStepsMax)
    return fail(ErrorCode::kConfig, "tokenizer.json: pre_tokenizer: expected at most " +
                                        std::to_string(kStepsMax) + " steps, " +
                                        std::to_string(kDepthMax) + " levels deep");
  if (type == "Sequence") {
    const JsonArray parts = fields.array("pretokenizers");
    WEIR_TRY(fields.status());
    for (const JsonValue part : parts) WEIR_TRY(add(part, depth + 1));
    return {};
  }
  if (type == "ByteLevel") return add_byte_level(json);
  if (type == "Metaspace") return add_metaspace(json);
  if (type == "Split") return add_split(json);
  Step step;
  if (type == "Digits") {
    step.kind = Kind::kDigits;
    step.behaviour =
        fields.flag("individual_digits", false) ? Behaviour::kIsolated : Behaviour::kContiguous;
  } else if (type == "Punctuation") {
    step.kind = Kind::kPunctuation;
    WEIR_ASSIGN(step.behaviour, parse_behaviour(fields.text("behavior", "Isolated")));
  } else if (type == "Whitespace") {
    step.kind = Kind::kWords;
    step.behaviour = Behaviour::kRemoved;
  } else if (type == "WhitespaceSplit") {
    step.kind = Kind::kSpace;
    step.behaviour = Behaviour::kRemoved;
  } else if (type == "BertPreTokenizer") {
    steps_.push_back({.kind = Kind::kSpace, .behaviour = Behaviour::kRemoved});
    step.kind = Kind::kPunctuation;
  } else if (type == "CharDelimiterSplit" || type == "Delimiter") {
    step.pattern = Pattern::literal(std::string(fields.text("delimiter")));
    step.behaviour = Behaviour::kRemoved;
  } else if (type == "FixedLength") {
    const int64_t length = fields.integer("length", 5);
    if (length < 1)
      return fail(ErrorCode::kConfig,
                  fields.where() + ".length: expected at least 1, found " + std::to_string(length));
    step.kind = Kind::kLength;
    step.length = static_cast<size_t>(length);
  } else {
    return fail(ErrorCode::kConfig, fields.where() + " " + std::string(type) + " is not supported");
  }
  WEIR_TRY(fields.status());
  steps_.push_back(std::move(step));
  return {};
}

Result<void> PreTokenizer::add_byte_level(JsonValue json) {
  JsonFields fields(json, "tokenizer.json: pre_tokenizer ByteLevel");
  Step step;
  step.kind = Kind::kByteLevel;
  if (fields.flag("add_prefix_space", true)) step.prepend = Prepend::kAlways;
  const bool use_regex = fields.flag("use_regex", true);
  WEIR_TRY(fields.status());
  if (!use_regex) {
    steps_.push_back(std::move(step));
    return {};
  }
  // The space comes before the cut, the bytes after it.
  if (step.prepend == Prepend::kAlways) {
    steps_.push_back({.kind = Kind::kMetaspace,
                      .replacement = " ",
                      .prepend = Prepend::kAlways,
                      .split = false});
    step.prepend = Prepend::kNever;
  }
  WEIR_ASSIGN(Pattern pattern, Pattern::regex(kGpt2Pattern));
  steps_.push_back({.kind = Kind::kPattern, .pattern = std::move(pattern)});
  steps_.push_back(std::move(step));
  return {};
}

Result<void> PreTokenizer::add_metaspace(JsonValue json) {
  JsonFields fields(json, "tokenizer.json: pre_tokenizer Metaspace");
  Step step;
  step.kind = Kind::kMetaspace;
  step.replacement = fields.text("replacement", "\xe2\x96\x81");
  step.split = fields.flag("split", true);
  const bool add_prefix_space = fields.flag("add_prefix_space", true);
  const std::string_view scheme = fields.text("prepend_scheme", "always");
  WEIR_TRY(fields.status());
  if (step.replacement.empty() || utf8_front(step.replacement).bytes != step.replacement.size())
    return fail(ErrorCode::kConfig, fields.where() +
                                        ".replacement: expected one character, found " +
                                        step.replacement.substr(0, 64));
  if (scheme == "always") {
    step.prepend = Prepend::kAlways;
  } else if (scheme == "first") {
    step.prepend = Prepend::kFirst;
  } else if (scheme != "never") {
    return fail(ErrorCode::kConfig, fields.where() +
                                        ".prepend_scheme: expected always, first or never, found " +
                                        std::string(scheme.substr(0, 64)));
  }
  if (!add_prefix_space) step.prepend = Prepend::kNever;
  steps_.push_back(std::move(step));
  return {};
}

Result<void> PreTokenizer::add_split(JsonValue json) {
  JsonFields fields(json, "tokenizer.json: pre_tokenizer Split");
  Step step;
  step.invert = fields.flag("invert", false);
  const std::string_view behaviour = fields.text("behavior");
  WEIR_TRY(fields.status());
  WEIR_ASSIGN(step.behaviour, parse_behaviour(behaviour));
  WEIR_ASSIGN(step.pattern, Pattern::parse(fields.value("pattern"), fields.where()));
  steps_.push_back(std::move(step));
  return {};
}

Result<PreTokenizer::Behaviour> PreTokenizer::parse_behaviour(std::string_view name) {
  constexpr std::pair<std::string_view, Behaviour> kBehaviours[] = {
      {"Removed", Behaviour::kRemoved},
      {"Isolated", Behaviour::kIsolated},
      {"MergedWithPrevious", Behaviour::kMergedWithPrevious},
      {"MergedWithNext", Behaviour::kMergedWithNext},
      {"Contiguous", Behaviour::kContiguous}};
  for (const auto& [text, behaviour] : kBehaviours) {
    if (text == name) return behaviour;
  }
  return fail(ErrorCode::kConfig, "tokenizer.json: pre_tokenizer: behavior " +
                                      std::string(name.substr(0, 64)) + " is not supported");
}

void PreTokenizer::run(Words& words) const {
  for (const Step& step : steps_) {
    if (step.kind == Kind::kByteLevel || step.kind == Kind::kMetaspace) rewrite(step, words);
    if (step.kind != Kind::kByteLevel && (step.kind != Kind::kMetaspace || step.split))
      cut(step, words);
  }
}

void PreTokenizer::find_spans(const Step& step, std::string_view word, std::vector<Match>& matches,
                              std::vector<Span>& spans) {
  spans.clear();
  switch (step.kind) {
    case Kind::kDigits:
      return character_spans(word, is_numeric, spans);
    case Kind::kPunctuation:
      return character_spans(word, is_punctuation, spans);
    case Kind::kSpace:
      return character_spans(word, is_space, spans);
    case Kind::kWords:
      return word_spans(word, spans);
    case Kind::kMetaspace: {
      size_t i = 0;
      const char32_t replacement = decode_utf8(step.replacement, i);
      return character_spans(
          word, [=](char32_t c) { return c == replacement; }, spans);
    }
    case Kind::kLength: {
      size_t begin = 0, characters = 0;
      for (size_t i = 0; i < word.size();) {
        decode_utf8(word, i);
        if (++characters % step.length == 0 || i == word.size()) {
          spans.push_back({begin, i, false});
          begin = i;
        }
      }
      return;
    }
    case Kind::kPattern:
    case Kind::kByteLevel:
      break;
  }
  step.pattern->find_matches(word, matches);
  size_t plain = 0;
  for (const Match& match : matches) {
    if (plain < match.begin) spans.push_back({plain, match.begin, step.invert});
    spans.push_back({match.begin, match.end, !step.invert});
    plain = match.end;
  }
  if (plain < word.size()) spans.push_back({plain, word.size(), step.invert});
}

// In each behaviour a span joins its neighbour on the condition that the crate has.
void PreTokenizer::merge_spans(Behaviour behaviour, std::vector<Span>& spans) {
  if (behaviour == Behaviour::kIsolated) return;
  if (behaviour == Behaviour::kRemoved) {
    std::erase_if(spans, [](const Span& s) { return s.matched; });
    return;
  }
  const bool backwards = behaviour == Behaviour::kMergedWithNext;
  if (backwards) std::reverse(spans.begin(), spans.end());
  size_t kept = 0;
  bool previous_matched = false;
  for (const Span& span : spans) {
    const bool joins = behaviour == Behaviour::kContiguous ? span.matched == previous_matched
                                                           : span.matched && !previous_matched;
    previous_matched = span.matched;
    if (joins && kept > 0) {
      (backwards ? spans[kept - 1].begin : spans[kept - 1].end) = backwards ? span.begin : span.end;
    } else {
      const Span copy = span;  // `span` may be the place written to.
      spans[kept++] = copy;
    }
  }
  spans.resize(kept);
  if (backwards) std::reverse(spans.begin(), spans.end());
}

void PreTokenizer::cut(const Step& step, Words& words) {
  std::vector<Words::Word> result;
  result.reserve(words.words.size());
  std::vector<Match> matches;
  std::vector<Span> spans;
  for (const Words::Word& word : words.words) {
    find_spans(step, words.view(word), matches, spans);
    merge_spans(step.kind == Kind::kMetaspace ? Behaviour::kMergedWithNext : step.behaviour, spans);
    for (const Span& span : spans) {
      if (span.begin < span.end)
        result.push_back(
            {word.begin + span.begin, word.begin + span.end, word.at_start && span.begin == 0});
    }
  }
  words.words = std::move(result);
}

// Writes each word anew: Metaspace's replacement of spaces, ByteLevel's alphabet, both with
// something before.
void PreTokenizer::rewrite(const Step& step, Words& words) {
  const bool bytes = step.kind == Kind::kByteLevel;
  const std::string_view prefix = bytes ? std::string_view(" ") : step.replacement;
  std::string out;
  out.reserve(words.text.size() * 2);
  for (Words::Word& word : words.words) {
    const std::string_view text = words.view(word);
    const size_t begin = out.size();
    // A space that will become the replacement counts as one.
    const bool has_prefix = text.starts_with(prefix) || (!bytes && text.starts_with(' '));
    const bool wants_prefix =
        step.prepend == Prepend::kAlways || (step.prepend == Prepend::kFirst && word.at_start);
    if (bytes) {
      if (wants_prefix && !has_prefix) append_byte_level(out, prefix);
      append_byte_level(out, text);
    } else {
      if (wants_prefix && !has_prefix) out += prefix;
      size_t copied = 0;
      for (size_t space; (space = text.find(' ', copied)) != std::string_view::npos;
           copied = space + 1)
        out.append(text.substr(copied, space - copied)).append(step.replacement);
      out.append(text.substr(copied));
    }
    word.begin = begin;
    word.end = out.size();
  }
  words.text = std::move(out);
}

}  // namespace weir::text
