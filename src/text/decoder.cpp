#include "text/decoder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/json_fields.h"

namespace weir::text {

namespace {

constexpr size_t kStepsMax = 64;
constexpr int kDepthMax = 8;

// Replacements may be longer than what they replace; a few in a row must not run away.
constexpr size_t kTokenBytesMax = 1 << 20;

// "<0x0A>": its byte, or -1.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + (c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + (lower - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = from.empty() ? std::string::npos : text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  size_t copied = 0;
  for (; at != std::string::npos; at = text.find(from, copied)) {
    out.append(text, copied, at - copied).append(to);
    copied = at + from.size();
  }
  out.append(text, copied);
  text = std::move(out);
}

bool replace(std::string& text, const Pattern& pattern, std::string_view content) {
  std::vector<Match> matches;
  const bool complete = pattern.find_matches(text, matches);
  if (matches.empty()) return complete;
  std::string out;
  size_t copied = 0;
  for (const Match& match : matches) {
    if (out.size() > kTokenBytesMax) break;
    out.append(text, copied, match.begin - copied).append(content);
    copied = match.end;
  }
  out.append(text, copied);
  text = std::move(out);
  return complete;
}

// Up to `left` and `right` times `content` (one character).
void strip(std::string& text, std::string_view content, size_t left, size_t right) {
  size_t begin = 0, end = text.size();
  for (size_t i = 0; i < left && std::string_view(text).substr(begin).starts_with(content); ++i)
    begin += content.size();
  for (size_t i = 0; i < right && end >= begin + content.size() &&
                     std::string_view(text).substr(0, end).ends_with(content);
       ++i)
    end -= content.size();
  text = text.substr(begin, end - begin);
}

void word_piece(std::string& token, std::string_view prefix, bool first, bool cleanup) {
  if (!first) {
    if (token.starts_with(prefix)) {
      token.erase(0, prefix.size());
    } else {
      token.insert(token.begin(), ' ');
    }
  }
  if (!cleanup) return;
  constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kCleanups) replace_all(token, from, to);
}

// Runs of byte tokens become text, or one U+FFFD for each byte if they are none.
void join_bytes(std::vector<std::string>& tokens) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (valid_utf8(bytes)) {
      if (!bytes.empty()) result.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i) result.emplace_back(kReplacementCharacter);
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of(token); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      flush();
      result.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(result);
}

std::string join(const std::vector<std::string>& tokens, std::string_view between) {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += between;
    text += tokens[i];
  }
  return text;
}

}  // namespace

Result<Decoder> Decoder::parse(std::optional<JsonValue> json) {
  Decoder decoder;
  if (json) {
    WEIR_TRY(decoder.add(*json, 0));
  } else {
    decoder.steps_.push_back({.kind = Kind::kJoin});
  }
  return decoder;
}

Result<void> Decoder::add(JsonValue json, int depth) {
  JsonFields fields(json, "tokenizer.json: decoder");
  const std::string_view type = fields.text("type");
  WEIR_TRY(fields.status());
  if (depth > kDepthMax || steps_.size() >= kStepsMax)
    return fail(ErrorCode::kConfig, "tokenizer.json: decoder: expected at most " +
                                        std::to_string(kStepsMax) + " steps, " +
                                        std::to_string(kDepthMax) + " levels deep");
  if (type == "Sequence") {
    const JsonArray parts = fields.array("decoders");
    WEIR_TRY(fields.status());
    for (const JsonValue part : parts) WEIR_TRY(add(part, depth + 1));
    return {};
  }
  Step step;
  if (type == "ByteLevel") {
    step.kind = Kind::kByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = Kind::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = Kind::kFuse;
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    step.content = fields.text("content");
    const int64_t left = fields.integer("start"), right = fields.integer("stop");
    WEIR_TRY(fields.status());
    if (left < 0 || right < 0 || step.content.empty())
      return fail(ErrorCode::kConfig, fields.where() + " Strip: expected a character and counts");
    step.left = static_cast<size_t>(left);
    step.right = static_cast<size_t>(right);
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    step.replacement = fields.text("content");
    WEIR_TRY(fields.status());
    WEIR_ASSIGN(step.pattern, Pattern::parse(fields.value("pattern"), fields.where()));
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    step.content = fields.text("replacement", "\xe2\x96\x81");
    step.prefixed =
        fields.flag("add_prefix_space", true) && fields.text("prepend_scheme", "always") != "never";
  } else if (type == "WordPiece") {
    step.kind = Kind::kWordPiece;
    step.content = fields.text("prefix", "##");
    step.cleanup = fields.flag("cleanup", true);
  } else if (type == "BPEDecoder") {
    step.kind = Kind::kBpe;
    step.content = fields.text("suffix", "</w>");
  } else {
    return fail(ErrorCode::kConfig, fields.where() + " " + std::string(type) + " is not supported");
  }
  WEIR_TRY(fields.status());
  steps_.push_back(std::move(step));
  return {};
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  for (const Step& step : steps_) run(step, tokens);
  return join(tokens, "");
}

