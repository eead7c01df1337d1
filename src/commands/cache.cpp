#include "commands/cache.h"

#include <cstdio>
#include <string>
#include <vector>

#include "base/byte_size.h"
#include "base/json.h"
#include "kv/disk/folder.h"
#include "program/prompt_cache.h"

namespace weir {

namespace {

using kv::disk::FolderUse;

constexpr size_t kShownDigits = 12;

void print_folders(const std::vector<FolderUse>& folders, const std::string& root) {
  if (folders.empty()) {
    std::printf("No prompts in %s.\n", root.c_str());
    return;
  }
  std::printf("%-*s  %10s\n", static_cast<int>(kShownDigits), "model", "size");
  int64_t bytes = 0;
  for (const FolderUse& folder : folders) {
    std::printf("%s  %10s%s\n", folder.fingerprint.substr(0, kShownDigits).c_str(),
                human_bytes(folder.bytes).c_str(), folder.in_use ? "  a server has it" : "");
    bytes += folder.bytes;
  }
  std::printf("\n%s in %s\n", human_bytes(bytes).c_str(), root.c_str());
}

void print_json(const std::vector<FolderUse>& folders, const std::string& root) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("folder", root).key("models").begin_array();
  for (const FolderUse& folder : folders)
    json.begin_object()
        .field("fingerprint", folder.fingerprint)
        .field("bytes", folder.bytes)
        .field("in_use", folder.in_use)
        .end_object();
  json.end_array().end_object();
  std::printf("%s\n", text.c_str());
}

}  // namespace

Result<void> manage_prompt_cache(const Options& options) {
  WEIR_ASSIGN(const std::string root, prompt_cache_root(options));
  if (options.cache_action == "clear") {
    WEIR_ASSIGN(const int64_t freed, kv::disk::clear_folders(root));
    std::printf("%s free\n", human_bytes(freed).c_str());
  }
  WEIR_ASSIGN(const std::vector<FolderUse> folders, kv::disk::folders_in(root));
  if (options.json) return print_json(folders, root), Result<void>();
  if (options.cache_action != "clear" || !folders.empty()) print_folders(folders, root);
  return {};
}

}  // namespace weir
