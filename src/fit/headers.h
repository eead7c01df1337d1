// Headers: a model of the hub as its settings and the headers of its weights say it: kilobytes, and
// of a GGUF file the megabytes of its vocabulary, in place of gigabytes. What is planned by them is
// planned by the same code as what is loaded.
//
// Threads: the client's.
#pragma once

#include "base/result.h"
#include "card/model_files.h"
#include "hub/client.h"

namespace weir::fit {

// REQUIRES: `model` has been resolved. Errors: the client's, and kConfig for a file whose header
// cannot be one.
Result<card::ModelFiles> fetch_headers(hub::Client& client, const hub::HubModel& model);

}  // namespace weir::fit
