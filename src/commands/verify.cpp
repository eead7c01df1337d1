#include "commands/verify.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/concat.h"
#include "base/json.h"
#include "commands/progress_bar.h"
#include "hub/cache_check.h"
#include "program/model_source.h"

namespace weir {

namespace {

const char* word_of(hub::FileState state) {
  switch (state) {
    case hub::FileState::kRight:
      return "right";
    case hub::FileState::kWrong:
      return "wrong";
    case hub::FileState::kMissing:
      return "missing";
    case hub::FileState::kUnread:
      return "unread";
    case hub::FileState::kUnknown:
      return "unknown";
  }
  return "?";
}

bool is_fault(const hub::CheckedFile& file) {
  return file.state != hub::FileState::kRight && file.state != hub::FileState::kUnknown;
}

void print_json(const std::string& name, const std::vector<hub::CheckedFile>& files) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("model", name).key("files").begin_array();
  for (const hub::CheckedFile& file : files) {
    json.begin_object().field("path", file.path).field("size", file.size);
    json.field("state", word_of(file.state)).field("note", file.note).end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", text.c_str());
}

void print_table(const std::string& name, const std::vector<hub::CheckedFile>& files) {
  for (const hub::CheckedFile& file : files)
    std::printf("%-8s %s%s%s\n", word_of(file.state), file.path.c_str(),
                file.note.empty() ? "" : ": ", file.note.c_str());
  bool wrong = false, missing = false;
  for (const hub::CheckedFile& file : files) {
    missing = missing || file.state == hub::FileState::kMissing;
    if (file.state != hub::FileState::kWrong) continue;
    if (!wrong) std::printf("\nWhat is wrong is fetched again when it is deleted:\n");
    wrong = true;
    std::printf("  rm '%s'\n", file.on_disk.c_str());
  }
  if (wrong || missing) std::printf("  weir pull %s\n", name.c_str());
}

}  // namespace

Result<void> verify_cached(const Options& options) {
  if (options.model.empty())
    return fail(ErrorCode::kConfig,
                "expected a model of the cache: weir verify ORG/NAME[@REVISION]; found none");
  WEIR_ASSIGN(const hub::ModelName name, hub::ModelName::parse(options.model));
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options));
  ProgressBar bar;
  const auto progress = [&](int64_t done, int64_t total) {
    if (!options.json) bar.show(done, total);
  };
  WEIR_ASSIGN(const std::vector<hub::CheckedFile> files,
              hub::check_model(hub::Cache(settings.cache), name, progress));
  (options.json ? print_json : print_table)(name.text(), files);
  const auto faults = std::ranges::count_if(files, is_fault);
  if (faults > 0)
    return fail(ErrorCode::kInvalid,
                concat({name.text(), ": ", std::to_string(faults), " of ",
                        std::to_string(files.size()), " files are not right"}));
  return {};
}

}  // namespace weir
