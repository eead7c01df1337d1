// Which files of a commit a model is: what weir reads, and nothing else.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/tree.h"

namespace weir::hub {

// The list of a model's shards, at the top of its tree.
inline constexpr std::string_view kIndexFile = "model.safetensors.index.json";

// `pattern` with '*' (any characters, '/' too) and '?' (one), as huggingface_hub matches paths.
bool matches_glob(std::string_view pattern, std::string_view path);

// With `include`: the files that match one of its patterns. Else with `file`: the GGUF file of that
// path, or the only one whose name has it as a part (Q4_K_M), with all its parts. Else config.json
// and the other settings, the tokenizer's files and templates, the licence, and the weights: the
// shards that kIndexFile, whose text `index` is, names; without one *.safetensors of the top. Never
// .bin, .pth, .onnx, .h5, .msgpack, original/ or consolidated*. By path.
//
// The error, kNotFound, says what there is instead, such as the quantisations.
Result<std::vector<TreeFile>> select_files(const Tree& tree, std::string_view file,
                                           std::span<const std::string> include,
                                           std::string_view index);

// Whether select_files() wants the text of kIndexFile.
bool wants_index(const Tree& tree, std::string_view file, std::span<const std::string> include);

int64_t total_bytes(std::span<const TreeFile> files);

}  // namespace weir::hub
