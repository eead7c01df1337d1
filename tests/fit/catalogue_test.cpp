#include "fit/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "fit/search.h"
#include "hub/model_name.h"

namespace weir::fit {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(Catalogue, HasThirtyModelsWhoseFiguresAgree) {
  const Catalogue catalogue = Catalogue::built_in();
  EXPECT_EQ(catalogue.models().size(), 30u);
  std::set<std::string> ids, names;
  for (const CatalogueModel& model : catalogue.models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_FALSE(model.family.empty() || model.license.empty()) << model.name;
    EXPECT_LE(model.active, model.parameters) << model.name;
    EXPECT_GE(model.context, 2048) << model.name;
    int64_t larger = INT64_MAX;
    for (const CatalogueFormat& format : model.formats) {
      EXPECT_TRUE(hub::is_repo_id(format.id)) << format.id;
      EXPECT_TRUE(ids.insert(format.id).second) << format.id;
      EXPECT_LT(format.bytes, larger) << format.id << ": the largest comes first";
      larger = format.bytes;
      // What is held is what is stored, but for padding, and for tables that kernels want wider.
      const auto held =
          static_cast<double>(format.model.packed_weights + format.model.mapped_weights);
      EXPECT_NEAR(held / static_cast<double>(format.bytes), 1, 0.05) << format.id;
      EXPECT_EQ(format.model.context_max, model.context) << format.id;
      EXPECT_LE(format.cost.weight_bytes, 1.05 * static_cast<double>(format.bytes)) << format.id;
      EXPECT_EQ(format.streamed.has_value(), model.active * 2 < model.parameters) << format.id;
      if (format.streamed) {
        EXPECT_LT(format.streamed->experts, 1.05 * static_cast<double>(format.bytes)) << format.id;
      }
      EXPECT_EQ(format.commit.empty(), format.file_bytes == 0) << format.id;
      if (!format.commit.empty()) {
        EXPECT_TRUE(hub::is_commit(format.commit)) << format.id;
      }
    }
  }
}

TEST(Catalogue, KnowsOtherFilesOfAModel) {
  const Catalogue catalogue = Catalogue::built_in();
  const std::vector<Way> others = catalogue.others("Qwen/Qwen3-8B", {});
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].flags, "--model mlx-community/Qwen3-8B-4bit");
  EXPECT_TRUE(others[0].less);
  EXPECT_TRUE(catalogue.others("nobody/nothing", {}).empty());
}

TEST(Catalogue, JudgesByWhatItKnows) {
  const Catalogue catalogue = Catalogue::built_in();
  const auto at = [&](const char* id, int64_t bytes) {
    const CatalogueFormat* files = catalogue.find(id);
    EXPECT_NE(files, nullptr) << id;
    return files ? assess({}, {bytes, "--mem-limit"}, *files, "").fit.verdict : Verdict::kUnknown;
  };
  EXPECT_EQ(at("mlx-community/Qwen3-8B-4bit", 16 * kGiB), Verdict::kFits);
  EXPECT_EQ(at("mlx-community/Qwen3-8B-4bit", 6 * kGiB), Verdict::kShort);
  EXPECT_EQ(at("Qwen/Qwen3-8B", 8 * kGiB), Verdict::kNo);
  EXPECT_EQ(at("mlx-community/Qwen3-30B-A3B-4bit", 12 * kGiB), Verdict::kStreams);
  EXPECT_EQ(at("mlx-community/Qwen3-30B-A3B-4bit", 32 * kGiB), Verdict::kFits);
  EXPECT_EQ(at("deepseek-ai/DeepSeek-V3-0324", 16 * kGiB), Verdict::kNo);
}

TEST(Catalogue, IsSearchedByWords) {
  const Catalogue catalogue = Catalogue::built_in();
  const Options options;
  const MemoryLimit limit = {16 * kGiB, "--mem-limit"};
  const SearchPlace place = {options, limit, ""};
  const SearchHits all = search_catalogue(catalogue, "", place);
  EXPECT_GT(all.hits.size(), 40u);
  const SearchHits some = search_catalogue(catalogue, "qwen3 8b 4BIT", place);
  ASSERT_EQ(some.hits.size(), 1u);
  EXPECT_EQ(some.hits[0].model.id, "mlx-community/Qwen3-8B-4bit");
  EXPECT_EQ(some.hits[0].assessment->fit.verdict, Verdict::kFits);
  EXPECT_TRUE(search_catalogue(catalogue, "nothing of the kind", place).hits.empty());
}

TEST(Catalogue, NamesWhatIsWrong) {
  const auto error = [](const std::string& json) {
    const auto parsed = Catalogue::parse(json);
    return parsed ? std::string("none") : parsed.error().message;
  };
  EXPECT_NE(error("{}").find("models"), std::string::npos);
  EXPECT_NE(error(R"({"models":[{"name":"x"}]})").find("models[0].parameters"), std::string::npos)
      << error(R"({"models":[{"name":"x"}]})");
  EXPECT_NE(error(R"({"models":[{"context":1,"parameters":1,"active":1,"formats":[{"id":"a/b",)"
                  R"("bytes":-1}]}]})")
                .find("bytes"),
            std::string::npos);
  EXPECT_EQ(error(R"({"models":[]})"), "none");
}

}  // namespace
}  // namespace weir::fit