void Decoder::run(const Step& step, std::vector<std::string>& tokens) {
  switch (step.kind) {
    case Kind::kJoin:
      tokens = {join(tokens, " ")};
      return;
    case Kind::kFuse:
      tokens = {join(tokens, "")};
      return;
    case Kind::kByteFallback:
      return join_bytes(tokens);
    case Kind::kByteLevel: {
      std::string bytes, text;
      for (const std::string& token : tokens) {
        if (!append_from_byte_level(bytes, token)) bytes += token;
      }
      append_valid_utf8(text, bytes);
      tokens = {std::move(text)};
      return;
    }
    case Kind::kStrip:
      for (std::string& token : tokens) strip(token, step.content, step.left, step.right);
      return;
    case Kind::kReplace:
      for (std::string& token : tokens) replace(token, *step.pattern, step.replacement);
      return;
    case Kind::kMetaspace:
      for (size_t i = 0; i < tokens.size(); ++i)
        replace_all(tokens[i], step.content, i == 0 && step.prefixed ? "" : " ");
      return;
    case Kind::kWordPiece:
      for (size_t i = 0; i < tokens.size(); ++i)
        word_piece(tokens[i], step.content, i == 0, step.cleanup);
      return;
    case Kind::kBpe:
      for (size_t i = 0; i < tokens.size(); ++i)
        replace_all(tokens[i], step.content, i + 1 == tokens.size() ? "" : " ");
      return;
  }
}

bool Decoder::append_piece(std::string& out, std::string_view token) const {
  std::string text(token);
  bool fused = false;  // What follows looks at the whole text.
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kJoin:
        text.insert(text.begin(), ' ');
        break;
      case Kind::kFuse:
        fused = true;
        break;
      case Kind::kByteLevel:
        fused = true;
        if (std::string bytes; append_from_byte_level(bytes, text)) text = std::move(bytes);
        break;
      case Kind::kByteFallback:
        if (const int byte = byte_of(text); byte >= 0) {
          // A byte by itself may be no character, which nothing after this could look at.
          out += static_cast<char>(byte);
          return true;
        }
        break;
      case Kind::kStrip:
        if (!fused) strip(text, step.content, step.left, step.right);
        break;
      case Kind::kReplace:
        if (valid_utf8(text) && !replace(text, *step.pattern, step.replacement)) return false;
        break;
      case Kind::kMetaspace:
        replace_all(text, step.content, " ");
        break;
      case Kind::kWordPiece:
        word_piece(text, step.content, false, step.cleanup);
        break;
      case Kind::kBpe:
        replace_all(text, step.content, " ");
        break;
    }
  }
  out += text;
  return true;
}

size_t Decoder::leading_spaces() const {
  bool fused = false;
  for (const Step& step : steps_) {
    if (step.kind == Kind::kJoin || step.kind == Kind::kWordPiece) return 1;
    if (step.kind == Kind::kMetaspace && step.prefixed) return std::numeric_limits<size_t>::max();
    if (step.kind == Kind::kFuse || step.kind == Kind::kByteLevel) fused = true;
    if (step.kind == Kind::kStrip && fused && step.content == " ") return step.left;
  }
  return 0;
}

}  // namespace weir::text
