#include "api/media/source_bytes.h"

#include <optional>
#include <string_view>
#include <utility>

#include "api/request/json_fields.h"
#include "base/base64.h"
#include "base/concat.h"
#include "base/file_below.h"

namespace weir::api {

namespace {

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

}  // namespace

Result<void> check_source(const ApiConfig& config, const MediaSource& source) {
  const std::string_view name = medium_name(source.medium);
  if (source.kind == MediaSource::Kind::kRemote && config.media == nullptr)
    return unsupported(source.field, concat({"this server fetches nothing from web addresses "
                                             "(--allow-remote-media): send the ",
                                             name, " itself, as a data: URL"}));
  if (source.kind == MediaSource::Kind::kFile && config.media_limits.folder.empty())
    return unsupported(source.field,
                       concat({"this server reads no files of its own (--media-path): send the ",
                               name, " itself, as a data: URL"}));
  return {};
}

size_t file_bytes_max(const ApiConfig& config, Medium medium) {
  switch (medium) {
    case Medium::kSound:
      return config.media_limits.sound_file_bytes_max;
    case Medium::kVideo:
      return config.media_limits.video_file_bytes_max;
    case Medium::kPicture:
      break;
  }
  return config.media_limits.image_file_bytes_max;
}

Result<std::string> source_bytes(const ApiConfig& config, const MediaSource& source) {
  const size_t bytes_max = file_bytes_max(config, source.medium);
  if (source.kind == MediaSource::Kind::kBase64) return decode_digits(source, bytes_max);
  WEIR_ASSIGN(const std::string_view path, path_below(source.text, config.media_limits.folder));
  return read_file_below(config.media_limits.folder, path, bytes_max);
}

}  // namespace weir::api
