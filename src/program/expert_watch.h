// Experts from disk, while they are served: figures, what the disk has to say, and a line a minute.
#pragma once

#include "api/api.h"
#include "model/model.h"
#include "net/loop.h"

namespace weir {

// On the network loop. REQUIRES: the model has experts on disk; it and `api` outlive the loop's
// run.
void watch_experts(net::Loop& loop, api::Api& api, model::Model& model);

}  // namespace weir
