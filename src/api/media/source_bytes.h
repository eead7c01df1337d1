// The bytes that a MediaSource stands for, of those that lie in the request or in a file: which
// sources this server takes, and how many bytes of each.
//
// Threads: any; reading a file takes its time.
#pragma once

#include <cstddef>
#include <string>

#include "api/request/media_source.h"
#include "api/serving/api_config.h"
#include "base/result.h"

namespace weir::api {

// Refuses sources that the server does not ask, in words that say what it takes.
Result<void> check_source(const ApiConfig& config, const MediaSource& source);

// Of one file.
size_t file_bytes_max(const ApiConfig& config, Medium medium);

// REQUIRES: it is in the request or in a file, and check_source() has passed it.
Result<std::string> source_bytes(const ApiConfig& config, const MediaSource& source);

}  // namespace weir::api
