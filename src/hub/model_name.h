// ModelName: what a person writes for a model of a hub: org/name[@revision][:file].
//
// Threads: any; values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::hub {

// One slash, at most 96 of [A-Za-z0-9._-], neither "--" nor "..", no part that begins or ends with
// '-' or '.', no ".git" at the end: what the hub takes, and what is safe in the name of a folder.
bool is_repo_id(std::string_view text);

// 40 hexadecimal digits in lower case: a revision that always means the same files.
bool is_commit(std::string_view text);

struct ModelName {
  std::string id = {};            // "org/name".
  std::string revision = "main";  // A branch, a tag or a commit; safe as a path below a folder.
  bool revision_given = false;    // After an '@'.
  // After the colon: the path of a GGUF file, or the name of a quantisation (Q4_K_M), which is part
  // of a file's name. Empty: the model's safetensors.
  std::string file = {};

  // The error says which part is wrong.
  static Result<ModelName> parse(std::string_view text);
  // Whether `text` is meant as such a name, right or wrong, and not as a path: it has one slash
  // before any '@' or ':', and begins with none of '/', '.' and '~'.
  static bool looks_like(std::string_view text);

  // As parse() reads it.
  std::string text() const;
};

}  // namespace weir::hub
