#include "api/request/generation_defaults.h"

#include <gtest/gtest.h>

#include "api/request/sampling_fields.h"

namespace weir::api {
namespace {

TEST(GenerationDefaults, AreLlamaServersWhereTheMakersSayNothing) {
  const GenerationDefaults defaults = generation_defaults({});
  EXPECT_FLOAT_EQ(defaults.sampling.temperature, 0.8f);
  EXPECT_EQ(defaults.sampling.top_k, 40);
  EXPECT_FLOAT_EQ(defaults.sampling.top_p, 0.95f);
  EXPECT_FLOAT_EQ(defaults.sampling.min_p, 0.05f);
  EXPECT_EQ(defaults.sampling.repetition_penalty, 1);
  EXPECT_TRUE(defaults.eos_ids.empty());
  EXPECT_EQ(describe(defaults), "temperature=0.8 top_k=40 top_p=0.95 min_p=0.05 (default)");
}

TEST(GenerationDefaults, AreWhatTheModelsMakersWrote) {
  const GenerationDefaults defaults = generation_defaults({.temperature = 0.6,
                                                           .top_k = 20,
                                                           .top_p = 0.9,
                                                           .min_p = 0.01,
                                                           .typical_p = 0.8,
                                                           .repetition_penalty = 1.05,
                                                           .eos_ids = {7, 9}});
  EXPECT_FLOAT_EQ(defaults.sampling.temperature, 0.6f);
  EXPECT_EQ(defaults.sampling.top_k, 20);
  EXPECT_FLOAT_EQ(defaults.sampling.top_p, 0.9f);
  EXPECT_FLOAT_EQ(defaults.sampling.min_p, 0.01f);
  EXPECT_FLOAT_EQ(defaults.sampling.typical_p, 0.8f);
  EXPECT_FLOAT_EQ(defaults.sampling.repetition_penalty, 1.05f);
  EXPECT_EQ(defaults.eos_ids, (std::vector<int32_t>{7, 9}));
}

TEST(GenerationDefaults, OverruleOneAnotherNumberByNumber) {
  card::GenerationSettings made;
  made.temperature = 0.6;
  made.top_k = 0;
  GenerationDefaults defaults = generation_defaults(made);
  defaults.set("temperature", 0.4, kFromCommandLine);
  defaults.set("dry_multiplier", 0.5, kFromCommandLine);
  EXPECT_EQ(describe(defaults),
            "temperature=0.4 dry_multiplier=0.5 (command line) top_k=0 (generation_config.json) "
            "top_p=0.95 min_p=0.05 (default)");
}

}  // namespace
}  // namespace weir::api
