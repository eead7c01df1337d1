// Safetensors: a checkpoint in one file, or in shards with an index.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "card/checkpoint.h"
#include "card/model_files.h"

namespace weir::card {

// The tensors of one file. The header is untrusted: lengths, types, shapes and offsets are checked,
// tensors may neither overlap nor leave holes, and the file ends where the last of them ends.
// Errors name the file, the tensor, what was expected and what was found.
Result<std::vector<StoredTensor>> parse_safetensors(std::string_view file_name,
                                                    std::span<const std::byte> bytes);

// How many bytes from its beginning on a file's length and header take, as the first eight say.
// REQUIRES: `beginning` has eight bytes.
Result<uint64_t> safetensors_head_bytes(std::string_view file_name, std::string_view beginning);

// model.safetensors, else the shards that model.safetensors.index.json names.
Result<Checkpoint> open_safetensors(const ModelFiles& files);
// One file, for tests and for fixtures that are not models.
Result<Checkpoint> open_safetensors(FileView file);

}  // namespace weir::card
