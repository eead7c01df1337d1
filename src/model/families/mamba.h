// What families with layers of Mamba 2 say of them alike.
//
// Threads: free functions.
#pragma once

#include <string>

#include "model/families/family.h"

namespace weir::model::family {

// Stored names: Mamba's modules under `module`, as "mixer.".
void rename_mamba2(ModelSpec& m, const std::string& module);
// Of models whose keys for Mamba begin with "mamba_"; its norms and their number are the family's.
Mamba2 prefixed_mamba2(const ConfigReader& c, const ModelSpec& m);
// time_step_limit, and keys that say how a model is made.
void time_steps(const ConfigReader& c, Mamba2& mamba);

}  // namespace weir::model::family
