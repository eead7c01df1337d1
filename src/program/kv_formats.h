// What a token of context takes in each format of keys and values, for people who choose one.
//
// Threads: any; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kv/format.h"
#include "model/model.h"

namespace weir {

struct FormatCost {
  kv::Format format;
  int64_t token_bytes = 0;  // Of keys and values without a window, in all layers.
};

// The formats that the model may have, f16 first; empty: no layer keeps all of a sequence.
std::vector<FormatCost> format_costs(const model::Model& model);

// What the chosen format takes, or what --kv-cache tq4 would save; empty: nothing to say.
std::string format_note(const model::Model& model, kv::Format chosen);

}  // namespace weir
