// The keys that the command line and a key file give to the server.
#pragma once

#include <string>
#include <vector>

#include "api/access/keys.h"
#include "base/result.h"
#include "program/options.h"

namespace weir {

// The keys of --api-key-file and of --api-key, read anew at each call.
Result<std::vector<api::KeySpec>> load_keys(const NetworkOptions& options);

// What to tell the owner of a file with secrets if every user of the machine can read it, else
// empty. `option` is what named it.
std::string exposure(const std::string& option, const std::string& file);

}  // namespace weir
