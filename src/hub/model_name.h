// ModelName: what a person writes for a model of a hub: org/name[@revision][:file].
//
// Threads: any; values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::hub {

// One slash, at most 96 of [A-Za-z0-9._-], none of "--" and "..", no part that begins or ends with
// '-' or '.', no ".git" at the end: what the hub takes, and what is safe in the name of a folder.
bool is_repo_id(std::string_view text);

// 40 hexadecimal digits: a revision that always means the same files.
bool is_commit(std::string_view text);

struct ModelName {
  std::string id;                 // "org/name".
  std::string revision = "main";  // A branch, a tag or a commit.
  // After the colon: the path of a GGUF file, or the name of a quantisation (Q4_K_M), which is part
  // of a file's name. Empty: the model's safetensors.
  std::string file;

  // The error says which part is wrong.
  static Result<ModelName> parse(std::string_view text);
  // Whether `text` is meant as such a name, right or wrong, and not as a path: it begins with
  // nothing that only paths begin with, and has one slash before any '@' or ':'.
  static bool looks_like(std::string_view text);

  // As parse() reads it; without "@main".
  std::string text() const;
};

}  // namespace weir::hub
