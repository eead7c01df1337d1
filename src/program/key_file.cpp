#include "program/key_file.h"

#include <sys/stat.h>

#include <cstdio>

#include "base/file.h"

namespace weir {

Result<std::vector<api::KeySpec>> load_keys(const NetworkOptions& options) {
  std::vector<api::KeySpec> keys;
  if (!options.api_key_file.empty()) {
    const std::string source = "--api-key-file " + options.api_key_file;
    WEIR_ASSIGN(const std::string text, read_file(options.api_key_file, api::kKeyFileBytesMax));
    WEIR_ASSIGN(keys, api::parse_keys(text, source));
  }
  api::add_plain_keys(split_list(options.api_key), keys);
  WEIR_TRY(api::check_keys(keys));
  return keys;
}

// A group may be meant: root:weir, mode 0640.
std::string exposure(const std::string& option, const std::string& file) {
  struct stat info {};
  if (file.empty() || ::stat(file.c_str(), &info) != 0 || (info.st_mode & S_IROTH) == 0) return {};
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode) & 07777u);
  return option + " " + file + " can be read by every user of this machine (mode " + mode +
         "): chmod 600 " + file;
}

}  // namespace weir
