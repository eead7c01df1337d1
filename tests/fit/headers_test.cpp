#include "fit/headers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "base/file.h"
#include "card/gguf_file.h"
#include "card/model_card.h"
#include "card/safetensors.h"
#include "hub/scripted_hub.h"
#include "kernels/cpu_ops.h"
#include "model/model.h"

namespace weir::fit {
namespace {

const std::string kModel = WEIR_SOURCE_DIR "/tests/data/families/llama/";

std::string read(const std::string& name) { return *read_file(kModel + name, size_t{64} << 20); }

// A file of one vector of bytes, whose header is filled up to `header_bytes`.
std::string safetensors(size_t header_bytes, size_t data_bytes) {
  std::string header = R"({"t":{"dtype":"U8","shape":[)" + std::to_string(data_bytes) +
                       R"(],"data_offsets":[0,)" + std::to_string(data_bytes) + "]}}";
  header.resize(std::max(header.size(), header_bytes), ' ');
  const uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + header + std::string(data_bytes, 'w');
}

class HeadersTest : public testing::Test {
 protected:
  HeadersTest()
      : transport_([this](const hub::Request& request) { return hub_(request); }),
        client_(*hub::Client::create(hub::scripted_settings(), transport_)) {}
  ~HeadersTest() override { EXPECT_FALSE(transport_.leaked(hub::kEndpoint)); }

  Result<card::ModelFiles> fetch(const std::string& name = "org/name") {
    WEIR_ASSIGN(const hub::HubModel model, client_.resolve(*hub::ModelName::parse(name)));
    transport_.requests.clear();
    return fetch_headers(client_, model);
  }
  // What was asked for of a file, range by range.
  std::vector<std::pair<uint64_t, uint64_t>> asked(const std::string& part) const {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const hub::Request& request : transport_.requests)
      if (!request.head_only && request.range && request.url.find(part) != std::string::npos &&
          (request.url.starts_with(hub::kCdn) || !hub::ScriptedHub::is_large(part)))
        ranges.emplace_back(request.range->begin, request.range->end);
    return ranges;
  }

  hub::ScriptedHub hub_;
  hub::ScriptedTransport transport_;
  hub::Client client_;
};

TEST_F(HeadersTest, AreAllThatIsFetchedOfWeights) {
  hub_.files = {{"config.json", "{}"},
                {"LICENSE", "may be read"},
                {"tokenizer.json", std::string(1 << 20, 't')},
                {"model.safetensors", safetensors(1000, 3 << 20)}};
  const auto files = fetch();
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(files->name(), "org/name");
  EXPECT_EQ(*files->read_text("config.json"), "{}");
  const auto weights = files->open_file("model.safetensors");
  ASSERT_TRUE(weights);
  EXPECT_TRUE(weights->only_beginning());
  EXPECT_EQ(weights->bytes().size(), hub_.files["model.safetensors"].size());
  EXPECT_EQ(weights->text().substr(0, 1008), hub_.files["model.safetensors"].substr(0, 1008));
  EXPECT_EQ(weights->text()[1008], '\0') << "what else came is forgotten";
  EXPECT_EQ(asked("model.safetensors"),
            (std::vector<std::pair<uint64_t, uint64_t>>{{0, 256 << 10}}));
  EXPECT_TRUE(files->has("tokenizer.json")) << "it is there, and need not be looked into";
  for (const hub::Request& request : transport_.requests)
    EXPECT_EQ(request.url.find("tokenizer.json"), std::string::npos) << request.url;
}

TEST_F(HeadersTest, ThatAreLongerTakeASecondRequest) {
  const uint64_t header = 700'000;
  hub_.files = {{"config.json", "{}"}, {"model.safetensors", safetensors(header, 2 << 20)}};
  const auto files = fetch();
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(asked("model.safetensors"),
            (std::vector<std::pair<uint64_t, uint64_t>>{{0, 256 << 10}, {256 << 10, 8 + header}}));
  EXPECT_TRUE(card::open_safetensors(*files));
}

TEST_F(HeadersTest, OfAGgufFileReachToItsTensors) {
  card::GgufFile file;
  const std::vector<std::string> tokens(700'000, "token");  // 9 MB of them.
  file.string("general.architecture", "llama").strings("tokenizer.ggml.tokens", tokens);
  file.floats("token_embd.weight", {64, 1'000'000 / 64});
  hub_.files = {{"tiny-Q8_0.gguf", file.bytes()}};
  const auto files = fetch("org/name:Q8_0");
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->gguf(), std::vector<std::string>{"tiny-Q8_0.gguf"});
  const auto ranges = asked("tiny-Q8_0.gguf");
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].second, 4u << 20);
  EXPECT_EQ(ranges[1], (std::pair<uint64_t, uint64_t>{4 << 20, 8 << 20}));
  EXPECT_LT(ranges[2].first, ranges[2].second);
}

TEST_F(HeadersTest, ThatCannotBeAreRefused) {
  const std::string good = safetensors(100, 1000);
  const std::pair<std::string, std::string> cases[] = {
      {std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + good.substr(8), "at most 100000000"},
      {"", ""},
      {"short", ""}};
  for (const auto& [bytes, message] : cases) {
    hub_.files = {{"config.json", R"({"architectures":["LlamaForCausalLM"]})"},
                  {"model.safetensors", bytes}};
    const auto files = fetch();
    if (!files) {
      EXPECT_NE(files.error().message.find(message), std::string::npos) << files.error().message;
      EXPECT_EQ(files.error().code, ErrorCode::kConfig);
      continue;
    }
    EXPECT_FALSE(card::ModelCard::open(*files)) << "its reader says what is wrong";
  }
}

// What a hub sends of its own accord is planned, or refused, and nothing else.
TEST_F(HeadersTest, OfAThousandHostileFilesDoNoHarm) {
  const std::string weights = read("model.safetensors"), config = read("config.json");
  uint64_t header = 0;
  std::memcpy(&header, weights.data(), sizeof header);
  int planned = 0, refused = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    std::string bytes = weights;
    // Of its length, of its numbers, and elsewhere of the header.
    const size_t first = seed % 3 == 0 ? 8 + header : 0;
    const size_t count = seed % 5 == 0 ? 8 : seed % 3 == 0 ? weights.size() - first : 8 + header;
    for (uint32_t i = 0; i <= seed % 7; ++i) {
      const size_t at = (seed % 5 == 0 ? 0 : first) + random() % count;
      bytes[at] = static_cast<char>(random());
    }
    if (seed % 11 == 0) bytes.resize(random() % bytes.size());
    hub_.files = {{"config.json", config}, {"model.safetensors", bytes}};
    const auto files = fetch();
    const auto card = files ? card::ModelCard::open(*files) : tl::unexpected(files.error());
    const auto model = card ? model::Model::bind(*card, {.rows_max = 8},
                                                 kernels::ops_for(kernels::Isa::kScalar), 1)
                            : tl::unexpected(card.error());
    ++(model ? planned : refused);
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(planned, 200) << "numbers are not looked at";
}

}  // namespace
}  // namespace weir::fit
