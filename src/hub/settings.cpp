#include "hub/settings.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/ascii.h"
#include "base/concat.h"
#include "base/file.h"
#include "hub/url.h"

namespace weir::hub {

namespace {

// Tokens have 37 characters; those of other hubs may be JSON Web Tokens of a few KB.
constexpr size_t kTokenBytesMax = 16 << 10;
constexpr int kSecondsMax = 3600;

// Empty: not set, or set to nothing, which huggingface_hub takes for the same.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_on(const char* name) {
  for (const std::string_view yes : {"1", "on", "yes", "true"})
    if (equals_ignoring_case(variable(name), yes)) return true;
  return false;
}

std::string home() {
  if (const std::string_view named = variable("HOME"); !named.empty()) return std::string(named);
  const passwd* user = ::getpwuid(::geteuid());
  return user == nullptr || user->pw_dir == nullptr ? "" : user->pw_dir;
}

std::string absolute(std::string_view path) {
  std::string text(path);
  if (text == "~" || text.starts_with("~/")) text.replace(0, 1, home());
  std::error_code error;
  std::string normal = std::filesystem::absolute(text, error).lexically_normal().string();
  while (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

std::string hub_home() {
  if (const std::string_view named = variable("HF_HOME"); !named.empty()) return absolute(named);
  if (const std::string_view caches = variable("XDG_CACHE_HOME"); !caches.empty())
    return absolute(concat({caches, "/huggingface"}));
  return absolute("~/.cache/huggingface");
}

std::string cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string_view named = variable(name); !named.empty()) return absolute(named);
  return hub_home() + "/hub";
}

// Without the white space that editors and pipes add.
Result<std::string> checked_token(std::string_view from, std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text = text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; }))
    return fail(ErrorCode::kConfig,
                concat({from, ": expected a token of printable characters; found others in it"}));
  return std::string(text);
}

Result<std::string> find_token() {
  if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return std::string();
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (const std::string_view named = variable(name); !named.empty())
      return checked_token(name, named);
  const std::string_view named = variable("HF_TOKEN_PATH");
  const std::string path = named.empty() ? hub_home() + "/token" : absolute(named);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::string();
  WEIR_ASSIGN(const std::string text, read_file(path, kTokenBytesMax));
  return checked_token(path, text);
}

}  // namespace

Result<Settings> Settings::from_environment() {
  Settings settings;
  if (std::string_view endpoint = variable("HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
    settings.endpoint = endpoint;
  }
  if (const Result<Url> url = Url::parse(settings.endpoint); !url)
    return fail(ErrorCode::kConfig, "HF_ENDPOINT: " + url.error().message);
  settings.cache = cache_folder();
  settings.offline = is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE");
  WEIR_ASSIGN(settings.token, find_token());
  if (const std::string_view text = variable("HF_HUB_ETAG_TIMEOUT"); !text.empty()) {
    int seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || seconds < 1 ||
        seconds > kSecondsMax)
      return fail(ErrorCode::kConfig,
                  concat({"HF_HUB_ETAG_TIMEOUT: expected seconds, from 1 to 3600; found '",
                          text.substr(0, 80), "'"}));
    settings.metadata_time = std::chrono::seconds(seconds);
  }
  return settings;
}

}  // namespace weir::hub
