#include "media/processor/placeholder.h"

#include <cstdint>

#include "base/concat.h"

namespace weir::media {
namespace {

void append_times(std::string& out, const std::string& text, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out += text;
}

std::string place(const char* begin, int row, const char* between, int column, const char* end) {
  return concat({begin, std::to_string(row + 1), between, std::to_string(column + 1), end});
}

// Writes what is told of each tile, and `row_end` after each row of them.
template <class WriteTile>
void append_tiles(std::string& out, TileGrid grid, const std::string& row_end, WriteTile&& tile) {
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column) tile(row, column);
    out += row_end;
  }
}

void append_rows(std::string& out, const Placeholder& marks, Size tokens) {
  for (int64_t row = 0; row < tokens.height; ++row) {
    append_times(out, marks.image, tokens.width);
    out += row + 1 < tokens.height ? marks.row_end : marks.after;
  }
}

struct Counts {
  int64_t tile = 0;   // Tokens of a tile,
  int64_t whole = 0;  // and of the whole picture after the tiles, or of the only view.
};

void append_idefics(std::string& out, const Placeholder& marks, TileGrid grid, Counts counts) {
  if (grid.tiles() > 1) {
    append_tiles(out, grid, "\n", [&](int row, int column) {
      out += marks.before + place("<row_", row, "_col_", column, ">");
      append_times(out, marks.image, counts.tile);
    });
    out += "\n";
  }
  out += marks.before + marks.whole;
  append_times(out, marks.image, counts.whole);
  out += marks.after;
}

void append_lfm2(std::string& out, const Placeholder& marks, TileGrid grid, Counts counts) {
  out += marks.before;
  if (grid.tiles() > 1) {
    append_tiles(out, grid, "", [&](int row, int column) {
      out += place("<|img_row_", row, "_col_", column, "|>");
      append_times(out, marks.image, counts.tile);
    });
    if (counts.whole > 0) out += marks.whole;
  }
  append_times(out, marks.image, counts.whole);
  out += marks.after;
}

void append_llama4(std::string& out, const Placeholder& marks, TileGrid grid, Counts counts) {
  constexpr const char* kRowEnd = "<|tile_y_separator|>";
  out += marks.before;
  if (grid.tiles() > 1)
    append_tiles(out, grid, kRowEnd, [&](int, int column) {
      append_times(out, marks.image, counts.tile);
      if (column + 1 < grid.columns) out += marks.row_end;
    });
  out += marks.whole;
  append_times(out, marks.image, counts.whole);
  out += marks.after;
}

}  // namespace

std::string placeholder_text(const Processor& processor, const ImagePlan& plan) {
  const Placeholder& marks = processor.placeholder;
  const Size tile = token_grid(processor, plan.tile());
  const bool single = plan.views() == 1;
  const Counts counts = {tile.pixels(),
                         single ? tile.pixels() : token_grid(processor, plan.whole).pixels()};
  std::string out;
  switch (marks.style) {
    case PlaceholderStyle::kRun:
      out += marks.before;
      append_times(out, marks.image, token_count(processor, plan));
      out += marks.after;
      break;
    case PlaceholderStyle::kRows:
      append_rows(out, marks, tile);
      break;
    case PlaceholderStyle::kIdefics:
      append_idefics(out, marks, plan.grid, counts);
      break;
    case PlaceholderStyle::kLfm2:
      append_lfm2(out, marks, plan.grid, counts);
      break;
    case PlaceholderStyle::kLlama4:
      append_llama4(out, marks, plan.grid, counts);
      break;
  }
  return out;
}

std::string mark_in(const Placeholder& marks, std::string_view chat_template) {
  const auto has = [&](const std::string& mark) {
    return !mark.empty() && chat_template.find(mark) != std::string_view::npos;
  };
  return !has(marks.prompt) && has(marks.older) ? marks.older : marks.prompt;
}

}  // namespace weir::media
