// Multipart: a body of type multipart/form-data (RFC 7578) as its parts, which are views of it: the
// form in which clients send files.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::api {

struct FormPart {
  std::string name{};
  std::string_view bytes{};
  bool is_file = false;  // It has a filename. Which one says nothing of the bytes, and is not kept.
};

struct MultipartLimits {
  size_t parts_max = 64;          // Our fields are a dozen, some of them lists.
  size_t head_bytes_max = 4096;   // Of one part.
  size_t name_bytes_max = 256;    // Of its name, as it is sent.
};

// The parts, in their order. `content_type`: the header of the request, which has the boundary.
// Errors are sentences that say where in the body, what was expected and what was found: kInvalid,
// or kTooLarge beyond a limit.
Result<std::vector<FormPart>> read_multipart(std::string_view content_type, std::string_view body,
                                             const MultipartLimits& limits = {});

}  // namespace weir::api
