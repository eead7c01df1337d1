// Replaces keys of a config.json that are known not to matter, or to be wrong (--config-override).
//
// Threads: any; pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::card {

// `config` with each of `overrides`, "KEY=VALUE", put in one after another: VALUE is JSON, dots in
// KEY lead into objects, which are made where there are none. An error names the override, what was
// expected and found.
Result<std::string> override_config(std::string_view config,
                                    std::span<const std::string> overrides);

}  // namespace weir::card
