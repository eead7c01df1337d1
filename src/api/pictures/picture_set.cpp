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
    return unsupported(
        source.field,
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

Error left() { return {ErrorCode::kCancelled, "The client has left."}; }

}  // namespace

Result<void> check_pictures(const ApiConfig& config, std::span<const PictureSource> sources) {
  if (sources.empty()) return {};
  if (config.processor == nullptr)
    return unsupported(sources.front().field,
                       concat({"this model does not support images: ", config.images_refusal}));
  const auto most = static_cast<size_t>(config.pictures.count_max);
  if (sources.size() > most)
    return picture_error(
        sources[most].field,
        concat({"a request may have at most ", std::to_string(most),
                " images (--max-images), this one has ", std::to_string(sources.size())}),
        "too_many_images");
  for (const PictureSource& source : sources) {
    WEIR_TRY(check_source(config, source));
    if (source.frame && !config.processor->video.taken)
      return unsupported(source.frame->part, "this model does not support videos");
  }
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
    if (interrupt.stopped()) return fail(left());
    const std::optional<FramePlace>& frame = sources_[i].frame;
    if (Result<void> done = frame ? see_video(budget, i, interrupt) : see(budget, i); !done)
      return fail(std::move(done).error());
    if (frame) i += static_cast<size_t>(frame->count) - 1;
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
Result<void> PictureSet::check_tokens(const PictureSource& source, int64_t tokens) {
  tokens_ += tokens;
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

Result<PictureSet::Decoded> PictureSet::decode(MemoryBudget& budget, size_t index) {
  const PictureSource& source = sources_[index];
  Result<std::string> bytes = bytes_of(budget, index);
  if (!bytes) return picture_error(source.field, bytes.error());
  Decoded decoded;
  const media::ImageLimits limits = {.file_bytes_max = config_->pictures.file_bytes_max,
                                     .pixels_max = config_->pictures.pixels_max,
                                     .admit = [&](int64_t pixels) {
                                       return lease_picture(budget, aim_.caller, decoded.lease,
                                                            decoding_bytes(pixels));
                                     }};
  Result<media::Image> image = media::decode_image(*bytes, limits);
  if (!image) return picture_error(source.field, image.error());
  decoded.image = *std::move(image);
  if (source.at_most_512) decoded.image = within_side(std::move(decoded.image), kLowSide);
  return decoded;
}

template <class Compute>
Result<void> PictureSet::keep(MemoryBudget& budget, const PictureSource& source, SeenPicture seen,
                              int64_t frames, const Compute& compute) {
  struct Held {
    MemoryLease lease;  // Declared first: given back after the numbers are freed.
    sched::PictureInput input;
  };
  const media::Processor& processor = *config_->processor;
  MemoryLease working;
  const Result<void> room =
      lease_picture(budget, aim_.caller, working, processing_bytes(processor, seen.plan, frames));
  if (!room) return picture_error(source.field, room.error());
  const auto held = std::make_shared<Held>();
  held->input = {.plan = seen.plan, .pixels = compute()};
  held->lease = working.part(values_bytes(processor, seen.plan));
  seen.hash = sched::hash_of(held->input);
  seen.input = std::shared_ptr<const sched::PictureInput>(held, &held->input);
  seen_.push_back(std::move(seen));
  return {};
}

Result<void> PictureSet::see(MemoryBudget& budget, size_t index) {
  const PictureSource& source = sources_[index];
  const media::Processor& processor = *config_->processor;
  WEIR_ASSIGN(const Decoded decoded, decode(budget, index));
  const media::Image& image = decoded.image;
  Result<media::ImagePlan> plan = media::plan_image(processor, {image.width, image.height});
  if (!plan) return picture_error(source.field, plan.error());
  WEIR_TRY(check_tokens(source, media::token_count(processor, *plan)));
  if (aim_.only_counted) {
    seen_.push_back({.plan = *plan});
    return {};
  }
  return keep(budget, source, {.plan = *plan}, 1,
              [&] { return media::pixel_values(processor, *plan, image); });
}

Result<void> PictureSet::see_video(MemoryBudget& budget, size_t index,
                                   const grammar::Interrupt& interrupt) {
  const media::Processor& processor = *config_->processor;
  const FramePlace place = *sources_[index].frame;
  media::Size size;
  std::shared_ptr<const media::VideoPlan> video;
  const auto per_moment = static_cast<int64_t>(processor.frames);
  for (int64_t moment = 0; !video || moment < video->moments; ++moment) {
    if (interrupt.stopped()) return tl::unexpected<Error>(left());
    std::vector<Decoded> decoded;
    for (int64_t i = moment * per_moment; i < (moment + 1) * per_moment && i < place.count; ++i) {
      const size_t source = index + static_cast<size_t>(i);
      WEIR_ASSIGN(decoded.emplace_back(), decode(budget, source));
      const media::Size found = {decoded.back().image.width, decoded.back().image.height};
      if (i == 0) size = found;
      if (found != size)
        return picture_error(
            sources_[source].field,
            concat({"expected a frame of ", std::to_string(size.width), " x ",
                    std::to_string(size.height), " pixels, as the video's first one, found ",
                    std::to_string(found.width), " x ", std::to_string(found.height)}),
            "image_parse_error");
    }
    if (!video) {
      Result<media::VideoPlan> plan = media::plan_video(processor, size, place.count, place.rate);
      if (!plan) return picture_error(place.part, plan.error());
      video = std::make_shared<const media::VideoPlan>(*std::move(plan));
      WEIR_TRY(check_tokens(sources_[index],
                            video->moments * media::token_count(processor, video->frame)));
    }
    SeenPicture seen = {.plan = video->frame, .video = video, .moment = moment};
    if (aim_.only_counted) {
      seen_.push_back(std::move(seen));
      continue;
    }
    std::vector<const media::Image*> frames;
    for (const Decoded& frame : decoded) frames.push_back(&frame.image);
    frames.resize(static_cast<size_t>(per_moment), frames.back());
    WEIR_TRY(keep(budget, sources_[index], std::move(seen), per_moment,
                  [&] { return media::moment_values(processor, video->frame, frames); }));
  }
  return {};
}

}  // namespace weir::api
