// What a parser makes of a text, written so that a test can say it in a line: reasoning in ⟨⟩,
// content as it is, calls as «name:arguments» (without the » where the output has cut them).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/output/call_format.h"
#include "api/output/output_parser.h"
#include "api/output/pieces.h"
#include "api/output/reasoning_format.h"

namespace weir::api::output {

inline std::vector<CallableFunction> test_functions() {
  return {{"get_weather", {"city"}}, {"add", {}}, {"write_file", {"path", "text"}}, {"now", {}}};
}

inline ParserOptions parser_options(std::string_view calls, std::string_view reasoning = {}) {
  ParserOptions options;
  if (!calls.empty()) {
    options.calls = find_calls(calls);
    EXPECT_NE(options.calls, nullptr) << calls;
  }
  if (!reasoning.empty()) {
    options.reasoning = find_reasoning(reasoning);
    EXPECT_NE(options.reasoning, nullptr) << reasoning;
  }
  options.functions = test_functions();
  return options;
}

class Described {
 public:
  void take(Pieces& pieces) {
    for (size_t i = 0; i < pieces.size(); ++i) take(pieces[i]);
    pieces.clear();
  }
  std::string text() { return end_reasoning(), text_; }

 private:
  void take(const Piece& piece) {
    if (piece.kind != PieceKind::kReasoning) end_reasoning();
    switch (piece.kind) {
      case PieceKind::kReasoning:
        if (!reasoning_) text_ += "⟨";
        reasoning_ = true;
        break;
      case PieceKind::kContent:
        EXPECT_FALSE(call_) << "text within a call";
        break;
      case PieceKind::kCallBegin:
        EXPECT_FALSE(call_) << "a call within a call";
        call_ = true;
        text_ += "«" + std::string(piece.text);
        if (!piece.id.empty()) text_ += "#" + std::string(piece.id);
        text_ += ":";
        return;
      case PieceKind::kCallArguments:
        EXPECT_TRUE(call_);
        break;
      case PieceKind::kCallEnd:
        EXPECT_TRUE(call_);
        call_ = false;
        text_ += "»";
        return;
    }
    text_ += piece.text;
  }
  void end_reasoning() {
    if (reasoning_) text_ += "⟩";
    reasoning_ = false;
  }

  std::string text_;
  bool reasoning_ = false, call_ = false;
};

// The text in parts that end at `cuts`.
inline std::string parse_cut(const ParserOptions& options, std::string_view text,
                             const std::vector<size_t>& cuts) {
  const auto parser = make_parser(options);
  Described described;
  Pieces pieces;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    parser->push(text.substr(begin, cut - begin), pieces);
    described.take(pieces);
    begin = cut;
  }
  parser->push(text.substr(begin), pieces);
  parser->finish(pieces);
  described.take(pieces);
  return described.text();
}

// Whole, cut in two everywhere, byte by byte, and in threes: all the same.
inline std::string parse(const ParserOptions& options, std::string_view text) {
  const std::string whole = parse_cut(options, text, {});
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(parse_cut(options, text, {cut}), whole) << "cut at " << cut;
  for (const size_t step : {1, 3, 7}) {
    std::vector<size_t> cuts;
    for (size_t cut = step; cut < text.size(); cut += step) cuts.push_back(cut);
    EXPECT_EQ(parse_cut(options, text, cuts), whole) << "in pieces of " << step;
  }
  return whole;
}

}  // namespace weir::api::output
