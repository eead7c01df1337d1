// Keys of config.json that no family reads, and that compute nothing: bookkeeping whatever its
// value is, and options whose value says that they are off.
//
// Threads: any; the tables are constants.
#pragma once

#include <string_view>

#include "base/json.h"

namespace weir::card {

// Why the key may be left unread with this value, or empty: it may change what the model computes.
// `path` is where the key's object lies: "" or "rope_scaling.".
std::string_view why_neutral(std::string_view path, std::string_view key, JsonValue value);

}  // namespace weir::card
