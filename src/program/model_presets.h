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
// Threads: pure functions of the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "program/options.h"

namespace weir {

struct ModelPreset {
  std::string id;   // The section's name.
  Options options;  // The command line's, with what [*] and the section say in place of it.
  bool pin = false;
  bool load_on_startup = false;
};

// Options of the whole process (its sockets, keys, threads, its memory) may not stand in the file,
// nor unknown ones: errors name line and option.
Result<std::vector<ModelPreset>> read_presets(const Options& base, const std::string& path);
// The same of a text; `name` in errors.
Result<std::vector<ModelPreset>> parse_presets(const Options& base, std::string_view text,
                                               const std::string& name);

}  // namespace weir
