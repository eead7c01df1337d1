#include "api/media/media_set.h"

#include <algorithm>
#include <utility>

#include "api/media/media_memory.h"
#include "api/media/source_bytes.h"
#include "api/memory/request_memory.h"
#include "api/request/json_fields.h"
#include "base/check.h"
#include "base/concat.h"
#include "media/audio/decode_sound.h"
#include "media/features/sound_features.h"
#include "media/image/decode.h"
#include "media/processor/pixel_values.h"
#include "media/processor/frame_times.h"
#include "media/processor/placeholder.h"
#include "media/processor/video_plan.h"
#include "media/video/video_file.h"
#include "media/resize/resize.h"

namespace weir::api {

namespace {

// OpenAI's detail "low".
constexpr int kLowSide = 512;

// Refuses all that is seen, or all sounds, where there are too many, or the model takes none. The file
// of a video counts as one image.
Result<void> check_kind(const ApiConfig& config, std::span<const MediaSource> sources,
                        Medium medium) {
  const bool sounds = medium == Medium::kSound;
  const bool taken = sounds ? config.front_end != nullptr : config.processor != nullptr;
  const auto most =
      static_cast<size_t>(sounds ? config.media_limits.sounds_max : config.media_limits.images_max);
  const MediaSource* first_beyond = nullptr;
  size_t count = 0;
  for (const MediaSource& source : sources) {
    if ((source.medium == Medium::kSound) != sounds) continue;
    if (!taken)
      return unsupported(source.field,
                         concat({"this model does not support ", sounds ? "audio: " : "images: ",
                                 sounds ? config.sounds_refusal : config.images_refusal}));
    if (++count == most + 1) first_beyond = &source;
  }
  if (first_beyond == nullptr) return {};
  return media_error(medium, first_beyond->field,
                     concat({"a request may have at most ", std::to_string(most),
                             sounds ? " sounds (--max-sounds)" : " images (--max-images)",
                             ", this one has ", std::to_string(count)}),
                     sounds ? "too_many_sounds" : "too_many_images");
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

// The memory goes when the engine has let go of the numbers.
template <class Input>
struct Held {
  MemoryLease lease;  // Declared first: given back after the numbers are freed.
  Input input;
};

}  // namespace

Result<void> check_media(const ApiConfig& config, std::span<const MediaSource> sources) {
  for (const Medium medium : {Medium::kPicture, Medium::kSound})
    WEIR_TRY(check_kind(config, sources, medium));
  for (const MediaSource& source : sources) {
    const bool is_file = source.medium == Medium::kVideo;
    if ((source.frame || is_file) && !config.processor->video.taken)
      return unsupported(is_file ? source.field : source.frame->part,
                         "this model does not support videos");
    if (const Result<void> read = media::check_reads_videos(); is_file && !read)
      return unsupported(source.field, read.error().message);
    WEIR_TRY(check_source(config, source));
  }
  return {};
}

int64_t SeenMedium::tokens(const ApiConfig& config) const {
  return medium == Medium::kSound ? sound.rows : media::token_count(*config.processor, plan);
}

std::string SeenMedium::placeholder(const ApiConfig& config) const {
  if (medium == Medium::kSound) return media::placeholder_text(*config.front_end, sound);
  return video ? media::video_text(*config.processor, *video)
               : media::placeholder_text(*config.processor, plan);
}

Error MediaSet::want(const ApiConfig& config, std::vector<MediaSource> sources, const Aim& aim) {
  CHECK(!wanted_ && !read_);
  config_ = &config;
  aim_ = aim;
  sources_ = std::move(sources);
  files_.resize(sources_.size());
  wanted_ = true;
  return {ErrorCode::kCancelled, "The media are to be read first."};
}

std::optional<Result<std::span<const SeenMedium>>> MediaSet::seen() const {
  if (!read_) return std::nullopt;
  if (error_) return tl::unexpected<Error>(*error_);
  return std::span<const SeenMedium>(seen_);
}

std::vector<std::string> MediaSet::addresses() const {
  std::vector<std::string> addresses;
  for (const MediaSource& source : sources_)
    if (source.kind == MediaSource::Kind::kRemote) addresses.push_back(source.text);
  return addresses;
}

size_t MediaSet::file_bytes_max() const {
  size_t most = 0;
  for (const MediaSource& source : sources_)
    if (source.kind == MediaSource::Kind::kRemote)
      most = std::max(most, weir::api::file_bytes_max(*config_, source.medium));
  return most;
}

void MediaSet::set_files(std::vector<Result<std::string>> files) {
  auto file = files.begin();
  for (size_t i = 0; i < sources_.size(); ++i)
    if (sources_[i].kind == MediaSource::Kind::kRemote) files_[i] = std::move(*file++);
  CHECK(file == files.end());
}

Result<void> MediaSet::admit(MemoryBudget& budget, size_t bytes) {
  return lease_medium(budget, aim_.caller, lease_, bytes);
}

void MediaSet::fail(Error error) {
  error_ = std::move(error);
  wanted_ = false;
  read_ = true;
  sources_.clear();
  files_.clear();
  lease_ = {};
}

void MediaSet::read(MemoryBudget& budget, const grammar::Interrupt& interrupt) {
  CHECK(wanted_);
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (interrupt.stopped()) return fail(left());
    const std::optional<FramePlace>& frame = sources_[i].frame;
    const Medium medium = sources_[i].medium;
    Result<void> done = frame                      ? see_video(budget, i, interrupt)
                        : medium == Medium::kVideo ? see_video_file(budget, i, interrupt)
                        : medium == Medium::kSound ? hear(budget, i)
                                                   : see(budget, i);
    if (!done) return fail(std::move(done).error());
    if (frame) i += static_cast<size_t>(frame->count) - 1;
  }
  wanted_ = false;
  read_ = true;
  sources_.clear();
  files_.clear();
  lease_ = {};
}

Result<std::string> MediaSet::bytes_of(MemoryBudget& budget, size_t index) {
  const MediaSource& source = sources_[index];
  if (source.kind == MediaSource::Kind::kRemote) {
    CHECK(files_[index].has_value());
    Result<std::string> file = *std::exchange(files_[index], std::nullopt);
    // The desk does not know what it fetches.
    if (!file && file.error().kind == "failed_to_download_image")
      file.error().kind = concat({"failed_to_download_", medium_name(source.medium)});
    return file;
  }
  Result<std::string> bytes = source_bytes(*config_, source);
  if (bytes) WEIR_TRY(admit(budget, bytes->size()));
  return bytes;
}

// Refuses what will not fit the context before anything is computed of it.
Result<void> MediaSet::check_tokens(const MediaSource& source, int64_t tokens) {
  tokens_ += tokens;
  if (tokens_ <= aim_.tokens_max) return {};
  const std::string most = std::to_string(aim_.tokens_max), found = std::to_string(tokens_);
  const auto sounds = std::ranges::count(sources_, Medium::kSound, &MediaSource::medium);
  const bool alike = sounds == 0 || sounds == std::ssize(sources_);
  return weir::fail(
      ErrorCode::kContextLength,
      concat({"This model's maximum context length is ", most, " tokens. However, your ",
              sounds == 0 ? "images"
              : alike     ? "sounds"
                          : "images and sounds",
              " alone resulted in at least ", found,
              " tokens (context_length_exceeded). Please send fewer or ",
              sounds == 0 ? "smaller images"
              : alike     ? "shorter sounds"
                          : "smaller ones",
              ". The prompt is too long: ", found, " tokens > ", most, " maximum"}),
      source.field, "context_length_exceeded");
}

Result<MediaSet::Decoded> MediaSet::decode(MemoryBudget& budget, size_t index) {
  const MediaSource& source = sources_[index];
  Result<std::string> bytes = bytes_of(budget, index);
  if (!bytes) return media_error(Medium::kPicture, source.field, bytes.error());
  Decoded decoded;
  const media::ImageLimits limits = {.file_bytes_max = config_->media_limits.image_file_bytes_max,
                                     .pixels_max = config_->media_limits.pixels_max,
                                     .admit = [&](int64_t pixels) {
                                       return lease_medium(budget, aim_.caller, decoded.lease,
                                                           decoding_bytes(pixels));
                                     }};
  Result<media::Image> image = media::decode_image(*bytes, limits);
  if (!image) return media_error(Medium::kPicture, source.field, image.error());
  decoded.image = *std::move(image);
  if (source.at_most_512) decoded.image = within_side(std::move(decoded.image), kLowSide);
  return decoded;
}

template <class Compute>
Result<void> MediaSet::keep(MemoryBudget& budget, const MediaSource& source, SeenMedium seen,
                            int64_t frames, const Compute& compute) {
  const media::Processor& processor = *config_->processor;
  MemoryLease working;
  const Result<void> room =
      lease_medium(budget, aim_.caller, working, processing_bytes(processor, seen.plan, frames));
  if (!room) return media_error(source.medium, source.field, room.error());
  const auto held = std::make_shared<Held<sched::PictureInput>>();
  held->input = {.plan = seen.plan, .pixels = compute()};
  held->lease = working.part(values_bytes(processor, seen.plan));
  seen.hash = sched::hash_of(held->input);
  seen.input.picture = std::shared_ptr<const sched::PictureInput>(held, &held->input);
  seen_.push_back(std::move(seen));
  return {};
}

Result<void> MediaSet::see(MemoryBudget& budget, size_t index) {
  const MediaSource& source = sources_[index];
  const media::Processor& processor = *config_->processor;
  WEIR_ASSIGN(const Decoded decoded, decode(budget, index));
  const media::Image& image = decoded.image;
  Result<media::ImagePlan> plan = media::plan_image(processor, {image.width, image.height});
  if (!plan) return media_error(Medium::kPicture, source.field, plan.error());
  WEIR_TRY(check_tokens(source, media::token_count(processor, *plan)));
  if (aim_.only_counted) {
    seen_.push_back({.plan = *plan});
    return {};
  }
  return keep(budget, source, {.plan = *plan}, 1,
              [&] { return media::pixel_values(processor, *plan, image); });
}

Result<void> MediaSet::see_moment(MemoryBudget& budget, const MediaSource& source,
                                  const std::shared_ptr<const media::VideoPlan>& video,
                                  int64_t moment, std::span<const media::Image* const> shown) {
  const media::Processor& processor = *config_->processor;
  if (moment == 0)
    WEIR_TRY(
        check_tokens(source, video->moments * media::token_count(processor, video->frame)));
  SeenMedium seen = {
      .medium = Medium::kVideo, .plan = video->frame, .video = video, .moment = moment};
  if (aim_.only_counted) {
    seen_.push_back(std::move(seen));
    return {};
  }
  std::vector<const media::Image*> frames(shown.begin(), shown.end());
  frames.resize(static_cast<size_t>(processor.frames), frames.back());
  return keep(budget, source, std::move(seen), processor.frames,
              [&] { return media::moment_values(processor, video->frame, frames); });
}

Result<void> MediaSet::see_video(MemoryBudget& budget, size_t index,
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
        return media_error(
            Medium::kPicture, sources_[source].field,
            concat({"expected a frame of ", std::to_string(size.width), " x ",
                    std::to_string(size.height), " pixels, as the video's first one, found ",
                    std::to_string(found.width), " x ", std::to_string(found.height)}),
            "image_parse_error");
    }
    if (!video) {
      Result<media::VideoPlan> plan =
          media::plan_video(processor, size, media::even_frames(place.count, place.rate));
      if (!plan) return media_error(Medium::kPicture, place.part, plan.error());
      video = std::make_shared<const media::VideoPlan>(*std::move(plan));
    }
    std::vector<const media::Image*> frames;
    for (const Decoded& frame : decoded) frames.push_back(&frame.image);
    WEIR_TRY(see_moment(budget, sources_[index], video, moment, frames));
  }
  return {};
}

