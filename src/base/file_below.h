// A file below a folder, which names may not lead out of: for names that strangers say.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir {

// Reads the file whose path within `folder` is `path`: names of folders and of a file, divided by
// slashes. No part of it may be "..", ".", or a symbolic link, wherever that leads; `folder` itself
// may be one. Errors, which do not repeat `folder`: kInvalid for a path that is not like that,
// kNotFound for what is not there or cannot be opened, kUnsupported for what is no regular file,
// kTooLarge for more than `bytes_max`.
Result<std::string> read_file_below(const std::string& folder, std::string_view path,
                                    size_t bytes_max);

}  // namespace weir
