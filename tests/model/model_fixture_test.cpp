// weir-check's recorded answers of models: a file of another shape is an error that says what is
// missing, never a crash.
#include "../../tools/check/model_fixture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weir::check {
namespace {

constexpr char kCase[] =
    R"({"prompt_ids":[1,2],"greedy_ids":[3],"margins_nats":[0.5],)"
    R"("top20_logprobs_of_first_8_steps":[{"ids":[3,900],"logprobs":[-0.1,-2]}]})";
constexpr char kNll[] = R"("nll":{"ids":[4,5],"mean_nll_nats":1.5})";

class RecordedAnswers : public testing::Test {
 protected:
  RecordedAnswers() { std::filesystem::create_directories(folder_); }
  ~RecordedAnswers() override { std::filesystem::remove_all(folder_); }
  std::string error(const std::string& json) const {
    std::ofstream(folder_ + "/expected.json") << json;
    const auto fixture = ModelFixture::open(folder_);
    if (fixture) return "";
    const std::string prefix = folder_ + "/expected.json: ";
    EXPECT_TRUE(fixture.error().message.starts_with(prefix)) << fixture.error().message;
    return fixture.error().message.substr(prefix.size());
  }
  std::string error_of_case(const std::string& one) const {
    return error(std::string("{") + kNll + ",\"cases\":[" + one + "]}");
  }
  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("weir_recorded_" + std::to_string(::getpid())))
          .string();
};

TEST_F(RecordedAnswers, AreRead) {
  std::ofstream(folder_ + "/expected.json") << "{" << kNll << ",\"cases\":[" << kCase << "]}";
  const auto fixture = ModelFixture::open(folder_);
  ASSERT_TRUE(fixture) << fixture.error().message;
  EXPECT_EQ(fixture->nll_ids, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(fixture->nll, 1.5);
  ASSERT_EQ(fixture->cases.size(), 1u);
  EXPECT_EQ(fixture->cases[0].prompt, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(fixture->cases[0].top[0][1], (std::pair<int32_t, double>{900, -2}));
  EXPECT_EQ(fixture->largest_id, 900);
}

TEST_F(RecordedAnswers, OfAnotherShapeNameWhatIsMissing) {
  EXPECT_EQ(error("[1]"), "'the document': expected an object, found [1]");
  EXPECT_EQ(error(R"({"cases":[]})"),
            "'nll': expected recorded answers as models/README.md describes, found nothing");
  EXPECT_EQ(error(R"({"nll":7})"), "'nll': expected an object, found 7");
  EXPECT_EQ(error(R"({"nll":{"ids":{}}})"), "'nll.ids': expected a list, found {}");
  EXPECT_EQ(error(R"({"nll":{"ids":[1]}})"), "'nll.ids': expected a list of at least 2, found 1");
  EXPECT_EQ(error(R"({"nll":{"ids":[1,"a"]}})"),
            "'nll.ids[1]': expected a token's id, found \"a\"");
  EXPECT_EQ(error(R"({"nll":{"ids":[1,-1]}})"), "'nll.ids[1]': expected a token's id, found -1");
  EXPECT_EQ(error(R"({"nll":{"ids":[1,2],"mean_nll_nats":0}})"),
            "'nll.mean_nll_nats': expected a positive number, found 0");
  EXPECT_EQ(error(std::string("{") + kNll + "}"),
            "'cases': expected recorded answers as models/README.md describes, found nothing");
  EXPECT_EQ(error_of_case(""), "'cases': expected at least one case, found none");
  EXPECT_EQ(error_of_case("3"), "'cases[0]': expected an object, found 3");
  EXPECT_EQ(error_of_case(std::string(kCase) + R"(,{"prompt_ids":[]})"),
            "'cases[1].prompt_ids': expected a list of at least 1, found 0");
  EXPECT_EQ(error_of_case(R"({"prompt_ids":[1],"greedy_ids":[1,2],"margins_nats":[1]})"),
            "'cases[0].margins_nats': expected 2 of them, found 1");
  EXPECT_EQ(error_of_case(R"({"prompt_ids":[1],"greedy_ids":[1],"margins_nats":[1]})"),
            "'cases[0].top20_logprobs_of_first_8_steps': expected recorded answers as "
            "models/README.md describes, found nothing");
  EXPECT_NE(error("{"), "");
}

}  // namespace
}  // namespace weir::check
