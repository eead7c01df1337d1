// Which files of a folder are a GGUF model: one, or the parts of one, which the end of their names
// numbers.
//
// Threads: any.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace weir::card {

// The files of a model in a folder, in their order: `file`, and where it is one part of several,
// the others. REQUIRES: `file` is the name of a file in `folder`.
Result<std::vector<std::string>> gguf_parts(const std::string& folder, const std::string& file);
// The one GGUF model in a folder; empty if there is none, an error that names them if there are
// several.
Result<std::vector<std::string>> find_gguf(const std::string& folder);

}  // namespace weir::card
