// What pages about the model show, from its files and from what was made of them.
//
// Threads: a pure function.
#pragma once

#include "api/serving/api_config.h"
#include "card/model_card.h"
#include "model/model.h"

namespace weir {

api::ModelFacts model_facts(const card::ModelCard& card, const model::Model& model);

}  // namespace weir
