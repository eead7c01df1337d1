// ModelPresets: the models that a file names, each with options of its own (--models FILE), in the
// form of llama-server's presets:
//
//     [*]                      ; for all
//     idle-unload = 600
//     [qwen]
//     model = mlx-community/Qwen3-4B-4bit
//     alias = small, gpt-4o-mini
//     pin = true
//
// Or those of the hub's cache, where the options name none.
//
// Threads: pure functions of the files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "program/options.h"

namespace weir {

// More than any list is that a person writes; the models' page and events have all of them.
inline constexpr size_t kModelsMax = 256;

struct ModelPreset {
  std::string id;   // The section's name.
  Options options;  // The command line's, with what [*] and the section say in place of it.
  bool pin = false;
  bool load_on_startup = false;
};

// The built-in model, loaded at the start, and each that the cache has whole, under the hub's name.
// REQUIRES: `base` names no model.
Result<std::vector<ModelPreset>> cached_presets(const Options& base);

// Options of the whole process (its sockets, keys, threads, its memory) may not stand in the file,
// nor unknown ones: errors name line and option.
Result<std::vector<ModelPreset>> read_presets(const Options& base, const std::string& path);
// The same of a text; `name` in errors.
Result<std::vector<ModelPreset>> parse_presets(const Options& base, std::string_view text,
                                               const std::string& name);

}  // namespace weir
