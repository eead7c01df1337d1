// What families with layers of Mamba, or of Mamba 2, say of them alike.
//
// Threads: free functions.
#pragma once

#include <string>

#include "model/families/family.h"

namespace weir::model::family {

inline constexpr int kExpandMax = 64;  // Of hidden_size, to so many times as many channels.

// Stored names: Mamba's modules under `module`, as "mixer.".
void rename_mamba(ModelSpec& m, const std::string& module);
// Of Mamba 1: its first linear layer's rows are those of two.
void split_inputs(ModelSpec& m);
// Of Mamba 1's steps: the number by `key`, or "auto".
int step_rank(const ConfigReader& c, const char* key, int hidden);
// Of models whose keys for Mamba begin with "mamba_"; its norms and their number are the family's.
Mamba2 prefixed_mamba2(const ConfigReader& c, const ModelSpec& m);
// time_step_limit, and keys that say how a model is made.
void time_steps(const ConfigReader& c, Mamba2& mamba);

}  // namespace weir::model::family