Result<void> MediaSet::see_video_file(MemoryBudget& budget, size_t index,
                                      const grammar::Interrupt& interrupt) {
  const media::Processor& processor = *config_->processor;
  const MediaSource& source = sources_[index];
  const auto of_video = [&](const Error& error) {
    return media_error(Medium::kVideo, source.field, error);
  };
  const Result<std::string> bytes = bytes_of(budget, index);
  if (!bytes) return of_video(bytes.error());
  MemoryLease decoding;
  const auto per_moment = static_cast<size_t>(processor.frames);
  const media::VideoLimits limits = {
      .file_bytes_max = config_->media_limits.video_file_bytes_max,
      .frames_held = processor.frames,
      .admit = [&](size_t more) { return lease_medium(budget, aim_.caller, decoding, more); },
      .stopped = [&] { return interrupt.stopped(); }};
  Result<media::VideoFile> file = media::VideoFile::open(*bytes, limits);
  if (!file) return of_video(file.error());
  const media::SampledFrames sampled =
      media::sample_frames(processor, file->frames(), file->rate(), source.rate);
  file->choose(sampled.indices);
  std::shared_ptr<const media::VideoPlan> video;
  size_t left = sampled.indices.size();
  for (int64_t moment = 0; left > 0; ++moment) {
    std::vector<media::Image> images;
    for (; images.size() < per_moment && left > 0; --left) {
      Result<media::Image> image = file->next();
      if (!image) return of_video(image.error());
      images.push_back(*std::move(image));
    }
    if (!video) {
      Result<media::VideoPlan> plan = media::plan_video(
          processor, {images.front().width, images.front().height}, sampled.times);
      if (!plan) return of_video(plan.error());
      video = std::make_shared<const media::VideoPlan>(*std::move(plan));
    }
    std::vector<const media::Image*> frames;
    for (const media::Image& image : images) frames.push_back(&image);
    WEIR_TRY(see_moment(budget, source, video, moment, frames));
    while (aim_.only_counted && ++moment < video->moments)
      WEIR_TRY(see_moment(budget, source, video, moment, {}));
    if (aim_.only_counted) break;
  }
  return {};
}

