#include "api/output/xml_calls.h"

#include <optional>
#include <string>

#include "api/output/argument_text.h"
#include "api/output/literal_match.h"

namespace weir::api::output {

namespace {

constexpr size_t kNameBytesMax = 512;

std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && text.front() == '"') {
    text.remove_prefix(1);
    text = text.substr(0, text.find('"'));
  }
  return text;
}

// What DeepSeek says beside the key.
std::optional<bool> string_attribute(std::string_view key) {
  if (key.find("string=\"true\"") != std::string_view::npos) return true;
  if (key.find("string=\"false\"") != std::string_view::npos) return false;
  return std::nullopt;
}

class XmlCalls final : public CallReader {
 public:
  explicit XmlCalls(const XmlCallForm& form) : form_(form) {
    if (form.function_begin.empty() || form.in_function)
      state_ = State::kName;
    else
      match_.expect(form.function_begin);
  }

  Step push(char byte, CallGate& gate, Pieces& out) override {
    switch (state_) {
      case State::kBegin:
        return begin(byte);
      case State::kName:
        return name(byte, gate, out);
      case State::kBody:
        return body(byte, gate, out);
      case State::kKey:
        return key(byte);
      case State::kValueBegin:
        return value_begin(byte);
      case State::kValue:
        return value(byte, gate, out);
    }
    return Step::kFail;
  }

  // Where a function's end is missing, arguments may be missing too.
  bool finish(CallGate&, Pieces&) override { return state_ == State::kBegin && calls_ > 0; }

 private:
  enum class State : uint8_t { kBegin, kName, kBody, kKey, kValueBegin, kValue };

  Step begin(char byte) {
    const std::optional<Step> step = begin_call(byte, match_, calls_);
    if (step) return *step;
    state_ = State::kName;
    text_.clear();
    return Step::kMore;
  }

  Step name(char byte, CallGate& gate, Pieces& out) {
    const bool bare = form_.function_begin.empty();
    const bool over = bare ? byte == '<' || byte == '\n' : byte == '>';
    if (!over) {
      text_ += byte;
      return text_.size() <= kNameBytesMax ? Step::kMore : Step::kFail;
    }
    function_ = gate.function(unquoted(text_));
    if (!function_ || !gate.begin(function_->name, {}, out)) return Step::kFail;
    gate.arguments("{", out);
    first_ = true;
    expect_key();
    return bare && byte == '<' ? body(byte, gate, out) : Step::kMore;
  }

  void expect_key() {
    state_ = State::kBody;
    match_.expect(form_.key_begin, form_.function_end);
  }

  Step body(char byte, CallGate& gate, Pieces& out) {
    if (match_.fresh() && is_space(byte)) return Step::kMore;
    const int match = match_.push(byte);
    if (match == LiteralMatch::kMore) return Step::kMore;
    if (match == LiteralMatch::kNone) return Step::kFail;
    text_.clear();
    if (match == 0) {
      state_ = State::kKey;
      return Step::kMore;
    }
    gate.arguments("}", out);
    if (!gate.end(out)) return Step::kFail;
    ++calls_;
    if (form_.section_end.empty()) return Step::kDone;
    state_ = State::kBegin;
    match_.expect(form_.function_begin, form_.section_end);
    return Step::kMore;
  }

  Step key(char byte) {
    text_ += byte;
    if (text_.size() > kNameBytesMax) return Step::kFail;
    if (!text_.ends_with(form_.key_end)) return Step::kMore;
    text_.resize(text_.size() - form_.key_end.size());
    key_ = unquoted(text_);
    is_string_ = string_attribute(text_);
    text_.clear();
    state_ = State::kValue;
    if (!form_.value_begin.empty()) {
      state_ = State::kValueBegin;
      match_.expect(form_.value_begin);
    }
    return Step::kMore;
  }

  Step value_begin(char byte) {
    if (match_.fresh() && is_space(byte)) return Step::kMore;
    const int match = match_.push(byte);
    if (match == LiteralMatch::kNone) return Step::kFail;
    if (match == 0) state_ = State::kValue;
    return Step::kMore;
  }

  // The gate's limit is the text's.
  Step value(char byte, CallGate& gate, Pieces& out) {
    text_ += byte;
    if (!text_.ends_with(form_.value_end)) return Step::kMore;
    text_.resize(text_.size() - form_.value_end.size());
    std::string json = first_ ? "" : ", ";
    append_argument(json, *function_, key_, text_, is_string_);
    gate.arguments(json, out);
    first_ = false;
    text_.clear();
    expect_key();
    return Step::kMore;
  }

  const XmlCallForm form_;
  State state_ = State::kBegin;
  int calls_ = 0;
  bool first_ = true;  // No argument yet.
  const CallableFunction* function_ = nullptr;
  std::string key_;
  std::optional<bool> is_string_;
  std::string text_;  // Of what is being read.
  LiteralMatch match_;
};

}  // namespace

CallReaderPtr xml_calls(const XmlCallForm& form) { return std::make_unique<XmlCalls>(form); }

}  // namespace weir::api::output
