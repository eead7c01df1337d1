#include "program/model_presets.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "card/default_model.h"
#include "hub/cache_list.h"
#include "program/model_source.h"
#include "program/option_table.h"

namespace weir {

namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr std::string_view kAll = "*";

// What is a model's, of the options of a server.
constexpr std::array<std::string_view, 5> kGroups = {"Model", "Adapters", "Experts from disk",
                                                     "Scheduling", "Answers"};
// Of other groups, and those that these have of the process.
constexpr std::array<std::string_view, 2> kModelsToo = {"kv-memory", "idle-unload"};
constexpr std::array<std::string_view, 5> kOfProcess = {"offline", "responses-store", "max-body",
                                                        "queue-timeout", "request-timeout"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_of_model(const Row& row) {
  if (!(row.commands & kServeOnly) || among(kOfProcess, row.name)) return false;
  return among(kGroups, row.group) || among(kModelsToo, row.name);
}

// A line, and where it stands.
struct Setting {
  std::string name, value, where;
};
struct Section {
  std::string id, where;
  std::vector<Setting> settings;
};

tl::unexpected<Error> wrong(const std::string& where, const std::string& what) {
  return fail(ErrorCode::kConfig, where + ": " + what);
}

Result<std::vector<Section>> read_sections(std::string_view text, const std::string& name) {
  std::vector<Section> sections;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string whole; std::getline(lines, whole);) {
    const std::string where = name + ":" + std::to_string(++number);
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    if (line.starts_with('[')) {
      const std::string_view id = trimmed(line.substr(1, line.find(']') - 1));
      if (!line.ends_with(']') || id.empty())
        return wrong(where, "expected [NAME]; found '" + std::string(line.substr(0, 80)) + "'");
      if (std::ranges::find(sections, id, &Section::id) != sections.end())
        return wrong(where, "there is a section [" + std::string(id) + "] already");
      sections.push_back({std::string(id), where, {}});
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      return wrong(where, "expected KEY = VALUE; found '" + std::string(line.substr(0, 80)) + "'");
    std::string key(trimmed(line.substr(0, equals)));
    if (key == "version" && sections.empty()) continue;  // llama-server's, of the form: 1.
    if (sections.empty())
      return wrong(where, "expected a section, [NAME] or [*], before '" + key + "'");
    sections.back().settings.push_back(
        {std::move(key), std::string(value_of(line.substr(equals + 1))), where});
  }
  return sections;
}

Result<void> apply_flag(bool& flag, const Setting& setting) {
  const std::optional<bool> truth = truth_of(setting.value);
  if (!truth)
    return wrong(setting.where,
                 setting.name + ": expected true or false; found '" + setting.value + "'");
  flag = *truth;
  return {};
}

Result<void> apply(ModelPreset& preset, const Setting& setting) {
  if (setting.name == "pin") return apply_flag(preset.pin, setting);
  if (setting.name == "load-on-startup") return apply_flag(preset.load_on_startup, setting);
  const Row* row = find_row(setting.name);
  if (row == nullptr)
    return wrong(setting.where, "unknown option '" + setting.name + "' ('weir --help' lists all)");
  if (!is_of_model(*row))
    return wrong(setting.where, "--" + setting.name +
                                    " is the whole server's: give it on the command line or in the "
                                    "file of --config");
  return assign_option(preset.options, *row, setting.where + ": " + setting.name, setting.value);
}

Result<ModelPreset> make_preset(const Options& base, const Section* all, const Section& section) {
  ModelPreset preset{.id = section.id, .options = base};
  preset.options.models.clear();
  preset.options.model.clear();
  preset.options.alias.clear();
  if (all != nullptr)
    for (const Setting& setting : all->settings) WEIR_TRY(apply(preset, setting));
  for (const Setting& setting : section.settings) WEIR_TRY(apply(preset, setting));
  if (preset.options.model.empty())
    return wrong(section.where, "[" + section.id +
                                    "] names no model: expected model = PATH or "
                                    "ORG/NAME");
  if (const Result<void> good = check_options(preset.options); !good)
    return wrong(section.where, "[" + section.id + "] " + good.error().message);
  return preset;
}

Result<void> check_names(const std::vector<ModelPreset>& presets, const std::string& name) {
  std::set<std::string> names;
  for (const ModelPreset& preset : presets) {
    std::vector<std::string> own = split_list(preset.options.alias);
    own.push_back(preset.id);
    for (const std::string& each : own)
      if (!names.insert(each).second) return wrong(name, "two models are called '" + each + "'");
  }
  return {};
}

}  // namespace

Result<std::vector<ModelPreset>> parse_presets(const Options& base, std::string_view text,
                                               const std::string& name) {
  WEIR_ASSIGN(const std::vector<Section> sections, read_sections(text, name));
  const auto all = std::ranges::find(sections, kAll, &Section::id);
  std::vector<ModelPreset> presets;
  for (const Section& section : sections) {
    if (section.id == kAll) continue;
    WEIR_ASSIGN(ModelPreset preset,
                make_preset(base, all == sections.end() ? nullptr : &*all, section));
    presets.push_back(std::move(preset));
  }
  if (presets.empty()) return wrong(name, "expected at least one model, [NAME]; found none");
  if (presets.size() > kModelsMax)
    return wrong(name, "expected at most " + std::to_string(kModelsMax) + " models; found " +
                           std::to_string(presets.size()));
  WEIR_TRY(check_names(presets, name));
  return presets;
}

Result<std::vector<ModelPreset>> read_presets(const Options& base, const std::string& path) {
  const Result<std::string> text = read_file(path, kFileBytesMax);
  if (!text) return fail(ErrorCode::kConfig, "--models: " + text.error().message);
  return parse_presets(base, *text, path);
}

Result<std::vector<ModelPreset>> cached_presets(const Options& base) {
  CHECK(base.model.empty() && base.models.empty());
  ModelPreset built_in{.id = card::kDefaultModelName, .options = base, .pin = true};
  std::vector<ModelPreset> presets = {std::move(built_in)};
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(base));
  for (const hub::CachedModel& model : hub::list_models(hub::Cache(settings.cache)))
    for (const hub::CachedSnapshot& snapshot : model.snapshots)
      for (const std::string& name : snapshot.names) {
        if (presets.size() == kModelsMax) return presets;
        ModelPreset preset{.id = name, .options = base};
        preset.options.model = name;
        preset.options.alias.clear();
        presets.push_back(std::move(preset));
      }
  return presets;
}

}  // namespace weir
