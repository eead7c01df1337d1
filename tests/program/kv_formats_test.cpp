#include "program/kv_formats.h"

#include <gtest/gtest.h>

#include "base/thread_team.h"
#include "card/default_model.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"

namespace weir {
namespace {

TEST(KvFormats, SayWhatATokenTakesAndWouldTake) {
  ThreadTeam team(1);
  const auto model = model::Model::load(*card::ModelCard::open(card::default_model()),
                                        {.rows_max = 64, .context_max = 256},
                                        kernels::ops_for(kernels::detect_isa()), team);
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<FormatCost> costs = format_costs(**model);
  ASSERT_EQ(costs.size(), 5u);
  EXPECT_EQ(costs[1].token_bytes, 2 * costs[0].token_bytes);  // f32 and f16.
  for (size_t i = 2; i < costs.size(); ++i)
    EXPECT_LT(costs[i].token_bytes, costs[i == 2 ? 0 : i - 1].token_bytes) << i;
  EXPECT_NE(format_note(**model, kv::Format::kF16).find("--kv-cache tq4 would take"),
            std::string::npos);
  EXPECT_NE(format_note(**model, kv::Format::kTq4).find("times as many tokens"), std::string::npos);
}

}  // namespace
}  // namespace weir
