// RouteTrace: which experts each layer chose, row by row, as a text file: for replays, and to
// settle arguments.
//
//   weir-route-trace 1 LAYERS EXPERTS TOP_K
//   KIND STEP LAYER SEQUENCE EXPERT...       best first; one line per row of a layer
//
// KIND is `d` for a generated token, `p` for a row of a prompt (TOP_K experts each), `a` for what
// the layer's router said of the state one layer earlier (up to EXPERTS). Steps never fall, and
// within a step layers never fall; a lookahead stands before its layer.
//
// Threads: plain data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::measure {

enum class RouteKind : uint8_t { kDecode, kPrompt, kLookahead };

struct RouteRow {
  int32_t step = 0;
  int32_t layer = 0;
  int32_t sequence = 0;
  RouteKind kind = RouteKind::kDecode;
  int32_t count = 0;   // Of experts.
  uint64_t first = 0;  // Index of its first expert in the trace's list.
};

class RouteTrace {
 public:
  static constexpr int32_t kLayersMax = 4096;
  static constexpr int32_t kExpertsMax = 32767;  // Fits int16_t.
  static constexpr int32_t kSequencesMax = 65536;

  RouteTrace(int32_t layers, int32_t experts, int32_t top_k);
  // Whatever the text holds: an error names the line, what was expected and what was found.
  static Result<RouteTrace> parse(std::string_view text, const std::string& name);

  // REQUIRES: what the format says.
  void add(RouteKind kind, int32_t step, int32_t layer, int32_t sequence,
           std::span<const int32_t> experts);

  int32_t layers() const { return layers_; }
  int32_t experts() const { return experts_; }
  int32_t top_k() const { return top_k_; }
  std::span<const RouteRow> rows() const { return rows_; }
  std::span<const int32_t> experts_of(const RouteRow& row) const {
    return std::span(list_).subspan(row.first, static_cast<size_t>(row.count));
  }

 private:
  std::string problem(RouteKind kind, int32_t step, int32_t layer, int32_t sequence,
                      std::span<const int32_t> experts);

  int32_t layers_;
  int32_t experts_;
  int32_t top_k_;
  std::vector<RouteRow> rows_;
  std::vector<int32_t> list_;
  std::vector<uint64_t> seen_;  // [experts]: the row that named an expert last, counted from 1.
  uint64_t checked_ = 0;
};

// The same rows as generated tokens: each token of a prompt becomes a step of its own, so that a
// text that was read in chunks is replayed as if it had been generated.
RouteTrace as_generated(const RouteTrace& trace);

// Appends the file's first line, and a row's line.
void append_header(std::string& out, int32_t layers, int32_t experts, int32_t top_k);
void append_row(std::string& out, RouteKind kind, int32_t step, int32_t layer, int32_t sequence,
                std::span<const int32_t> experts);
std::string to_text(const RouteTrace& trace);
Result<void> write_file(const RouteTrace& trace, const std::string& path);

}  // namespace weir::measure
