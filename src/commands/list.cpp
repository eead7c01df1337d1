#include "commands/list.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/byte_size.h"
#include "base/concat.h"
#include "base/json.h"
#include "hub/cache_list.h"
#include "program/model_source.h"

namespace weir {

namespace {

// "2026-01-31", in local time; nothing of what was never used.
std::string date_of(int64_t seconds) {
  if (seconds == 0) return "";
  const std::time_t time = seconds;
  std::tm parts{};
  char text[16];
  if (::localtime_r(&time, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d", &parts) == 0)
    return "";
  return text;
}

struct Line {
  std::string name, size, used, note;
};

std::vector<Line> lines_of(const hub::CachedModel& model) {
  std::vector<Line> lines;
  const std::string used = date_of(model.last_used);
  for (const hub::CachedSnapshot& snapshot : model.snapshots) {
    for (const std::string& name : snapshot.names)
      lines.push_back({name, human_bytes(snapshot.bytes), used, ""});
    if (!snapshot.names.empty()) continue;
    const std::string name =
        snapshot.revisions.empty() ? concat({model.id, "@", snapshot.commit}) : model.id;
    lines.push_back({name, human_bytes(snapshot.bytes), used,
                     snapshot.missing > 0
                         ? concat({"incomplete: ", human_bytes(snapshot.missing), " are missing"})
                         : "not a whole model"});
  }
  if (lines.empty()) lines.push_back({model.id, human_bytes(model.bytes), used, "incomplete"});
  return lines;
}

void print_table(const std::vector<hub::CachedModel>& models, const std::string& folder) {
  std::vector<Line> lines;
  for (const hub::CachedModel& model : models)
    for (Line& line : lines_of(model)) lines.push_back(std::move(line));
  if (lines.empty()) {
    std::printf("No models in %s.\n", folder.c_str());
    return;
  }
  size_t width = 4;
  for (const Line& line : lines) width = std::max(width, line.name.size());
  std::printf("%-*s  %10s  %-10s\n", static_cast<int>(width), "name", "size", "last used");
  int64_t bytes = 0;
  for (const hub::CachedModel& model : models) bytes += model.bytes;
  for (const Line& line : lines)
    std::printf("%-*s  %10s  %-10s  %s\n", static_cast<int>(width), line.name.c_str(),
                line.size.c_str(), line.used.c_str(), line.note.c_str());
  std::printf("\n%s in %s\n", human_bytes(bytes).c_str(), folder.c_str());
}

void print_json(const std::vector<hub::CachedModel>& models, const std::string& folder) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("cache", folder).key("models").begin_array();
  for (const hub::CachedModel& model : models) {
    json.begin_object().field("id", model.id).field("bytes", model.bytes);
    json.field("last_used", model.last_used).key("snapshots").begin_array();
    for (const hub::CachedSnapshot& snapshot : model.snapshots) {
      json.begin_object().field("commit", snapshot.commit).key("revisions").begin_array();
      for (const std::string& revision : snapshot.revisions) json.value(revision);
      json.end_array().key("names").begin_array();
      for (const std::string& name : snapshot.names) json.value(name);
      json.end_array().field("files", uint64_t{snapshot.files}).field("bytes", snapshot.bytes);
      json.field("missing", snapshot.missing).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", text.c_str());
}

}  // namespace

Result<void> list_cache(const Options& options) {
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options));
  const std::vector<hub::CachedModel> models = hub::list_models(hub::Cache(settings.cache));
  (options.json ? print_json : print_table)(models, settings.cache);
  return {};
}

}  // namespace weir
