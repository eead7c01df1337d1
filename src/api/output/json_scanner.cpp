#include "api/output/json_scanner.h"

namespace weir::api::output {

namespace {

bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

bool is_word(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || byte == '-' ||
         byte == '+' || byte == '.' || byte == 'E';
}

}  // namespace

JsonScanner::Step JsonScanner::begin_value(char byte) {
  if (byte == '{' || byte == '[') {
    open_ += byte;
    state_ = byte == '{' ? State::kFirstKey : State::kFirstItem;
  } else if (byte == '"') {
    key_ = false;
    state_ = State::kString;
  } else if (is_word(byte)) {
    state_ = State::kWord;
  } else {
    return Step::kFail;
  }
  return Step::kMore;
}

JsonScanner::Step JsonScanner::end_value() {
  state_ = State::kAfterValue;
  return open_.empty() ? Step::kDone : Step::kMore;
}

JsonScanner::Step JsonScanner::after_value(char byte) {
  if (is_space(byte)) return Step::kMore;
  if (open_.empty()) return Step::kFail;
  const bool object = open_.back() == '{';
  if (byte == ',') {
    state_ = object ? State::kKey : State::kValue;
    return Step::kMore;
  }
  if (byte != (object ? '}' : ']')) return Step::kFail;
  open_.pop_back();
  return end_value();
}

JsonScanner::Step JsonScanner::push(char byte) {
  switch (state_) {
    case State::kString:
      if (byte == '\\') {
        state_ = State::kEscape;
      } else if (byte == '"') {
        if (!key_) return end_value();
        state_ = State::kColon;
      } else if (static_cast<uint8_t>(byte) < 0x20) {
        return Step::kFail;
      }
      return Step::kMore;
    case State::kEscape:
      state_ = State::kString;
      return Step::kMore;
    case State::kWord:
      if (is_word(byte)) return Step::kMore;
      if (open_.empty()) return Step::kDoneBefore;
      state_ = State::kAfterValue;
      return after_value(byte);
    case State::kAfterValue:
      return after_value(byte);
    default:
      break;
  }
  if (is_space(byte)) return Step::kMore;
  if (state_ == State::kColon) {
    if (byte != ':') return Step::kFail;
    state_ = State::kValue;
    return Step::kMore;
  }
  if (state_ == State::kValue) return begin_value(byte);
  const char close = state_ == State::kFirstKey ? '}' : ']';
  if (state_ != State::kKey && byte == close) {
    open_.pop_back();
    return end_value();
  }
  if (state_ == State::kFirstItem) return begin_value(byte);
  if (byte != '"') return Step::kFail;
  key_ = true;
  state_ = State::kString;
  return Step::kMore;
}

}  // namespace weir::api::output
