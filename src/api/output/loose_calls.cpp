#include "api/output/loose_calls.h"

#include <string>

#include "api/output/literal_match.h"
#include "api/output/loose_json.h"
#include "base/json.h"

namespace weir::api::output {

namespace {

constexpr size_t kNameBytesMax = 256;

class GemmaCalls final : public CallReader {
 public:
  explicit GemmaCalls(const GemmaCallForm& form) : form_(form), value_(form.quote) {
    match_.expect("call:");
  }

  Step push(char byte, CallGate& gate, Pieces& out) override {
    switch (state_) {
      case State::kBegin:
        if (match_.fresh() && is_space(byte)) return Step::kMore;
        return begin(match_.push(byte));
      case State::kName:
        return name(byte, gate, out);
      case State::kArguments:
        return arguments(byte, gate, out);
      case State::kClose:
        return close(byte);
    }
    return Step::kFail;
  }

  bool finish(CallGate&, Pieces&) override { return state_ == State::kClose; }

 private:
  enum class State : uint8_t { kBegin, kName, kArguments, kClose };

  Step begin(int match) {
    if (match == 0) state_ = State::kName;
    return match == LiteralMatch::kNone ? Step::kFail : Step::kMore;
  }

  Step name(char byte, CallGate& gate, Pieces& out) {
    if (byte == '{') {
      state_ = State::kArguments;
      return gate.begin(name_, {}, out) ? arguments(byte, gate, out) : Step::kFail;
    }
    if (!is_space(byte)) name_ += byte;
    return name_.size() <= kNameBytesMax ? Step::kMore : Step::kFail;
  }

  Step arguments(char byte, CallGate& gate, Pieces& out) {
    std::string json;
    const LooseJson::Step step = value_.push(byte, json);
    if (step == LooseJson::Step::kFail) return Step::kFail;
    gate.arguments(json, out);
    if (step == LooseJson::Step::kMore) return Step::kMore;
    if (!gate.end(out)) return Step::kFail;
    state_ = State::kClose;
    match_.expect(form_.close);
    return Step::kMore;
  }

  Step close(char byte) {
    if (match_.fresh() && is_space(byte)) return Step::kMore;
    const bool fresh = match_.fresh();
    const int match = match_.push(byte);
    if (match == 0) return Step::kDone;
    if (match == LiteralMatch::kMore) return Step::kMore;
    return fresh ? Step::kDoneBefore : Step::kFail;
  }

  const GemmaCallForm form_;
  State state_ = State::kBegin;
  std::string name_;
  LooseJson value_;
  LiteralMatch match_;
};

class PythonCalls final : public CallReader {
 public:
  explicit PythonCalls(std::string_view close) : close_(close) {}

  Step push(char byte, CallGate& gate, Pieces& out) override {
    if (is_space(byte) && state_ != State::kValue && !(state_ == State::kClose && !match_.fresh()))
      return Step::kMore;
    switch (state_) {
      case State::kBegin:
        state_ = State::kName;
        return byte == '[' ? Step::kMore : Step::kFail;
      case State::kName:
        return name(byte, gate, out);
      case State::kKey:
        return key(byte, gate, out);
      case State::kValue:
        return value(byte, gate, out);
      case State::kAfterValue:
        return after_value(byte, gate, out);
      case State::kBetween:
        return between(byte);
      case State::kClose:
        return close(byte);
    }
    return Step::kFail;
  }

  bool finish(CallGate&, Pieces&) override { return state_ == State::kClose; }

 private:
  enum class State : uint8_t { kBegin, kName, kKey, kValue, kAfterValue, kBetween, kClose };

  Step name(char byte, CallGate& gate, Pieces& out) {
    if (byte == '(') {
      state_ = State::kKey;
      if (!gate.begin(text_, {}, out)) return Step::kFail;
      gate.arguments("{", out);
      first_ = true;
      text_.clear();
      return Step::kMore;
    }
    text_ += byte;
    return text_.size() <= kNameBytesMax ? Step::kMore : Step::kFail;
  }

  Step key(char byte, CallGate& gate, Pieces& out) {
    if (byte == ')' && text_.empty()) return end(gate, out);
    if (byte == '=') {
      std::string json = first_ ? "" : ", ";
      first_ = false;
      append_json_string(json, text_);
      gate.arguments(json + ": ", out);
      text_.clear();
      value_.reset();
      state_ = State::kValue;
      return Step::kMore;
    }
    const bool word = std::string_view("()[]{}'\",").find(byte) == std::string_view::npos;
    text_ += byte;
    return word && text_.size() <= kNameBytesMax ? Step::kMore : Step::kFail;
  }

  Step value(char byte, CallGate& gate, Pieces& out) {
    std::string json;
    const LooseJson::Step step = value_.push(byte, json);
    if (step == LooseJson::Step::kFail) return Step::kFail;
    gate.arguments(json, out);
    if (step == LooseJson::Step::kMore) return Step::kMore;
    state_ = State::kAfterValue;
    if (step == LooseJson::Step::kDone || is_space(byte)) return Step::kMore;
    return after_value(byte, gate, out);
  }

  Step after_value(char byte, CallGate& gate, Pieces& out) {
    if (byte == ')') return end(gate, out);
    state_ = State::kKey;
    return byte == ',' ? Step::kMore : Step::kFail;
  }

  Step end(CallGate& gate, Pieces& out) {
    gate.arguments("}", out);
    state_ = State::kBetween;
    return gate.end(out) ? Step::kMore : Step::kFail;
  }

  Step between(char byte) {
    if (byte == ',') {
      state_ = State::kName;
      return Step::kMore;
    }
    if (byte != ']') return Step::kFail;
    state_ = State::kClose;
    match_.expect(close_);
    return close_.empty() ? Step::kDone : Step::kMore;
  }

  Step close(char byte) {
    const bool fresh = match_.fresh();
    const int match = match_.push(byte);
    if (match == 0) return Step::kDone;
    if (match == LiteralMatch::kMore) return Step::kMore;
    return fresh ? Step::kDoneBefore : Step::kFail;
  }

  const std::string_view close_;
  State state_ = State::kBegin;
  bool first_ = true;  // No argument yet.
  std::string text_;   // A name or a key.
  LooseJson value_;
  LiteralMatch match_;
};

}  // namespace

CallReaderPtr gemma_calls(const GemmaCallForm& form) { return std::make_unique<GemmaCalls>(form); }

CallReaderPtr python_calls(std::string_view close) { return std::make_unique<PythonCalls>(close); }

}  // namespace weir::api::output