Result<void> MediaSet::hear(MemoryBudget& budget, size_t index) {
  const MediaSource& source = sources_[index];
  const auto of_sound = [&](const Error& error) {
    return media_error(Medium::kSound, source.field, error);
  };
  Result<std::string> bytes = bytes_of(budget, index);
  if (!bytes) return of_sound(bytes.error());
  const media::FrontEnd& front_end = *config_->front_end;
  MemoryLease decoding;
  Result<void> room = lease_medium(budget, aim_.caller, decoding, decoding_bytes(front_end));
  if (!room) return of_sound(room.error());
  const media::SoundLimits limits = {.file_bytes_max = config_->media_limits.sound_file_bytes_max,
                                     .seconds_max = seconds_max(front_end)};
  const Result<media::Sound> sound = media::decode_sound(*bytes, front_end.rate, limits);
  if (!sound) return of_sound(sound.error());
  std::string().swap(*bytes);
  const Result<media::SoundPlan> plan = media::plan_sound(front_end, std::ssize(sound->samples));
  if (!plan) return of_sound(plan.error());
  SeenMedium seen{.medium = Medium::kSound, .sound = *plan};
  WEIR_TRY(check_tokens(source, plan->rows));
  if (aim_.only_counted) {
    seen_.push_back(std::move(seen));
    return {};
  }
  const auto held = std::make_shared<Held<sched::SoundInput>>();
  room = lease_medium(budget, aim_.caller, held->lease, values_bytes(front_end, *plan));
  if (!room) return of_sound(room.error());
  held->input = media::sound_features(front_end, *plan, sound->samples);
  seen.hash = sched::hash_of(held->input);
  seen.input.sound = std::shared_ptr<const sched::SoundInput>(held, &held->input);
  seen_.push_back(std::move(seen));
  return {};
}

}  // namespace weir::api
