// Processor: what a model wants of a picture or of a video's frames, as data: which sizes, cut how,
// which numbers, how many rows of features come of it and what stands for them in a prompt. Read from
// the files that a model comes with; plan_image(), plan_video(), pixel_values() and
// placeholder_text() do what it says.
//
// Threads: a value, shared once it is read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "media/resize/filter.h"
#include "media/resize/resize.h"

namespace weir::media {

// Which size a picture gets (image_plan.cpp has what each computes).
enum class Sizing : uint8_t {
  kFixed,         // `size`, whatever shape it had: SigLIP, gemma3, paligemma.
  kShortestEdge,  // The shorter side is `edge`, and the middle is cut out: CLIP.
  kLongestEdge,   // At most `edge`, sides rounded up to whole tokens: pixtral, mistral3.
  kPixelBudget,   // Whole tokens, an area between two bounds: the Qwen-VL families.
  kFrameBudget,   // The same, the bounds counting a picture's frames: glm4v.
  kPatchBudget,   // Whole tokens, as large as `pixels_max` allows: gemma4.
  kTilesOfEdge,   // The longer side is `edge`, cut in tiles, and the whole: idefics3, smolvlm.
  kTilesByShape,  // The grid of tiles nearest in shape, and the whole: internvl.
  kTilesIfLarge,  // One picture within a budget; a grid of tiles of what is much larger: lfm2_vl.
  kTilesOfCanvas  // The canvas of tiles that keeps most, filled up with black, and the whole: llama4.
};

// In which order a view's numbers lie.
enum class PixelLayout : uint8_t {
  kPlanes,   // [3, height, width].
  kPatches,  // [patches, patch * patch * 3]: patches by rows; within one row, column, colour.
  kBlocks    // [patches, 3 * frames * patch * patch]: patches by blocks of merge x merge; within
             // one colour, frame, row, column. A picture is its own next frame.
};

// How the text is made that stands for a picture (placeholder.cpp).
enum class PlaceholderStyle : uint8_t {
  kRun,         // before, image..., after.
  kRows,        // pixtral: a mark after each row of tokens, another after the last.
  kIdefics,     // A mark and a place before each tile.
  kLfm2,        // A place before each tile, one mark around all.
  kLlama4       // Marks between tiles.
};

struct Placeholder {
  PlaceholderStyle style = PlaceholderStyle::kRun;
  std::string prompt{};   // What a template writes where a picture is.
  std::string older{};    // What older templates of the family write there; empty: the same.
  std::string image{};    // The token for which a row of features stands.
  std::string before{};
  std::string after{};
  std::string row_end{};  // kRows: between rows. kLlama4: between tiles.
  bool leads = false;     // In prompts that no template writes pictures come first, then BOS and text.
  std::string whole{};    // Before the whole picture after its tiles; kLlama4: also without tiles.
};

// Of a video, which is pictures one after another: as many as a patch has frames are a moment, and a
// moment is one view.
struct VideoRules {
  bool taken = false;      // The family reads videos here.
  bool together = false;   // The bounds count the pixels of all frames, else those of each.
  int64_t pixels_min = 0;
  int64_t pixels_max = 0;
  std::string prompt{};  // What a template writes where a video is.
  std::string image{};   // The token for which a row of features stands.
  // Before each moment its time ("<0.5 seconds>"), and these around its rows. Else all rows of a
  // video are one run, and times are in its positions:
  bool times = false;
  std::string before{};
  std::string after{};
  double steps_per_second = 0;  // Positions in time; 0: one a moment.
  // Which frames of a file are taken (frame_times.h): so many a second, from the first frame to the
  // last, or the first of each of so many parts.
  double rate = 2;
  int64_t frames_min = 4;
  int64_t frames_max = 768;
  bool to_the_end = false;
};

struct Processor {
  Sizing sizing = Sizing::kFixed;
  Filter filter = Filter::kBicubic;
  Arithmetic arithmetic = Arithmetic::kTorch;  // What the recorded answers were computed with.
  PixelLayout layout = PixelLayout::kPlanes;
  int patch = 14;  // Pixels of a patch's side (kPatches, kBlocks).
  int merge = 1;   // Patches of a block's side (kBlocks).
  int frames = 1;  // That a patch has (kBlocks), and that kFrameBudget counts.
  int unit = 14;   // Pixels of the side of what becomes one token.

  int width = 0;   // kFixed; a tile's, where there are tiles; what kShortestEdge cuts out.
  int height = 0;
  int edge = 0;    // kShortestEdge, kLongestEdge, kTilesOfEdge.
  int64_t pixels_min = 0;  // The budgets.
  int64_t pixels_max = 0;
  int tiles_min = 1;
  int tiles_max = 1;
  bool tiles = true;              // kTilesOfEdge, kTilesIfLarge: cut at all.
  bool whole = true;              // The whole picture after its tiles, where there are several.
  bool largest_canvas = false;    // kTilesOfCanvas: enlarge as far as a canvas allows.
  double large_from = 1;          // kTilesIfLarge: of pixels_max, what is much larger.

  float scale = 1.0f / 255;  // value = (byte * scale - mean) / deviation.
  std::array<float, 3> mean{};
  std::array<float, 3> deviation{1, 1, 1};
  bool bf16 = false;  // Each of the three steps is rounded to bf16, as llama4's processor does it.

  Placeholder placeholder{};
  VideoRules video{};
};

// Of preprocessor_config.json (or processor_config.json, which has the same within) and config.json.
// `video_processor` within says how large the frames of videos are. Without the first file only
// families are read whose config.json says it all.
// kUnsupported for a family that has no processor here, and for one that lacks the file; kConfig
// names the key that is wrong.
Result<Processor> read_processor(std::optional<JsonValue> preprocessor, JsonValue config);

}  // namespace weir::media
