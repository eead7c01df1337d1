#include "api/output/named_calls.h"

#include <optional>
#include <string>

#include "api/output/json_scanner.h"
#include "api/output/literal_match.h"

namespace weir::api::output {

namespace {

constexpr size_t kNameBytesMax = 512;  // With an id.

class NamedCalls final : public CallReader {
 public:
  explicit NamedCalls(const NamedCallForm& form) : form_(form) {
    if (form.call_begin.empty())
      state_ = State::kName;
    else
      match_.expect(form.call_begin);
  }

  Step push(char byte, CallGate& gate, Pieces& out) override {
    switch (state_) {
      case State::kBegin:
        return begin(byte);
      case State::kName:
        return name(byte, gate, out);
      case State::kArguments:
        return arguments(byte, gate, out);
      case State::kEnd:
        return end(byte, gate, out);
    }
    return Step::kFail;
  }

  bool finish(CallGate& gate, Pieces& out) override {
    if (state_ == State::kEnd) return gate.end(out);  // The marker after the call is not missed.
    return state_ == State::kBegin && calls_ > 0;
  }

 private:
  enum class State : uint8_t { kBegin, kName, kArguments, kEnd };

  Step begin(char byte) {
    const std::optional<Step> step = begin_call(byte, match_, calls_);
    if (step) return *step;
    state_ = State::kName;
    name_.clear();
    return Step::kMore;
  }

  Step name(char byte, CallGate& gate, Pieces& out) {
    name_ += byte;
    if (name_.size() > kNameBytesMax) return Step::kFail;
    if (!name_.ends_with(form_.name_end)) return Step::kMore;
    std::string_view function = std::string_view(name_);
    function = trimmed(function.substr(0, name_.size() - form_.name_end.size()));
    std::string_view id;
    if (form_.kimi_names) {
      id = function;
      if (function.starts_with("functions.")) function.remove_prefix(10);
      function = function.substr(0, function.rfind(':'));
    } else if (!form_.id_end.empty()) {
      const size_t end = function.find(form_.id_end);
      if (end == std::string_view::npos) return Step::kFail;
      id = trimmed(function.substr(0, end));
      function = trimmed(function.substr(end + form_.id_end.size()));
    } else if (const size_t at =
                   form_.id_begin.empty() ? std::string_view::npos : function.find(form_.id_begin);
               at != std::string_view::npos) {
      id = trimmed(function.substr(at + form_.id_begin.size()));
      function = trimmed(function.substr(0, at));
    }
    state_ = State::kArguments;
    scanner_.reset();
    begun_ = false;
    return gate.begin(function, id, out) ? Step::kMore : Step::kFail;
  }

  Step arguments(char byte, CallGate& gate, Pieces& out) {
    if (!begun_) {
      if (is_space(byte)) return Step::kMore;
      if (byte != '{') return Step::kFail;
      begun_ = true;
    }
    const JsonScanner::Step step = scanner_.push(byte);
    if (step == JsonScanner::Step::kFail) return Step::kFail;
    gate.arguments({&byte, 1}, out);
    if (step == JsonScanner::Step::kMore) return Step::kMore;
    if (form_.call_end.empty()) return gate.end(out) ? Step::kDone : Step::kFail;
    state_ = State::kEnd;
    match_.expect(form_.call_end);
    return Step::kMore;
  }

  Step end(char byte, CallGate& gate, Pieces& out) {
    if (match_.fresh() && is_space(byte)) return Step::kMore;
    const int match = match_.push(byte);
    if (match == LiteralMatch::kMore) return Step::kMore;
    if (match == LiteralMatch::kNone || !gate.end(out)) return Step::kFail;
    ++calls_;
    if (form_.section_end.empty()) return Step::kDone;
    state_ = State::kBegin;
    match_.expect(form_.call_begin, form_.section_end);
    return Step::kMore;
  }

  const NamedCallForm form_;
  State state_ = State::kBegin;
  int calls_ = 0;
  bool begun_ = false;  // The arguments.
  std::string name_;
  JsonScanner scanner_;
  LiteralMatch match_;
};

}  // namespace

CallReaderPtr named_calls(const NamedCallForm& form) { return std::make_unique<NamedCalls>(form); }

}  // namespace weir::api::output
