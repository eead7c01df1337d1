#include "api/media/media_set.h"

#include <algorithm>
#include <utility>

#include "api/memory/request_memory.h"
#include "api/media/media_memory.h"
#include "api/request/json_fields.h"
#include "base/base64.h"
#include "base/check.h"
#include "base/concat.h"
#include "base/file_below.h"
#include "media/audio/decode_sound.h"
#include "media/features/sound_features.h"
#include "media/image/decode.h"
#include "media/processor/pixel_values.h"
#include "media/processor/placeholder.h"
#include "media/resize/resize.h"

namespace weir::api {

namespace {

// OpenAI's detail "low".
constexpr int kLowSide = 512;

Result<void> check_source(const ApiConfig& config, const MediaSource& source) {
  const std::string_view name = medium_name(source.medium);
  if (source.kind == MediaSource::Kind::kRemote && config.media == nullptr)
    return unsupported(source.field,
                       concat({"this server fetches nothing from web addresses "
                               "(--allow-remote-media): send the ",
                               name, " itself, as a data: URL"}));
  if (source.kind == MediaSource::Kind::kFile && config.media_limits.folder.empty())
    return unsupported(source.field,
                       concat({"this server reads no files of its own (--media-path): send the ",
                               name, " itself, as a data: URL"}));
  return {};
}

// Refuses all of one kind where there are too many, or the model takes none.
Result<void> check_kind(const ApiConfig& config, std::span<const MediaSource> sources,
                        Medium medium) {
  const bool sounds = medium == Medium::kSound;
  const bool taken = sounds ? config.front_end != nullptr : config.processor != nullptr;
  const auto most =
      static_cast<size_t>(sounds ? config.media_limits.sounds_max : config.media_limits.images_max);
  const MediaSource* first_beyond = nullptr;
  size_t count = 0;
  for (const MediaSource& source : sources) {
    if (source.medium != medium) continue;
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

// Digits in fours, the last ones filled up with '='.
Result<std::string> decode_digits(const MediaSource& source, size_t bytes_max) {
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

size_t file_bytes_of(const ApiConfig& config, Medium medium) {
  return medium == Medium::kSound ? config.media_limits.sound_file_bytes_max
                                  : config.media_limits.image_file_bytes_max;
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
  for (const MediaSource& source : sources) WEIR_TRY(check_source(config, source));
  return {};
}

int64_t SeenMedium::tokens(const ApiConfig& config) const {
  return medium == Medium::kSound ? sound.rows : media::token_count(*config.processor, plan);
}

std::string SeenMedium::placeholder(const ApiConfig& config) const {
  return medium == Medium::kSound ? media::placeholder_text(*config.front_end, sound)
                                  : media::placeholder_text(*config.processor, plan);
}

Error MediaSet::want(const ApiConfig& config, std::vector<MediaSource> sources,
                       const Aim& aim) {
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
      most = std::max(most, file_bytes_of(*config_, source.medium));
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
    if (interrupt.stopped()) return fail({ErrorCode::kCancelled, "The client has left."});
    Result<SeenMedium> seen = see(budget, i);
    if (!seen) return fail(std::move(seen).error());
    seen_.push_back(*std::move(seen));
  }
  wanted_ = false;
  read_ = true;
  sources_.clear();
  files_.clear();
  lease_ = {};
}

Result<std::string> MediaSet::bytes_of(MemoryBudget& budget, size_t index) {
  const MediaSource& source = sources_[index];
  const size_t bytes_max = file_bytes_of(*config_, source.medium);
  if (source.kind == MediaSource::Kind::kRemote) {
    CHECK(files_[index].has_value());
    return *std::exchange(files_[index], std::nullopt);
  }
  Result<std::string> bytes;
  if (source.kind == MediaSource::Kind::kBase64) {
    bytes = decode_digits(source, bytes_max);
  } else {
    WEIR_ASSIGN(const std::string_view path, path_below(source.text, config_->media_limits.folder));
    bytes = read_file_below(config_->media_limits.folder, path, bytes_max);
  }
  if (bytes) WEIR_TRY(admit(budget, bytes->size()));
  return bytes;
}

// Refuses what will not fit the context before anything is computed of it.
Result<void> MediaSet::check_tokens(const MediaSource& source, const SeenMedium& seen) {
  tokens_ += seen.tokens(*config_);
  if (tokens_ <= aim_.tokens_max) return {};
  const std::string most = std::to_string(aim_.tokens_max), found = std::to_string(tokens_);
  const auto sounds = std::ranges::count(sources_, Medium::kSound, &MediaSource::medium);
  const bool alike = sounds == 0 || sounds == std::ssize(sources_);
  return weir::fail(ErrorCode::kContextLength,
                    concat({"This model's maximum context length is ", most,
                            " tokens. However, your ",
                            sounds == 0 ? "images" : alike ? "sounds" : "images and sounds",
                            " alone resulted in at least ", found,
                            " tokens (context_length_exceeded). Please send fewer or ",
                            sounds == 0 ? "smaller images" : alike ? "shorter sounds" : "smaller ones",
                            ". The prompt is too long: ", found, " tokens > ", most, " maximum"}),
                    source.field, "context_length_exceeded");
}

Result<SeenMedium> MediaSet::see(MemoryBudget& budget, size_t index) {
  const MediaSource& source = sources_[index];
  Result<std::string> bytes = bytes_of(budget, index);
  if (!bytes) {
    Error error = std::move(bytes).error();
    // The desk does not know what it fetches.
    if (error.kind == "failed_to_download_image" && source.medium == Medium::kSound)
      error.kind = "failed_to_download_audio";
    return media_error(source.medium, source.field, error);
  }
  return source.medium == Medium::kSound ? hear_sound(budget, source, *std::move(bytes))
                                         : see_picture(budget, source, *std::move(bytes));
}

Result<SeenMedium> MediaSet::see_picture(MemoryBudget& budget, const MediaSource& source,
                                         std::string bytes) {
  const auto of_picture = [&](const Error& error) {
    return media_error(Medium::kPicture, source.field, error);
  };
  const media::Processor& processor = *config_->processor;
  MemoryLease decoding;
  const media::ImageLimits limits = {
      .file_bytes_max = config_->media_limits.image_file_bytes_max,
      .pixels_max = config_->media_limits.pixels_max,
      .admit = [&](int64_t pixels) {
        return lease_medium(budget, aim_.caller, decoding, decoding_bytes(pixels));
      }};
  Result<media::Image> image = media::decode_image(bytes, limits);
  if (!image) return of_picture(image.error());
  std::string().swap(bytes);
  if (source.at_most_512) image = within_side(*std::move(image), kLowSide);
  Result<media::ImagePlan> plan =
      media::plan_image(processor, {image->width, image->height});
  if (!plan) return of_picture(plan.error());
  SeenMedium seen{.plan = *plan};
  WEIR_TRY(check_tokens(source, seen));
  if (aim_.only_counted) return seen;
  MemoryLease working;
  const Result<void> room =
      lease_medium(budget, aim_.caller, working, processing_bytes(processor, *plan));
  if (!room) return of_picture(room.error());
  const auto held = std::make_shared<Held<sched::PictureInput>>();
  held->input = {.plan = *plan, .pixels = media::pixel_values(processor, *plan, *image)};
  held->lease = working.part(values_bytes(processor, *plan));
  seen.hash = sched::hash_of(held->input);
  seen.input.picture = std::shared_ptr<const sched::PictureInput>(held, &held->input);
  return seen;
}

Result<SeenMedium> MediaSet::hear_sound(MemoryBudget& budget, const MediaSource& source,
                                        std::string bytes) {
  const auto of_sound = [&](const Error& error) {
    return media_error(Medium::kSound, source.field, error);
  };
  const media::FrontEnd& front_end = *config_->front_end;
  MemoryLease decoding;
  Result<void> room =
      lease_medium(budget, aim_.caller, decoding, decoding_bytes(front_end));
  if (!room) return of_sound(room.error());
  const media::SoundLimits limits = {
      .file_bytes_max = config_->media_limits.sound_file_bytes_max,
      .seconds_max = seconds_max(front_end)};
  const Result<media::Sound> sound = media::decode_sound(bytes, front_end.rate, limits);
  if (!sound) return of_sound(sound.error());
  std::string().swap(bytes);
  const Result<media::SoundPlan> plan =
      media::plan_sound(front_end, std::ssize(sound->samples));
  if (!plan) return of_sound(plan.error());
  SeenMedium seen{.medium = Medium::kSound, .sound = *plan};
  WEIR_TRY(check_tokens(source, seen));
  if (aim_.only_counted) return seen;
  const auto held = std::make_shared<Held<sched::SoundInput>>();
  room = lease_medium(budget, aim_.caller, held->lease, values_bytes(front_end, *plan));
  if (!room) return of_sound(room.error());
  held->input = media::sound_features(front_end, *plan, sound->samples);
  seen.hash = sched::hash_of(held->input);
  seen.input.sound = std::shared_ptr<const sched::SoundInput>(held, &held->input);
  return seen;
}

}  // namespace weir::api
