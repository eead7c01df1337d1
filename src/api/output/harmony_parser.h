// HarmonyParser: outputs made of messages, as gpt-oss writes them:
//   <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
// A message's channel says whether it is reasoning (analysis) or content; one that is sent to
// `functions.NAME` is a call.
//
// Threads: as OutputParser.
#pragma once

#include <string>

#include "api/output/call_gate.h"
#include "api/output/json_scanner.h"
#include "api/output/output_parser.h"

namespace weir::api::output {

class HarmonyParser final : public OutputParser {
 public:
  explicit HarmonyParser(const ParserOptions& options) : options_(options), gate_(options) {}

  void push(std::string_view text, Pieces& out) override;
  void finish(Pieces& out) override;
  bool in_reasoning() const override { return state_ == State::kBody && reasoning_; }

 private:
  enum class State : uint8_t { kHeader, kBody, kCall, kCallEnd };

  void run(bool final, Pieces& out);
  size_t header(std::string_view text, bool final, Pieces& out);
  size_t body(std::string_view text, bool final, Pieces& out);
  size_t call(std::string_view text, Pieces& out);
  size_t call_end(std::string_view text);
  void begin_body(std::string_view header, Pieces& out);
  void show(std::string_view text, Pieces& out) const;
  void fail_call(Pieces& out);

  const ParserOptions& options_;
  State state_ = State::kHeader;
  bool reasoning_ = false;  // The message is.
  std::string held_;
  CallGate gate_;
  JsonScanner arguments_;
  bool begun_ = false;  // The arguments.
};

}  // namespace weir::api::output
