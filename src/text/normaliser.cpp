#include "text/normaliser.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/json_fields.h"
#include "text/unicode.h"
#include "text/unicode_age.h"

namespace weir::text {

namespace {

constexpr size_t kStepsMax = 64;
constexpr int kDepthMax = 8;

// The worst that real normalisers do: NFKC of U+FDFA gives eleven bytes for each, and three of its
// spaces become U+2581: 14. The slack is for Prepend and short texts.
constexpr size_t kExpansionMax = 64;
constexpr size_t kExpansionSlack = 4096;
size_t expansion_max(size_t bytes) { return bytes * kExpansionMax + kExpansionSlack; }

Error unknown(std::string_view type) {
  return {ErrorCode::kConfig,
          "tokenizer.json: normalizer " + std::string(type) + " is not supported"};
}

// What Nmt drops, and what it turns into spaces.
bool nmt_drops(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f ||
         c == 0x8f || c == 0x9f;
}
bool nmt_is_space(char32_t c) {
  return c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 ||
         (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff ||
         c == 0xfffd;
}

// The CJK ideograph blocks as BERT lists them.
bool bert_is_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}
bool bert_drops(char32_t c) {
  return c == 0 || c == 0xfffd || (is_control_or_other(c) && c != '\t' && c != '\n' && c != '\r');
}

template <class Visit>
void each_character(std::string_view text, Visit&& visit) {
  for (size_t i = 0; i < text.size();) visit(decode_utf8(text, i));
}

// Keeps what `drops` does not name, mapped; false if the first character is not kept.
template <class Drops, class Map>
bool filter(std::string_view text, std::string& out, Drops&& drops, Map&& map) {
  bool first = true, kept_first = true;
  each_character(text, [&](char32_t c) {
    if (drops(c)) {
      if (first) kept_first = false;
    } else {
      append_utf8(out, map(c));
    }
    first = false;
  });
  return kept_first;
}

char32_t same(char32_t c) { return c; }

bool strip(std::string_view text, bool left, bool right, std::string& out) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!is_space(decode_utf8(text, next))) break;
    begin = next;
  }
  while (right && end > begin) {
    size_t previous = end;
    if (!is_space(decode_utf8_before(text, previous))) break;
    end = previous;
  }
  out.append(text.substr(begin, end - begin));
  return begin == 0;
}

bool replace(std::string_view text, const Pattern& pattern, std::string_view content,
             size_t bytes_max, std::string& out) {
  std::vector<Match> matches;
  pattern.find_matches(text, matches);
  size_t copied = 0;
  for (const Match& match : matches) {
    if (out.size() > bytes_max) return true;
    out.append(text.substr(copied, match.begin - copied)).append(content);
    copied = match.end;
  }
  out.append(text.substr(copied));
  if (matches.empty() || matches.front().begin > 0 || matches.front().end == 0) return true;
  // What replaces a match counts as coming from the match's last character.
  size_t second = 0;
  decode_utf8(text, second);
  return matches.front().end == second && !content.empty();
}

}  // namespace

Result<Normaliser> Normaliser::parse(std::optional<JsonValue> json) {
  Normaliser normaliser;
  if (json) WEIR_TRY(normaliser.add(*json, 0));
  return normaliser;
}

