#include "api/pictures/picture_set.h"

#include <algorithm>
#include <utility>

#include "api/memory/request_memory.h"
#include "api/pictures/picture_memory.h"
#include "api/request/json_fields.h"
#include "base/base64.h"
#include "base/check.h"
#include "base/concat.h"
#include "base/file_below.h"
#include "media/image/decode.h"
#include "media/processor/pixel_values.h"
#include "media/resize/resize.h"

namespace weir::api {

namespace {

// OpenAI's detail "low".
constexpr int kLowSide = 512;

Result<void> check_source(const ApiConfig& config, const PictureSource& source) {
  if (source.kind == PictureSource::Kind::kRemote && config.media == nullptr)
    return unsupported(source.field,
                       "this server fetches nothing from web addresses (--allow-remote-media): send "
                       "the image itself, as a data: URL");
  if (source.kind == PictureSource::Kind::kFile && config.pictures.folder.empty())
    return unsupported(source.field,
                       "this server reads no files of its own (--media-path): send the image "
                       "itself, as a data: URL");
  return {};
}

// Digits in fours, the last ones filled up with '='.
Result<std::string> decode_digits(const PictureSource& source, size_t bytes_max) {
  const std::string_view digits = source.text;
  constexpr size_t kGroup = 4, kGroupBytes = 3;
  if (digits.size() / kGroup * kGroupBytes > bytes_max + kGroupBytes)
    return fail(ErrorCode::kTooLarge,
                concat({"it has about ", std::to_string(digits.size() / kGroup * kGroupBytes),
                        " bytes; at most ", std::to_string(bytes_max), " are read"}));
  const size_t filled = digits.size() - (digits.find_last_not_of('=') + 1);
  std::optional<std::string> bytes;
  if (digits.size() % kGroup == 0 && filled < kGroup - 1) bytes = decode_base64(digits);
  if (!bytes)
    return fail(ErrorCode::kInvalid,
                "expected base64: A-Z, a-z, 0-9, + and /, in fours that = fills up, found "
                "something else");
  return std::move(*bytes);
}

// A path after "file:", as it is below the folder: as such, or whole and in the folder.
Result<std::string_view> path_below(std::string_view path, std::string_view folder) {
  if (path.starts_with("//")) path.remove_prefix(2);
  if (!path.starts_with('/')) return path;
  while (folder.ends_with('/')) folder.remove_suffix(1);
  if (path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/')
    return path.substr(folder.size() + 1);
  return fail(ErrorCode::kInvalid,
              "expected a file below the folder that --media-path names, found another");
}

media::Image within_side(media::Image image, int side) {
  const int longer = std::max(image.width, image.height);
  if (longer <= side) return image;
  const auto scaled = [&](int length) {
    return std::max(1, static_cast<int>(int64_t{length} * side / longer));
  };
  return media::resize(image, scaled(image.width), scaled(image.height), media::Filter::kBicubic,
                       media::Arithmetic::kTorch);
}

}  // namespace

Result<void> check_pictures(const ApiConfig& config, std::span<const PictureSource> sources) {
  if (sources.empty()) return {};
  if (config.processor == nullptr)
    return unsupported(sources.front().field,
                       concat({"this model does not support images: ", config.images_refusal}));
  const auto most = static_cast<size_t>(config.pictures.count_max);
  if (sources.size() > most)
    return picture_error(sources[most].field,
                         concat({"a request may have at most ", std::to_string(most),
                                 " images (--max-images), this one has ",
                                 std::to_string(sources.size())}),
                         "too_many_images");
  for (const PictureSource& source : sources) WEIR_TRY(check_source(config, source));
  return {};
}

Error PictureSet::want(const ApiConfig& config, std::vector<PictureSource> sources,
                       const Aim& aim) {
  CHECK(!wanted_ && !read_);
  config_ = &config;
  aim_ = aim;
  sources_ = std::move(sources);
  files_.resize(sources_.size());
  wanted_ = true;
  return {ErrorCode::kCancelled, "The images are to be read first."};
}

std::optional<Result<std::span<const SeenPicture>>> PictureSet::seen() const {
  if (!read_) return std::nullopt;
  if (error_) return tl::unexpected<Error>(*error_);
  return std::span<const SeenPicture>(seen_);
}

std::vector<std::string> PictureSet::addresses() const {
  std::vector<std::string> addresses;
  for (const PictureSource& source : sources_)
    if (source.kind == PictureSource::Kind::kRemote) addresses.push_back(source.text);
  return addresses;
}

void PictureSet::set_files(std::vector<Result<std::string>> files) {
  auto file = files.begin();
  for (size_t i = 0; i < sources_.size(); ++i)
    if (sources_[i].kind == PictureSource::Kind::kRemote) files_[i] = std::move(*file++);
  CHECK(file == files.end());
}

Result<void> PictureSet::admit(MemoryBudget& budget, size_t bytes) {
  return lease_picture(budget, aim_.caller, lease_, bytes);
}

void PictureSet::fail(Error error) {
  error_ = std::move(error);
  wanted_ = false;
  read_ = true;
  sources_.clear();
  files_.clear();
  lease_ = {};
}

void PictureSet::read(MemoryBudget& budget, const grammar::Interrupt& interrupt) {
  CHECK(wanted_);
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (interrupt.stopped()) return fail({ErrorCode::kCancelled, "The client has left."});
    Result<SeenPicture> seen = see(budget, i);
    if (!seen) return fail(std::move(seen).error());
    seen_.push_back(*std::move(seen));
  }
  wanted_ = false;
  read_ = true;
  sources_.clear();
  files_.clear();
  lease_ = {};
}

Result<std::string> PictureSet::bytes_of(MemoryBudget& budget, size_t index) {
  const PictureSource& source = sources_[index];
  const size_t bytes_max = config_->pictures.file_bytes_max;
  if (source.kind == PictureSource::Kind::kRemote) {
    CHECK(files_[index].has_value());
    return *std::exchange(files_[index], std::nullopt);
  }
  Result<std::string> bytes;
  if (source.kind == PictureSource::Kind::kBase64) {
    bytes = decode_digits(source, bytes_max);
  } else {
    WEIR_ASSIGN(const std::string_view path, path_below(source.text, config_->pictures.folder));
    bytes = read_file_below(config_->pictures.folder, path, bytes_max);
  }
  if (bytes) WEIR_TRY(admit(budget, bytes->size()));
  return bytes;
}

// Refuses what will not fit the context before anything is computed of it.
Result<void> PictureSet::check_tokens(const PictureSource& source, const media::ImagePlan& plan) {
  tokens_ += media::token_count(*config_->processor, plan);
  if (tokens_ <= aim_.tokens_max) return {};
  const std::string most = std::to_string(aim_.tokens_max), found = std::to_string(tokens_);
  return weir::fail(ErrorCode::kContextLength,
                    concat({"This model's maximum context length is ", most,
                            " tokens. However, your images alone resulted in at least ", found,
                            " tokens (context_length_exceeded). Please send fewer or smaller "
                            "images. The prompt is too long: ",
                            found, " tokens > ", most, " maximum"}),
                    source.field, "context_length_exceeded");
}

Result<SeenPicture> PictureSet::see(MemoryBudget& budget, size_t index) {
  const PictureSource& source = sources_[index];
  const auto of_picture = [&](const Error& error) {
    return picture_error(source.field, error);
  };
  const media::Processor& processor = *config_->processor;
  Result<std::string> bytes = bytes_of(budget, index);
  if (!bytes) return of_picture(bytes.error());
  MemoryLease decoding;
  const media::ImageLimits limits = {
      .file_bytes_max = config_->pictures.file_bytes_max,
      .pixels_max = config_->pictures.pixels_max,
      .admit = [&](int64_t pixels) {
        return lease_picture(budget, aim_.caller, decoding, decoding_bytes(pixels));
      }};
  Result<media::Image> image = media::decode_image(*bytes, limits);
  if (!image) return of_picture(image.error());
  std::string().swap(*bytes);
  if (source.at_most_512) image = within_side(*std::move(image), kLowSide);
  Result<media::ImagePlan> plan =
      media::plan_image(processor, {image->width, image->height});
  if (!plan) return of_picture(plan.error());
  WEIR_TRY(check_tokens(source, *plan));
  SeenPicture seen{.plan = *plan};
  if (aim_.only_counted) return seen;
  // The memory goes when the engine has let go of the numbers.
  struct Held {
    MemoryLease lease;  // Declared first: given back after the numbers are freed.
    sched::PictureInput input;
  };
  MemoryLease working;
  const Result<void> room =
      lease_picture(budget, aim_.caller, working, processing_bytes(processor, *plan));
  if (!room) return of_picture(room.error());
  const auto held = std::make_shared<Held>();
  held->input = {.plan = *plan, .pixels = media::pixel_values(processor, *plan, *image)};
  held->lease = working.part(values_bytes(processor, *plan));
  seen.hash = sched::hash_of(held->input);
  seen.input = std::shared_ptr<const sched::PictureInput>(held, &held->input);
  return seen;
}

}  // namespace weir::api
