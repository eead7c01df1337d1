// MediaTokens: tokens that are embedded as what stands for pictures and sounds is, in place of
// embed_tokens' rows and their scale: a row of a projector's `embedding`, its hard_embedding_norm,
// its embedding_projection, and a norm without weights. The marks around a sound are among them.
//
// Threads: values, a free function.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::model {

struct MediaTokens {
  int first = 0, count = 0;
  int width = 0;                       // Of the table.
  std::vector<std::string> modules{};  // The first that the file has, which may have none.
  float eps = 1e-6f;
};

// Of config.json's family; most have none. kConfig says what of its keys is wrong.
Result<std::vector<MediaTokens>> media_tokens(JsonValue config);

}  // namespace weir::model
