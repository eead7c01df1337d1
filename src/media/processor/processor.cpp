// The families' processors, one function each: which keys they read, and what the reference takes
// where a key is missing.
#include "media/processor/processor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "card/config_reader.h"
#include "media/processor/tile_grid.h"

namespace weir::media {
namespace {

using card::ConfigReader;

// Beyond these no file of use goes. A side of 16,384 is four times the largest that is known.
constexpr int kSideMax = 16384;
constexpr double kPixelsMax = double{1 << 28};

constexpr std::array<float, 3> kHalf = {0.5f, 0.5f, 0.5f};
constexpr std::array<float, 3> kClipMean = {0.48145466f, 0.4578275f, 0.40821073f};
constexpr std::array<float, 3> kClipDeviation = {0.26862954f, 0.26130258f, 0.27577711f};
constexpr std::array<float, 3> kImageNetMean = {0.485f, 0.456f, 0.406f};
constexpr std::array<float, 3> kImageNetDeviation = {0.229f, 0.224f, 0.225f};

// The two files, and what of config.json the families look into.
struct Files {
  ConfigReader processor;
  ConfigReader config;
  std::optional<ConfigReader> vision;
  ConfigReader video;  // What says how large a video's frames are.

  // Of config.json's vision_config: an integer, or the first of two equal ones.
  int vision_side(std::string_view key, int fallback) const {
    if (!vision) return fallback;
    const std::vector<int> sides = vision->ints(key, 1);
    if (sides.empty()) return fallback;
    if (sides.front() > kSideMax || sides.back() != sides.front() || sides.size() > 2)
      vision->reject(concat({"config.json: '", key, "' of vision_config: expected one side up to ",
                             std::to_string(kSideMax)}));
    return sides.front();
  }
};

std::array<float, 3> colours(const ConfigReader& reader, std::string_view key,
                             std::array<float, 3> fallback) {
  const std::vector<float> numbers = reader.floats(key);
  if (numbers.empty()) return fallback;
  if (numbers.size() == 1) return {numbers[0], numbers[0], numbers[0]};
  if (numbers.size() != 3) {
    reader.wrong_type(key, "three numbers", *reader.value(key));
    return fallback;
  }
  return {numbers[0], numbers[1], numbers[2]};
}

// `key` is a number, or an object that has it as `name`.
int side(const ConfigReader& reader, std::string_view key, std::string_view name, int fallback) {
  const std::optional<JsonValue> value = reader.value(key);
  if (!value) return fallback;
  if (!value->is_object()) return reader.int_or(key, fallback, 1, kSideMax);
  const std::optional<ConfigReader> object = reader.child(key);
  return object ? object->int_or(name, fallback, 1, kSideMax) : fallback;
}

void read_box(Processor& out, const ConfigReader& reader, std::string_view key, int fallback) {
  out.height = side(reader, key, "height", fallback);
  out.width = side(reader, key, "width", fallback);
}

int64_t pixels(const ConfigReader& reader, std::string_view key, double fallback) {
  return static_cast<int64_t>(reader.number(key, 1, kPixelsMax).value_or(fallback));
}

void read_filter(Processor& out, const ConfigReader& reader, Filter fallback) {
  const int number = reader.int_or("resample", static_cast<int>(fallback));
  if (const std::optional<Filter> filter = filter_of(number)) {
    out.filter = *filter;
  } else {
    reader.wrong_type("resample", "a filter's number from 0 to 4", *reader.value("resample"));
  }
}

// What all processors have: the filter and what is done to the numbers.
void read_numbers(Processor& out, const ConfigReader& reader, Filter filter,
                  std::array<float, 3> mean, std::array<float, 3> deviation) {
  read_filter(out, reader, filter);
  reader.expect_bool("do_resize", true);
  out.scale = reader.bool_or("do_rescale", true)
                  ? static_cast<float>(reader.number("rescale_factor", 1e-6, 1).value_or(1.0 / 255))
                  : 1;
  if (reader.bool_or("do_normalize", true)) {
    out.mean = colours(reader, "image_mean", mean);
    out.deviation = colours(reader, "image_std", deviation);
  }
  for (const float deviation_of_colour : out.deviation)
    if (!(std::fabs(deviation_of_colour) > 1e-6f))
      reader.reject("'image_std': expected numbers that are not 0");
}

int square_root(const ConfigReader& reader, std::string_view key, int number) {
  const int root = static_cast<int>(std::lround(std::sqrt(number)));
  if (root * root == number) return root;
  reader.reject(concat({"'", key, "': expected a square, found ", std::to_string(number)}));
  return 1;
}

// How many pixels of a side become one token, of a tower that joins them by `ratio`, as 0.5.
int joined_patch(const Files& files, const ConfigReader& reader, std::string_view key) {
  const int patch = files.vision_side("patch_size", 14);
  const double ratio = reader.number(key, 1.0 / 16, 1).value_or(0.5);
  return static_cast<int>(std::lround(patch / ratio));
}

Placeholder run(std::string prompt, std::string image) {
  return {.prompt = std::move(prompt), .image = std::move(image)};
}

// Between which bounds areas lie. Newer files have them as the sides of `size`.
void read_bounds(const ConfigReader& reader, double least, double most, int64_t& pixels_min,
                 int64_t& pixels_max) {
  if (const std::optional<ConfigReader> size = reader.child("size")) {
    least = static_cast<double>(pixels(*size, "shortest_edge", least));
    most = static_cast<double>(pixels(*size, "longest_edge", most));
  }
  pixels_min = pixels(reader, "min_pixels", least);
  pixels_max = pixels(reader, "max_pixels", most);
  if (pixels_min > pixels_max)
    reader.reject(concat({"expected at least as many pixels at most as at least, found ",
                          std::to_string(pixels_max), " and ", std::to_string(pixels_min)}));
}

// Qwen2-VL to Qwen3.5.
void read_budget(Processor& out, const Files& files, int patch, double least, double most) {
  const ConfigReader& reader = files.processor;
  out.layout = PixelLayout::kBlocks;
  out.patch = reader.int_or("patch_size", patch, 1, 256);
  out.merge = reader.int_or("merge_size", 2, 1, 16);
  out.frames = reader.int_or("temporal_patch_size", 2, 1, 8);
  out.unit = out.patch * out.merge;
  read_bounds(reader, least, most, out.pixels_min, out.pixels_max);
}

// What the Qwen-VL families write of videos. Without a file of their own the bounds are the
// pictures', as far as that file says some.
void read_video(Processor& out, const Files& files, double least, double most) {
  VideoRules& video = out.video;
  video.taken = true;
  video.image = "<|video_pad|>";
  read_bounds(files.video, least, most, video.pixels_min, video.pixels_max);
  // Far more than a context holds.
  constexpr int kFramesMax = 1 << 14;
  constexpr double kRateMin = 0.001, kRateMax = 1000;
  video.rate = files.video.number("fps", kRateMin, kRateMax).value_or(video.rate);
  video.frames_min = files.video.int_or("min_frames", 4, 1, kFramesMax);
  video.frames_max = files.video.int_or("max_frames", 768, 1, kFramesMax);
}

Processor read_qwen2(const Files& files) {
  Processor out;
  out.sizing = Sizing::kPixelBudget;
  read_budget(out, files, 14, 56 * 56, 28 * 28 * 1280);
  read_numbers(out, files.processor, Filter::kBicubic, kClipMean, kClipDeviation);
  out.placeholder = run("<|image_pad|>", "<|image_pad|>");
  read_video(out, files, 128 * 28 * 28, 768 * 28 * 28);
  out.video.prompt = out.video.image;
  return out;
}

// Positions tell the time: two a second in published files.
Processor read_qwen2_5(const Files& files) {
  Processor out = read_qwen2(files);
  constexpr double kStepsMax = 1000;
  out.video.steps_per_second = 4;
  if (files.vision)
    out.video.steps_per_second = files.vision->number("tokens_per_second", 0.001, kStepsMax)
                                     .value_or(out.video.steps_per_second);
  return out;
}

Processor read_qwen3(const Files& files) {
  Processor out;
  out.sizing = Sizing::kPixelBudget;
  read_budget(out, files, 16, 256 * 256, 4096.0 * 4096);
  read_numbers(out, files.processor, Filter::kBicubic, kHalf, kHalf);
  out.placeholder = run("<|image_pad|>", "<|image_pad|>");
  read_video(out, files, 128 * 32 * 32, 768 * 32 * 32);
  out.video.together = true;
  out.video.times = true;
  out.video.to_the_end = true;
  out.video.before = "<|vision_start|>";
  out.video.after = "<|vision_end|>";
  out.video.prompt = concat({out.video.before, out.video.image, out.video.after});
  return out;
}

Processor read_glm(const Files& files) {
  Processor out;
  out.sizing = Sizing::kFrameBudget;
  read_budget(out, files, 14, 112 * 112, 28.0 * 28 * 15000);
  read_numbers(out, files.processor, Filter::kBicubic, kClipMean, kClipDeviation);
  out.placeholder = run("<|image|>", "<|image|>");
  return out;
}

Processor read_gemma3(const Files& files) {
  Processor out;
  files.processor.expect_bool("do_pan_and_scan", false);
  read_box(out, files.processor, "size", 896);
  read_numbers(out, files.processor, Filter::kBilinear, kHalf, kHalf);
  const int tokens = files.config.int_or("mm_tokens_per_image", 256, 1, kSideMax);
  out.unit = out.width / square_root(files.config, "mm_tokens_per_image", tokens);
  out.placeholder = {.prompt = "<start_of_image>",
                     .image = "<image_soft_token>",
                     .before = "\n\n<start_of_image>",
                     .after = "<end_of_image>\n\n"};
  return out;
}

Processor read_gemma4(const Files& files) {
  const ConfigReader& reader = files.processor;
  Processor out;
  out.sizing = Sizing::kPatchBudget;
  out.layout = PixelLayout::kPatches;
  out.patch = reader.int_or("patch_size", 16, 1, 256);
  out.unit = out.patch * reader.int_or("pooling_kernel_size", 3, 1, 16);
  const int64_t tokens = reader.int_or("max_soft_tokens", 280, 1, kSideMax);
  out.pixels_max = tokens * out.unit * out.unit;
  read_numbers(out, reader, Filter::kBicubic, {}, {1, 1, 1});
  out.placeholder = {.prompt = "<|image|>",
                     .image = "<|image|>",
                     .before = "<|image>",
                     .after = "<image|>"};
  return out;
}

Processor read_paligemma(const Files& files) {
  Processor out;
  read_box(out, files.processor, "size", 224);
  out.unit = files.vision_side("patch_size", 14);
  read_numbers(out, files.processor, Filter::kBicubic, kHalf, kHalf);
  out.placeholder = run("<image>", "<image>");
  out.placeholder.leads = true;
  return out;
}

Processor read_idefics3(const Files& files) {
  const ConfigReader& reader = files.processor;
  Processor out;
  out.sizing = Sizing::kTilesOfEdge;
  out.edge = side(reader, "size", "longest_edge", 4 * 364);
  out.width = out.height = side(reader, "max_image_size", "longest_edge", 364);
  out.tiles = reader.bool_or("do_image_splitting", true);
  out.unit =
      files.vision_side("patch_size", 14) * files.config.int_or("scale_factor", 2, 1, 16);
  read_numbers(out, reader, Filter::kLanczos, kHalf, kHalf);
  out.placeholder = {.style = PlaceholderStyle::kIdefics,
                     .prompt = "<image>",
                     .image = "<image>",
                     .before = "<fake_token_around_image>",
                     .after = "<fake_token_around_image>",
                     .whole = "<global-img>"};
  return out;
}

Processor read_pixtral(const Files& files, int merge) {
  const ConfigReader& reader = files.processor;
  Processor out;
  out.sizing = Sizing::kLongestEdge;
  out.edge = side(reader, "size", "longest_edge", 1024);
  out.patch = side(reader, "patch_size", "height", 16);
  out.unit = out.patch * merge;
  read_numbers(out, reader, Filter::kBicubic, kClipMean, kClipDeviation);
  out.placeholder = {.style = PlaceholderStyle::kRows,
                     .prompt = "[IMG]",
                     .image = "[IMG]",
                     .after = "[IMG_END]",
                     .row_end = "[IMG_BREAK]"};
  return out;
}

Processor read_mistral3(const Files& files) {
  return read_pixtral(files, files.config.int_or("spatial_merge_size", 2, 1, 16));
}

// A square from the middle of the picture.
Processor read_clip(const Files& files, int edge, int patch) {
  const ConfigReader& reader = files.processor;
  Processor out;
  out.sizing = Sizing::kShortestEdge;
  out.edge = side(reader, "size", "shortest_edge", edge);
  reader.expect_bool("do_center_crop", true);
  read_box(out, reader, "crop_size", edge);
  out.unit = patch;
  read_numbers(out, reader, Filter::kBicubic, kClipMean, kClipDeviation);
  out.placeholder = run("<image>", "<image>");
  return out;
}

Processor read_llava(const Files& files) {
  if (files.vision && files.vision->string_or("model_type", "") == "pixtral")
    return read_pixtral(files, 1);
  const std::string taken = files.config.string_or("vision_feature_select_strategy", "default");
  if (taken != "default")
    files.config.reject(concat({"'vision_feature_select_strategy': expected \"default\", found \"",
                                taken, "\""}));
  return read_clip(files, 336, files.vision_side("patch_size", 14));
}

Processor read_fastvlm(const Files& files) {
  return read_clip(files, 1024, files.vision_side("patch_size", 64));
}

Processor read_lfm2(const Files& files) {
  const ConfigReader& reader = files.processor;
  Processor out;
  out.sizing = Sizing::kTilesIfLarge;
  out.layout = PixelLayout::kPatches;
  out.patch = reader.int_or("encoder_patch_size", 16, 1, 256);
  out.unit = out.patch * reader.int_or("downsample_factor", 2, 1, 16);
  const int64_t unit_pixels = int64_t{out.unit} * out.unit;
  out.pixels_min = reader.int_or("min_image_tokens", 64, 1, kSideMax) * unit_pixels;
  out.pixels_max = reader.int_or("max_image_tokens", 256, 1, kSideMax) * unit_pixels;
  out.tiles = reader.bool_or("do_image_splitting", true);
  out.whole = reader.bool_or("use_thumbnail", true);
  out.width = out.height = side(reader, "tile_size", "height", 512);
  out.tiles_min = reader.int_or("min_tiles", 2, 1, kTilesMax);
  out.tiles_max = reader.int_or("max_tiles", 10, out.tiles_min, kTilesMax);
  out.large_from = reader.number("max_pixels_tolerance", 0.01, 1000).value_or(2);
  read_numbers(out, reader, Filter::kBilinear, kHalf, kHalf);
  out.placeholder = {.style = PlaceholderStyle::kLfm2,
                     .prompt = "<image>",
                     .image = "<image>",
                     .before = "<|image_start|>",
                     .after = "<|image_end|>",
                     .whole = "<|img_thumbnail|>"};
  return out;
}

Placeholder internvl_placeholder() {
  return {.prompt = "<IMG_CONTEXT>",
          .older = "<image>",
          .image = "<IMG_CONTEXT>",
          .before = "<img>",
          .after = "</img>"};
}

// Published files leave `crop_to_patches` false, and the reference's processor of text and images
// sets it: tiles are always made.
Processor read_internvl(const Files& files) {
  const ConfigReader& reader = files.processor;
  Processor out;
  out.sizing = Sizing::kTilesByShape;
  read_box(out, reader, "size", 448);
  out.tiles_min = reader.int_or("min_patches", 1, 1, kTilesMax);
  out.tiles_max = reader.int_or("max_patches", 12, out.tiles_min, kTilesMax);
  out.unit = joined_patch(files, files.config, "downsample_ratio");
  read_numbers(out, reader, Filter::kBicubic, kImageNetMean, kImageNetDeviation);
  out.placeholder = internvl_placeholder();
  return out;
}

// The older layout, whose reference has the means as constants and everything else in config.json.
// The file beside that, CLIP's, has the same means and filter, which count where they are others;
// what it says of sizes does not.
Processor read_internvl_chat(const Files& files) {
  const ConfigReader& config = files.config;
  Processor out;
  out.sizing = Sizing::kTilesByShape;
  out.width = out.height =
      config.int_or("force_image_size", files.vision_side("image_size", 224), 1, kSideMax);
  config.expect_bool("pad2square", false);
  const int least = config.int_or("min_dynamic_patch", 1, 1, kTilesMax);
  const int most = config.int_or("max_dynamic_patch", 6, least, kTilesMax);
  if (config.bool_or("dynamic_image_size", false)) {
    out.tiles_min = least;
    out.tiles_max = most;
  }
  out.whole = config.bool_or("use_thumbnail", false);
  out.unit = joined_patch(files, config, "downsample_ratio");
  read_numbers(out, files.processor, Filter::kBicubic, kImageNetMean, kImageNetDeviation);
  out.placeholder = internvl_placeholder();
  return out;
}

Processor read_llama4(const Files& files) {
  const ConfigReader& reader = files.processor;
  Processor out;
  out.sizing = Sizing::kTilesOfCanvas;
  read_box(out, reader, "size", 336);
  if (out.width != out.height) reader.reject("'size': expected a square");
  out.tiles_max = reader.int_or("max_patches", 16, 1, kTilesMax);
  out.largest_canvas = reader.bool_or("resize_to_max_canvas", false);
  out.bf16 = true;
  read_numbers(out, reader, Filter::kBilinear, kHalf, kHalf);
  out.unit = files.vision ? joined_patch(files, *files.vision, "pixel_shuffle_ratio") : 28;
  out.placeholder = {.style = PlaceholderStyle::kLlama4,
                     .prompt = "<|image|>",
                     .image = "<|patch|>",
                     .before = "<|image_start|>",
                     .after = "<|image_end|>",
                     .row_end = "<|tile_x_separator|>",
                     .whole = "<|image|>"};
  return out;
}

struct Family {
  std::string_view model_type;
  Processor (*read)(const Files& files);
  bool by_config = false;  // preprocessor_config.json may be missing.
};

constexpr std::array kFamilies = {
    Family{"qwen2_vl", read_qwen2},       Family{"qwen2_5_vl", read_qwen2_5},
    Family{"qwen3_vl", read_qwen3},       Family{"qwen3_vl_moe", read_qwen3},
    Family{"qwen3_5", read_qwen3},        Family{"qwen3_5_moe", read_qwen3},
    Family{"glm4v", read_glm},            Family{"glm_ocr", read_glm},
    Family{"gemma3", read_gemma3},        Family{"gemma4", read_gemma4},
    Family{"paligemma", read_paligemma},  Family{"idefics3", read_idefics3},
    Family{"smolvlm", read_idefics3},     Family{"mistral3", read_mistral3},
    Family{"llava", read_llava},          Family{"lfm2_vl", read_lfm2},
    Family{"internvl", read_internvl},    Family{"llama4", read_llama4},
    Family{"llava_qwen2", read_fastvlm},
    Family{"internvl_chat", read_internvl_chat, /*by_config=*/true},
};

// A view of less than one token would give nothing.
Result<void> check_unit(const Processor& processor) {
  const int least = processor.width == 0 ? processor.unit
                                         : std::min(processor.width, processor.height);
  if (processor.unit >= 1 && processor.unit <= least) return {};
  return fail(ErrorCode::kConfig,
              concat({"preprocessor_config.json: expected sides of at least one token (",
                      std::to_string(processor.unit), " pixels), found ", std::to_string(least)}));
}

}  // namespace

Result<Processor> read_processor(std::optional<JsonValue> given, JsonValue config) {
  const char* kFile = "preprocessor_config.json";
  WEIR_ASSIGN(const JsonDoc nothing, JsonDoc::parse("{}"));
  const JsonValue preprocessor = given.value_or(nothing.root());
  JsonObject object;
  std::optional<JsonValue> within, video;
  if (preprocessor.get(object) == simdjson::SUCCESS) {
    within = json_get(object, "image_processor");
    video = json_get(object, "video_processor");
  }
  const ConfigReader reader(config);
  const Files files = {ConfigReader(within.value_or(preprocessor), kFile), reader,
                       reader.child("vision_config"),
                       ConfigReader(video.value_or(within.value_or(preprocessor)),
                                    video ? "video_preprocessor_config.json" : kFile)};
  const std::string type = reader.string_or("model_type", "");
  WEIR_TRY(reader.status());
  WEIR_TRY(files.processor.status());
  WEIR_TRY(files.video.status());
  for (const Family& family : kFamilies) {
    if (family.model_type != type) continue;
    if (!given && !family.by_config)
      return fail(ErrorCode::kUnsupported, concat({kFile, " is not among its files"}));
    const Processor processor = family.read(files);
    WEIR_TRY(files.processor.status());
    WEIR_TRY(files.video.status());
    WEIR_TRY(reader.status());
    WEIR_TRY(check_unit(processor));
    return processor;
  }
  return fail(ErrorCode::kUnsupported,
              concat({"config.json: images of the family \"", type.substr(0, 60),
                      "\" are not computed"}));
}

}  // namespace weir::media