Result<void> Normaliser::add(JsonValue json, int depth) {
  JsonFields fields(json, "tokenizer.json: normalizer");
  const std::string_view type = fields.text("type");
  WEIR_TRY(fields.status());
  if (depth > kDepthMax || steps_.size() >= kStepsMax)
    return fail(ErrorCode::kConfig, "tokenizer.json: normalizer: expected at most " +
                                        std::to_string(kStepsMax) + " steps, " +
                                        std::to_string(kDepthMax) + " levels deep");
  if (type == "Sequence") {
    const JsonArray parts = fields.array("normalizers");
    WEIR_TRY(fields.status());
    for (const JsonValue part : parts) WEIR_TRY(add(part, depth + 1));
    return {};
  }
  if (type == "BertNormalizer") return add_bert(json);
  Step step;
  constexpr std::pair<std::string_view, NormalForm> kForms[] = {{"NFC", NormalForm::kNfc},
                                                                {"NFD", NormalForm::kNfd},
                                                                {"NFKC", NormalForm::kNfkc},
                                                                {"NFKD", NormalForm::kNfkd}};
  const auto* form = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const auto& f) { return f.first == type; });
  if (form != std::end(kForms)) {
    step.form = form->second;
  } else if (type == "Lowercase") {
    step.kind = Kind::kLowercase;
  } else if (type == "Prepend") {
    step.kind = Kind::kPrepend;
    step.content = fields.text("prepend");
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    step.content = fields.text("content");
    WEIR_TRY(fields.status());
    WEIR_ASSIGN(step.pattern, Pattern::parse(fields.value("pattern"), fields.where()));
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    step.strip_left = fields.flag("strip_left", true);
    step.strip_right = fields.flag("strip_right", true);
  } else if (type == "StripAccents") {
    step.kind = Kind::kStripAccents;
  } else if (type == "Precompiled") {
    step.kind = Kind::kCharsmap;
    const std::string_view base64 = fields.text("precompiled_charsmap");
    WEIR_TRY(fields.status());
    WEIR_ASSIGN(step.charsmap, Charsmap::parse(base64));
  } else if (type == "Nmt") {
    step.kind = Kind::kNmt;
  } else if (type == "ByteLevel") {
    step.kind = Kind::kByteLevel;
  } else {
    return tl::unexpected(unknown(type));
  }
  WEIR_TRY(fields.status());
  steps_.push_back(std::move(step));
  return {};
}

Result<void> Normaliser::add_bert(JsonValue json) {
  JsonFields fields(json, "tokenizer.json: normalizer");
  const bool lowercase = fields.flag("lowercase", true);
  if (fields.flag("clean_text", true)) steps_.push_back({.kind = Kind::kBertClean});
  if (fields.flag("handle_chinese_chars", true)) steps_.push_back({.kind = Kind::kBertChinese});
  if (fields.flag("strip_accents", lowercase)) {
    steps_.push_back({.kind = Kind::kForm, .form = NormalForm::kNfd});
    steps_.push_back({.kind = Kind::kBertAccents});
  }
  if (lowercase) steps_.push_back({.kind = Kind::kLowercase});
  return fields.status();
}

bool Normaliser::apply(std::string& text) const {
  const size_t bytes_max = expansion_max(text.size());
  bool same_start = true;
  std::string out;
  for (const Step& step : steps_) {
    out.clear();
    const bool kept = run(step, text, bytes_max, out);
    if (out.size() > bytes_max) continue;
    same_start = same_start && kept;
    text.swap(out);
  }
  return same_start;
}

bool Normaliser::run(const Step& step, const std::string& text, size_t bytes_max,
                     std::string& out) {
  switch (step.kind) {
    case Kind::kForm:
      append_normalised_by_9(out, text, step.form, bytes_max);
      return true;
    case Kind::kLowercase:
      each_character(text, [&](char32_t c) { append_lower(out, c); });
      return true;
    case Kind::kPrepend:
      if (!text.empty()) out.append(step.content).append(text);
      return true;
    case Kind::kReplace:
      return replace(text, *step.pattern, step.content, bytes_max, out);
    case Kind::kStrip:
      return strip(text, step.strip_left, step.strip_right, out);
    case Kind::kStripAccents:
      return filter(text, out, is_mark, same);
    case Kind::kCharsmap:
      step.charsmap->append_normalised(out, text, bytes_max);
      return true;
    case Kind::kNmt:
      return filter(text, out, nmt_drops, [](char32_t c) { return nmt_is_space(c) ? U' ' : c; });
    case Kind::kByteLevel:
      append_byte_level(out, text);
      return true;
    case Kind::kBertClean:
      return filter(text, out, bert_drops, [](char32_t c) { return is_space(c) ? U' ' : c; });
    case Kind::kBertChinese:
      each_character(text, [&](char32_t c) {
        if (bert_is_chinese(c)) out += ' ';
        append_utf8(out, c);
        if (bert_is_chinese(c)) out += ' ';
      });
      return true;
    case Kind::kBertAccents:
      return filter(text, out, is_nonspacing_mark, same);
  }
  return true;
}

}  // namespace weir::text
