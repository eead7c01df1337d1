#include "api/output/loose_json.h"

#include "api/output/argument_text.h"
#include "api/output/literal_match.h"
#include "base/json.h"

namespace weir::api::output {

namespace {

bool ends_word(char byte) {
  return is_space(byte) || std::string_view(",]})([{:\"'<").find(byte) != std::string_view::npos;
}

}  // namespace

void LooseJson::reset() { *this = LooseJson(quote_); }

LooseJson::Step LooseJson::push(char byte, std::string& json) {
  switch (state_) {
    case State::kValue:
      return is_space(byte) ? Step::kMore : begin_value(byte, json);
    case State::kKey:
      return is_space(byte) ? Step::kMore : begin_key(byte, json);
    case State::kBareKey:
      if (byte != ':') {
        text_ += byte;
        return Step::kMore;
      }
      while (!text_.empty() && is_space(text_.back())) text_.pop_back();
      append_json_string(json, text_);
      json += ": ";
      state_ = State::kValue;
      return Step::kMore;
    case State::kColon:
      if (is_space(byte)) return Step::kMore;
      if (byte != ':') return Step::kFail;
      json += ": ";
      state_ = State::kValue;
      return Step::kMore;
    case State::kQuote:
      return quote(byte);
    case State::kString:
      return string(byte, json);
    case State::kWord:
      if (!ends_word(byte)) {
        text_ += byte;
        return Step::kMore;
      }
      append_word(json, text_);
      if (at_top()) return Step::kDoneBefore;
      state_ = State::kAfter;
      return after(byte, json);
    case State::kAfter:
      return after(byte, json);
  }
  return Step::kFail;
}

LooseJson::Step LooseJson::begin_value(char byte, std::string& json) {
  if (!at_top() && byte == open_.back() && (first_ || comma_)) return close(byte, json);
  separate(json);
  text_.clear();
  key_ = false;
  if (byte == '{' || byte == '[' || byte == '(') {
    open_ += byte == '{' ? '}' : byte == '[' ? ']' : ')';
    json += byte == '{' ? '{' : '[';
    state_ = byte == '{' ? State::kKey : State::kValue;
    first_ = true;
    return Step::kMore;
  }
  return begin_text(byte, State::kWord);
}

LooseJson::Step LooseJson::begin_key(char byte, std::string& json) {
  if (byte == '}' && (first_ || comma_)) return close(byte, json);
  separate(json);
  text_.clear();
  key_ = true;
  return begin_text(byte, State::kBareKey);
}

// A string, or what is written without quotes.
LooseJson::Step LooseJson::begin_text(char byte, State bare) {
  if (byte == '"' || byte == '\'') {
    delimiter_ = byte;
    state_ = State::kString;
    return Step::kMore;
  }
  if (!quote_.empty() && byte == quote_.front()) {
    quoted_ = 0;
    state_ = State::kQuote;
    return quote(byte);
  }
  if (ends_word(byte)) return Step::kFail;
  text_ = byte;
  state_ = bare;
  return Step::kMore;
}

LooseJson::Step LooseJson::quote(char byte) {
  if (byte != quote_[quoted_]) return Step::kFail;
  if (++quoted_ == quote_.size()) {
    delimiter_ = 0;
    state_ = State::kString;
  }
  return Step::kMore;
}

LooseJson::Step LooseJson::string(char byte, std::string& json) {
  if (delimiter_ == 0) {
    text_ += byte;
    if (!text_.ends_with(quote_)) return Step::kMore;
    text_.resize(text_.size() - quote_.size());
    return end_string(json);
  }
  if (escaped_) {
    escaped_ = false;
    // \u and \x keep their backslash: what they spell is not worth more than that.
    const std::string_view letters = "ntr0", meanings("\n\t\r\0", 4);
    const size_t letter = letters.find(byte);
    if (letter != std::string_view::npos)
      text_ += meanings[letter];
    else if (byte == '\'' || byte == '"' || byte == '\\' || byte == '/')
      text_ += byte;
    else
      text_.append({'\\', byte});
    return Step::kMore;
  }
  if (byte == '\\') {
    escaped_ = true;
    return Step::kMore;
  }
  if (byte == delimiter_) return end_string(json);
  text_ += byte;
  return Step::kMore;
}

LooseJson::Step LooseJson::end_string(std::string& json) {
  append_json_string(json, text_);
  text_.clear();
  if (!key_) return end_value();
  state_ = State::kColon;
  return Step::kMore;
}

LooseJson::Step LooseJson::end_value() {
  state_ = State::kAfter;
  return at_top() ? Step::kDone : Step::kMore;
}

// A comma is written before what follows it: the last one may have nothing after it.
void LooseJson::separate(std::string& json) {
  if (comma_) json += ", ";
  first_ = comma_ = false;
}

LooseJson::Step LooseJson::after(char byte, std::string& json) {
  if (is_space(byte)) return Step::kMore;
  if (at_top()) return Step::kFail;
  if (byte != ',') return close(byte, json);
  comma_ = true;
  state_ = open_.back() == '}' ? State::kKey : State::kValue;
  return Step::kMore;
}

LooseJson::Step LooseJson::close(char byte, std::string& json) {
  if (byte != open_.back()) return Step::kFail;
  json += byte == '}' ? '}' : ']';
  open_.pop_back();
  first_ = comma_ = false;
  return end_value();
}

}  // namespace weir::api::output
