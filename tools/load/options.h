// The command line of weir-load.
#pragma once

#include <optional>

#include "load/load_options.h"

namespace weir::load {

// Parses the command line; nothing if it is done with (--help, or an error that has been printed),
// with the exit status in `status`.
std::optional<LoadOptions> parse_options(int argc, char** argv, int* status);

}  // namespace weir::load
