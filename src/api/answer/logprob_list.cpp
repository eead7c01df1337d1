#include "api/answer/logprob_list.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace weir::api {

namespace {

float finite(float logprob) { return std::isfinite(logprob) ? logprob : kImpossibleLogprob; }

// A token's name in completions: its text, or OpenAI's notation where it is part of a character.
std::string completion_token(std::string_view piece) {
  std::string quoted;
  append_json_string(quoted, piece);
  if (quoted.find("\xef\xbf\xbd") == std::string::npos) return quoted;
  static constexpr char kHex[] = "0123456789abcdef";
  quoted = "\"bytes:";
  for (const char c : piece) {
    const auto byte = static_cast<uint8_t>(c);
    quoted += "\\\\x";
    quoted += kHex[byte >> 4];
    quoted += kHex[byte & 15];
  }
  return quoted + '"';
}

void comma(std::string& out) {
  if (!out.empty()) out += ',';
}

}  // namespace

void LogprobList::add(TokenLogprob chosen, std::span<const TokenLogprob> top,
                      const text::Detokenizer::Place& begin) {
  Mark mark{begin.bytes, {}};
  for (size_t i = 0; i < 4; ++i) mark.list[i] = lists_[i].size();
  marks_.push_back(mark);
  top = top.first(std::min(top.size(), static_cast<size_t>(top_count_)));
  if (style_.form == LogprobStyle::Form::kCompletions)
    add_completion(chosen, top, begin.characters);
  else
    add_chat(chosen, top);
}

void LogprobList::add_first(int32_t token) {
  marks_.push_back({});
  lists_[0] += completion_name(token);
  lists_[1] += "null";
  lists_[2] += "null";
  lists_[3] += '0';
}

void LogprobList::drop_from(int64_t text_bytes) {
  const auto first = std::find_if(marks_.begin(), marks_.end(),
                                  [&](const Mark& mark) { return mark.text_byte >= text_bytes; });
  if (first == marks_.end()) return;
  for (size_t i = 0; i < 4; ++i) lists_[i].resize(first->list[i]);
  marks_.erase(first, marks_.end());
}

std::string LogprobList::chat_name(int32_t token) const {
  if (style_.by_id) return "token_id:" + std::to_string(token);
  return std::string(tokenizer_.piece(token));
}

// With its quotes.
std::string LogprobList::completion_name(int32_t token) const {
  if (style_.by_id) return "\"token_id:" + std::to_string(token) + '"';
  return completion_token(tokenizer_.piece(token));
}

void LogprobList::append_chat_token(std::string& out, TokenLogprob token) const {
  const std::string_view piece = tokenizer_.piece(token.token);
  JsonWriter json(out);
  json.begin_object();
  if (style_.form == LogprobStyle::Form::kLlama) json.field("id", token.token);
  json.field("token", chat_name(token.token)).field("logprob", finite(token.logprob));
  json.key("bytes").begin_array();
  for (const char c : piece) json.value(static_cast<int32_t>(static_cast<uint8_t>(c)));
  json.end_array();
}

void LogprobList::add_chat(TokenLogprob chosen, std::span<const TokenLogprob> top) {
  std::string& out = lists_[0];
  comma(out);
  append_chat_token(out, chosen);
  out += ",\"top_logprobs\":[";
  bool first = true;
  for (const TokenLogprob& alternative : top) {
    if (alternative.token < 0) break;
    if (!first) out += ',';
    first = false;
    append_chat_token(out, alternative);
    out += '}';
  }
  out += "]}";
}

void LogprobList::add_completion(TokenLogprob chosen, std::span<const TokenLogprob> top,
                                 int64_t text_offset) {
  const std::string name = completion_name(chosen.token);
  for (std::string& list : lists_) comma(list);
  lists_[0] += name;
  JsonWriter(lists_[1]).value(finite(chosen.logprob));
  JsonWriter(lists_[3]).value(text_offset);

  // A map by name: of tokens that look alike the likelier one stays. The chosen token is always in.
  std::string& map = lists_[2];
  if (top_count_ == 0) {
    map += "null";
    return;
  }
  std::vector<std::string> names;
  map += '{';
  const auto put = [&](std::string&& key, float logprob) {
    if (std::find(names.begin(), names.end(), key) != names.end()) return;
    if (!names.empty()) map += ',';
    map.append(key).append(":");
    JsonWriter(map).value(finite(logprob));
    names.push_back(std::move(key));
  };
  for (const TokenLogprob& alternative : top)
    if (alternative.token >= 0) put(completion_name(alternative.token), alternative.logprob);
  put(std::string(name), chosen.logprob);
  map += '}';
}

size_t LogprobList::json_bytes() const {
  size_t bytes = 64;  // Of the names.
  for (const std::string& list : lists_) bytes += list.size();
  return bytes;
}

void LogprobList::write_and_clear(std::string& out) {
  using enum LogprobStyle::Form;
  switch (style_.form) {
    case kResponses:
      out.append(lists_[0]);
      break;
    case kLlama:
      out.append("[").append(lists_[0]).append("]");
      break;
    case kChat:
      out.append("{\"content\":[").append(lists_[0]).append("],\"refusal\":null}");
      break;
    case kCompletions:
      out.append("{\"tokens\":[").append(lists_[0]);
      out.append("],\"token_logprobs\":[").append(lists_[1]);
      out.append("],\"top_logprobs\":[").append(lists_[2]);
      out.append("],\"text_offset\":[").append(lists_[3]).append("]}");
  }
  clear();
}

void LogprobList::clear() {
  for (std::string& list : lists_) list.clear();
  marks_.clear();
}

}  // namespace weir::api
