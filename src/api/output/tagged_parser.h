// TaggedParser: outputs that are content but for what stands between markers: reasoning at the
// beginning, calls anywhere after it. All formats but gpt-oss's, whose outputs are made of
// messages.
//
// Threads: as OutputParser.
#pragma once

#include <optional>
#include <string>

#include "api/output/call_gate.h"
#include "api/output/call_reader.h"
#include "api/output/output_parser.h"

namespace weir::api::output {

class TaggedParser final : public OutputParser {
 public:
  explicit TaggedParser(const ParserOptions& options);

  void push(std::string_view text, Pieces& out) override;
  void finish(Pieces& out) override;
  bool in_reasoning() const override { return state_ == State::kReasoning; }

 private:
  enum class State : uint8_t { kStart, kReasoning, kHeader, kContent, kCall };

  void run(bool final, Pieces& out);
  // Each returns how many bytes it has dealt with, or nothing if it must see more first.
  std::optional<size_t> start(std::string_view text, bool final, Pieces& out);
  std::optional<size_t> reasoning(std::string_view text, bool final, Pieces& out);
  std::optional<size_t> header(std::string_view text, bool final);
  std::optional<size_t> content(std::string_view text, bool final, Pieces& out);
  std::optional<size_t> bare_call(std::string_view text, bool final);
  size_t call(std::string_view text, Pieces& out);
  std::string begun_marker();
  void end_call(bool failed, Pieces& out);

  const ParserOptions& options_;
  State state_ = State::kContent;
  bool skip_space_ = false;  // What comes next stands after a marker.
  bool bare_ = true;         // A call without a marker may begin here.
  std::string held_;
  std::string again_;  // The beginning of a marker that came with an earlier text.
  CallGate gate_;
  std::string_view marker_;  // Of the call,
  CallReaderPtr reader_;     // and its reader, once its first byte is known.
};

}  // namespace weir::api::output
