#include "api/output/json_calls.h"

#include <string>

#include "api/output/json_scanner.h"
#include "api/output/literal_match.h"

namespace weir::api::output {

namespace {

constexpr size_t kKeyBytesMax = 64;
constexpr size_t kNameBytesMax = 256;

bool is_name_key(std::string_view key) { return key == "name" || key == "tool_name"; }

bool is_arguments_key(std::string_view key) {
  return key == "arguments" || key == "parameters" || key == "args";
}

class JsonCalls final : public CallReader {
 public:
  explicit JsonCalls(const JsonCallForm& form) : form_(form) { close_.expect(form.close); }

  Step push(char byte, CallGate& gate, Pieces& out) override {
    switch (state_) {
      case State::kBefore:
        return before(byte);
      case State::kMember:
        return member(byte);
      case State::kKey:
        return key(byte);
      case State::kColon:
        if (is_space(byte)) return Step::kMore;
        state_ = State::kValue;
        return byte == ':' ? Step::kMore : Step::kFail;
      case State::kValue:
        return value(byte, gate, out);
      case State::kName:
        return name(byte, gate, out);
      case State::kArguments:
      case State::kOther:
        return scan(byte, gate, out);
      case State::kAfterMember:
        return after_member(byte, gate, out);
      case State::kBetween:
        return between(byte);
      case State::kClose:
        return close(byte);
    }
    return Step::kFail;
  }

  bool finish(CallGate&, Pieces&) override {
    if (state_ == State::kBefore) return calls_ > 0;
    return state_ == State::kBetween || state_ == State::kClose;
  }

 private:
  enum class State : uint8_t {
    kBefore,  // An object.
    kMember,
    kKey,
    kColon,
    kValue,
    kName,
    kArguments,
    kOther,  // The value of a key that says nothing to us.
    kAfterMember,
    kBetween,  // Two objects.
    kClose,
  };

  Step before(char byte) {
    if (is_space(byte)) return Step::kMore;
    if (byte == '[' && calls_ == 0 && !list_) {
      list_ = true;
      return Step::kMore;
    }
    if (byte != '{') return Step::kFail;
    state_ = State::kMember;
    has_name_ = has_arguments_ = false;
    return Step::kMore;
  }

  Step member(char byte) {
    if (is_space(byte)) return Step::kMore;
    key_.clear();
    state_ = State::kKey;
    return byte == '"' ? Step::kMore : Step::kFail;
  }

  Step key(char byte) {
    if (byte == '"') {
      state_ = State::kColon;
      return Step::kMore;
    }
    key_ += byte;
    return byte != '\\' && key_.size() <= kKeyBytesMax ? Step::kMore : Step::kFail;
  }

  Step value(char byte, CallGate& gate, Pieces& out) {
    if (is_space(byte)) return Step::kMore;
    if (is_name_key(key_)) {
      state_ = State::kName;
      name_.clear();
      return byte == '"' && !has_name_ ? Step::kMore : Step::kFail;
    }
    state_ = State::kOther;
    if (is_arguments_key(key_)) {
      if (has_arguments_) return Step::kFail;
      has_arguments_ = true;
      state_ = State::kArguments;
    }
    scanner_.reset();
    return scan(byte, gate, out);
  }

  Step name(char byte, CallGate& gate, Pieces& out) {
    if (byte == '"') {
      has_name_ = true;
      state_ = State::kAfterMember;
      return gate.begin(name_, {}, out) ? Step::kMore : Step::kFail;
    }
    name_ += byte;
    return byte != '\\' && name_.size() <= kNameBytesMax ? Step::kMore : Step::kFail;
  }

  Step scan(char byte, CallGate& gate, Pieces& out) {
    const JsonScanner::Step step = scanner_.push(byte);
    if (step == JsonScanner::Step::kFail) return Step::kFail;
    const bool taken = step != JsonScanner::Step::kDoneBefore;
    if (taken && state_ == State::kArguments) gate.arguments({&byte, 1}, out);
    if (step != JsonScanner::Step::kMore) state_ = State::kAfterMember;
    return taken ? Step::kMore : after_member(byte, gate, out);
  }

  Step after_member(char byte, CallGate& gate, Pieces& out) {
    if (is_space(byte)) return Step::kMore;
    if (byte == ',') {
      state_ = State::kMember;
      return Step::kMore;
    }
    const bool whole = byte == '}' && has_name_ && (has_arguments_ || !form_.needs_arguments);
    if (!whole || !gate.end(out)) return Step::kFail;
    ++calls_;
    state_ = State::kBetween;
    return Step::kMore;
  }

  Step between(char byte) {
    if (is_space(byte)) return Step::kMore;
    if (list_ && byte == ']') {
      state_ = State::kClose;
      return form_.close.empty() ? Step::kDone : Step::kMore;
    }
    if (byte == ',' || (byte == ';' && !list_)) {
      state_ = State::kBefore;
      return Step::kMore;
    }
    if (list_) return Step::kFail;
    if (byte == '{') {
      state_ = State::kBefore;
      return before(byte);
    }
    state_ = State::kClose;
    return close(byte);
  }

  Step close(char byte) {
    if (close_.fresh() && is_space(byte)) return Step::kMore;
    const bool fresh = close_.fresh();
    const int match = close_.push(byte);
    if (match == 0) return Step::kDone;
    if (match == LiteralMatch::kMore) return Step::kMore;
    return fresh ? Step::kDoneBefore : Step::kFail;
  }

  const JsonCallForm form_;
  State state_ = State::kBefore;
  bool list_ = false;
  bool has_name_ = false, has_arguments_ = false;  // The object.
  int calls_ = 0;
  std::string key_, name_;
  JsonScanner scanner_;
  LiteralMatch close_;
};

}  // namespace

CallReaderPtr json_calls(const JsonCallForm& form) { return std::make_unique<JsonCalls>(form); }

}  // namespace weir::api::output
