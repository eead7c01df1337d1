// What families with layers of Mamba 2 say of them alike.
//
// Threads: free functions.
#pragma once

#include <string>

#include "model/families/family.h"

namespace weir::model::family {

// Stored names: Mamba's modules under `module`, as "mixer.".
void rename_mamba2(ModelSpec& m, const std::string& module);
// time_step_limit, and keys that say how a model is made.
void time_steps(const ConfigReader& c, Mamba2& mamba);

}  // namespace weir::model::family
