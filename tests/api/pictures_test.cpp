// Images through every API of a whole server: how many tokens they become, and in which words they
// are refused. The processor is made up: each image becomes the token <mark> four times, in brackets.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "api/media/media_set.h"
#include "api/media_answers.h"
#include "api/test_api.h"
#include "base/base64.h"
#include "media/video/video_file.h"
#include "media/video/video_samples.h"

namespace weir::api {
namespace {

media::Processor four_tokens() {
  media::Processor processor;
  processor.width = processor.height = 4;
  processor.unit = 2;
  processor.placeholder = {.prompt = "<i>", .image = "<mark>", .before = "(", .after = ")"};
  return processor;
}

// A BMP of one colour.
std::string bmp(int width, int height, char colour = 0) {
  const auto number = [](uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
  };
  const uint32_t row = (static_cast<uint32_t>(width) * 3 + 3) / 4 * 4;
  const uint32_t bytes = row * static_cast<uint32_t>(height);
  return "BM" + number(54 + bytes, 4) + number(0, 4) + number(54, 4) + number(40, 4) +
         number(static_cast<uint32_t>(width), 4) + number(static_cast<uint32_t>(height), 4) +
         number(1, 2) + number(24, 2) + number(0, 24) + std::string(bytes, colour);
}

std::string digits(const std::string& bytes) {
  std::string out;
  append_base64(out, {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  return out;
}

std::string data_url(const std::string& bytes) { return "data:image/bmp;base64," + digits(bytes); }

// Writes the messages' parts as a template of a model that sees does.
constexpr const char* kSeeing =
    "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{% if p.type == 'image' %}<i>{% else %}{{ p.text }}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";

// Answers from a table, on the loop, when it is asked to.
class TableDesk final : public MediaDesk {
 public:
  explicit TableDesk(std::map<std::string, std::string> files) : files_(std::move(files)) {}

  uint64_t fetch(Order order) override {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
    return orders_.size();
  }
  void cancel(uint64_t number) override {
    const std::lock_guard lock(mutex_);
    orders_[number - 1].done = {};
    ++cancelled_;
  }
  // REQUIRES: the loop's thread.
  void answer() {
    std::vector<Order> orders;
    {
      const std::lock_guard lock(mutex_);
      orders.swap(orders_);
    }
    for (Order& order : orders) {
      std::vector<Result<std::string>> files;
      for (const std::string& address : order.addresses) {
        const auto found = files_.find(address);
        if (found == files_.end())
          files.push_back(fail(ErrorCode::kInvalid, "it cannot be fetched: a.example: no such file",
                               {}, "failed_to_download_image"));
        else
          files.push_back(found->second);
      }
      if (order.done) order.done(std::move(files));
    }
  }
  size_t orders() {
    const std::lock_guard lock(mutex_);
    return orders_.size();
  }
  int cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

 private:
  const std::map<std::string, std::string> files_;
  std::mutex mutex_;
  std::vector<Order> orders_;
  int cancelled_ = 0;
};

class Pictures : public testing::Test {
 protected:
  TestOptions seeing(const char* chat_template = kSeeing) {
    TestOptions options;
    options.config.processor = &processor_;
    options.chat_template = chat_template;
    return options;
  }
  // The tokens of a conversation, by /tokenize; or the error's message.
  static std::string tokens(const TestApi& api, const std::string& messages) {
    return count_of(api.post("/tokenize", R"({"messages":)" + messages + "}"), "count");
  }
  static std::string image_url(const std::string& url) {
    return R"({"type":"image_url","image_url":{"url":")" + url + R"("}})";
  }

  const media::Processor processor_ = four_tokens();
};

// "[user]" and "[assistant]" are 6 and 11 bytes, an image 4 tokens and 2 bytes.
constexpr int kAround = 6 + 11, kImage = 6;

TEST_F(Pictures, EveryApiCountsThem) {
  const TestApi api(seeing());
  const std::string url = data_url(bmp(9, 5)), digits_of = digits(bmp(9, 5));
  const std::string one = std::to_string(kAround + kImage + 2);
  EXPECT_EQ(tokens(api, user(R"({"type":"text","text":"Hi"},)" + image_url(url))), one);
  EXPECT_EQ(tokens(api, user(image_url(url) + R"(,{"type":"text","text":"Hi"},)" + image_url(url))),
            std::to_string(kAround + 2 * kImage + 2));
  EXPECT_EQ(tokens(api, user(R"({"type":"text","text":"Hi"},{"type":"input_image","image_url":")" +
                             url + R"(","detail":"low"})")),
            one);
  EXPECT_EQ(tokens(api, user(R"({"type":"text","text":"Hi"},{"type":"file","file":{"file_data":")" +
                             url + R"("}})")),
            one);
  EXPECT_EQ(count_of(api.post("/v1/responses/input_tokens",
                              R"({"model":"m","input":)" +
                                  user(R"({"type":"input_text","text":"Hi"},{"type":"input_file",)"
                                       R"("filename":"a.bmp","file_data":")" +
                                       url + R"("})") +
                                  "}"),
                     "input_tokens"),
            one);
  EXPECT_EQ(
      count_of(api.post("/v1/messages/count_tokens",
                        R"({"model":"m","messages":)" +
                            user(R"({"type":"image","source":{"type":"base64","media_type":)"
                                 R"("image/bmp","data":")" +
                                 digits_of + R"("}},{"type":"text","text":"Hi"})") +
                            "}"),
               "input_tokens"),
      one);
}

TEST_F(Pictures, OfATemplateThatTakesStringsStandInTheText) {
  const TestApi api(seeing(""));
  EXPECT_EQ(tokens(api, user(R"({"type":"text","text":"Hi"},)" + image_url(data_url(bmp(1, 1))))),
            std::to_string(kAround + kImage + 3));  // A line feed between.
}

TEST_F(Pictures, AnErrorSaysWhatIsTaken) {
  TestOptions options = seeing();
  options.config.media_limits.images_max = 2;
  options.config.media_limits.image_file_bytes_max = 1000;
  options.config.media_limits.pixels_max = 400;
  const TestApi api(std::move(options));
  const auto error = [&](const std::string& url) { return tokens(api, user(image_url(url))); };
  const std::string at = "messages[0].content[0].image_url.url";
  EXPECT_EQ(error("data:image/png;base64,@@@@"),
            "400 image_parse_error: Invalid image in '" + at +
                "': expected base64: A-Z, a-z, 0-9, + and /, in fours that = fills up, found "
                "something else.");
  for (const char* wrong : {"AAA", "AAAAA", "AA=A", "A===", "AA A", "AAAA\\nAAAA", "AA=="
                                                                                  "AAAA"})
    EXPECT_NE(error(std::string("data:image/png;base64,") + wrong).find("expected base64"),
              std::string::npos)
        << wrong;
  EXPECT_NE(error("data:image/png;base64,").find("the image is empty"), std::string::npos);
  EXPECT_NE(error("data:image/png;base64," + digits("%PDF-1.7 ")).find(
                "400 unsupported_image_media_type: Invalid image in '" + at + "': the image is PDF"),
            std::string::npos);
  EXPECT_NE(error(data_url(bmp(21, 20))).find("400 image_too_large"), std::string::npos);
  EXPECT_NE(error(data_url(bmp(300, 1) + std::string(200, 'x'))).find("at most 1000 are read"),
            std::string::npos);
  EXPECT_NE(error(data_url(bmp(9, 5).substr(0, 100))).find("the BMP is damaged"), std::string::npos);
  EXPECT_NE(error("https://a.example/b.png").find("--allow-remote-media"), std::string::npos);
  EXPECT_NE(error("file:a.png").find("--media-path"), std::string::npos);
  const std::string image = image_url(data_url(bmp(1, 1)));
  EXPECT_NE(tokens(api, user(image + "," + image + "," + image))
                .find("400 too_many_images: Invalid image in 'messages[0].content[2].image_url.url': "
                      "a request may have at most 2 images (--max-images), this one has 3."),
            std::string::npos);
  EXPECT_NE(tokens(api, user(R"({"type":"text","text":"see <i>"},)" + image)).find("found 2"),
            std::string::npos);
  EXPECT_NE(tokens(api, user(R"({"type":"text","text":"see <mark>"},)" + image))
                .find("expected <mark> for images alone"),
            std::string::npos);
}

TEST_F(Pictures, TheContextIsAskedBeforeAnythingIsComputed) {
  TestOptions options = seeing();
  options.context = 64;
  const TestApi api(std::move(options));
  std::string images = image_url(data_url(bmp(1, 1)));
  for (int i = 0; i < 16; ++i) images += "," + image_url(data_url(bmp(1, 1)));
  EXPECT_NE(tokens(api, user(images))
                .find("your images alone resulted in at least 68 tokens (context_length_exceeded)"),
            std::string::npos);
}

// Frames of 4 x 4 pixels are 4 tokens a pair.
media::Processor of_videos(bool times) {
  media::Processor processor;
  processor.sizing = media::Sizing::kPixelBudget;
  processor.layout = media::PixelLayout::kBlocks;
  processor.patch = 1;
  processor.merge = processor.frames = processor.unit = 2;
  processor.pixels_min = processor.pixels_max = 16;
  processor.placeholder = {.prompt = "<i>", .image = "<mark>", .before = "(", .after = ")"};
  processor.video = {.taken = true, .pixels_min = 16, .pixels_max = 16, .prompt = "<v>",
                     .image = "<frame>", .times = times};
  if (times) processor.video.before = "[", processor.video.after = "]";
  return processor;
}

constexpr const char* kSeeingVideos =
    "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{% if p.type == 'image' %}<i>{% elif p.type == 'video' %}<v>{% else %}"
    "{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string video(const std::string& frames, const std::string& more = "") {
  return R"({"type":"video","video":[)" + frames + "]" + more + "}";
}

TEST_F(Pictures, AVideoIsAListOfFrames) {
  const std::string frame = quoted(data_url(bmp(4, 4))), other = quoted(data_url(bmp(4, 4, 9)));
  const std::string three =
      frame + "," + other + R"(,{"type":"image_url","image_url":)" + frame + "}";
  const std::string image = image_url(data_url(bmp(1, 1))), digits_of = digits(bmp(4, 4));
  for (const bool times : {false, true}) {
    const media::Processor processor = of_videos(times);
    TestOptions options = seeing(kSeeingVideos);
    options.config.processor = &processor;
    const TestApi api(std::move(options));
    // "<0.2 seconds>[" and "]" around each moment.
    const int moment = 4 + (times ? 13 + 2 : 0);
    EXPECT_EQ(tokens(api, user(video(three))), std::to_string(kAround + 2 * moment));
    EXPECT_EQ(
        tokens(api, user(image + "," + video(frame) + "," + video(three, R"(,"fps":4)") + "," + image)),
        std::to_string(kAround + 2 * kImage + 3 * moment));
    EXPECT_EQ(tokens(api, user(R"({"type":"video_url","video_url":{"url":)"
                               R"("data:video/jpeg;base64,)" +
                               digits_of + "," + digits_of + R"("}})")),
              std::to_string(kAround + moment));
    EXPECT_NE(api.get("/props").body.find(R"("video":true)"), std::string::npos);
  }
}

// Files of videos, of which the program reads some or, built without libavformat, none.
TEST_F(Pictures, AFileOfAVideoIsItsFramesOrRefusedWithASentence) {
  const media::Processor processor = of_videos(true);
  TestOptions options = seeing(kSeeingVideos);
  options.config.processor = &processor;
  const TestApi api(std::move(options));
  const auto file = [](const char* member, const std::string& type, const std::string& bytes) {
    return std::string(R"({"type":")") + member + R"(",")" + member + R"(":"data:)" + type +
           ";base64," + digits(bytes) + R"("})";
  };
  const std::string gif = "image/gif", webm = "video/webm";
  const auto sentences = std::to_array<std::pair<std::string, std::string>>(
      {{R"({"type":"video_url","video_url":{"url":"https://a.example/b.mp4"}})",
        "this server fetches nothing from web addresses (--allow-remote-media): send the video"},
       {R"({"type":"video","video":"file:///a.mp4"})",
        "this server reads no files of its own (--media-path): send the video"},
       {file("video_url", "video/mp4", bmp(4, 4)),
        "Invalid video in 'messages[0].content[0].video_url': the video is of no known format"},
       {file("video_url", webm, media::video_sample("sound.mp4")),
        "expected pictures in the MP4, found none, only sound or text"},
       {file("video", webm, media::video_sample("pattern.webm").substr(0, 999)),
        "the WebM ends early, within its segment"}});
  if (!media::check_reads_videos()) {
    for (const auto& [part, sentence] : sentences)
      EXPECT_NE(tokens(api, user(part)).find(media::check_reads_videos().error().message),
                std::string::npos)
          << part;
    return;
  }
  for (const auto& [part, sentence] : sentences)
    EXPECT_NE(tokens(api, user(part)).find(sentence), std::string::npos) << tokens(api, user(part));
  // Four frames of its two seconds.
  const std::string frame = quoted(data_url(bmp(64, 64)));
  const std::string listed = tokens(api, user(video(frame + "," + frame + "," + frame + "," + frame)));
  EXPECT_EQ(tokens(api, user(file("video_url", gif, media::video_sample("pattern.gif")))), listed);
  EXPECT_EQ(tokens(api, user(file("video", webm, media::video_sample("pattern.webm")))), listed);
  EXPECT_EQ(tokens(api, user(R"({"type":"file","file":{"file_data":"data:video/mp4;base64,)" +
                             digits(media::video_sample("pattern.mp4")) + R"("}})")),
            listed);
  EXPECT_EQ(tokens(api, user(R"({"type":"video_url","fps":100,"video_url":"data:video/mp4;base64,)" +
                             digits(media::video_sample("h264.mp4")) + R"("})")),
            tokens(api, user(video(frame + "," + frame + "," + frame + "," + frame + "," + frame +
                                   "," + frame + "," + frame + "," + frame))));
}

TEST_F(Pictures, AVideoWithoutMemoryIsNotCalledAnImage) {
  if (!media::check_reads_videos()) GTEST_SKIP() << "built without libavformat (WEIR_VIDEO)";
  media::Processor processor = of_videos(true);
  // Of what a moment becomes, 24 MB; decoding takes a few.
  processor.video.pixels_min = processor.video.pixels_max = 1 << 20;
  ApiConfig config;
  config.processor = &processor;
  MediaSet set;
  set.want(config,
           {media_of_base64(Medium::kVideo, "video", digits(media::video_sample("pattern.gif")))},
           {.tokens_max = 1 << 30});
  MemoryBudget budget(16 << 20);
  set.read(budget, grammar::Interrupt());
  ASSERT_TRUE(set.seen());
  ASSERT_FALSE(*set.seen());
  EXPECT_EQ(set.seen()->error().kind, "video_too_large") << set.seen()->error().message;
  EXPECT_TRUE(set.seen()->error().message.starts_with("Invalid video in 'video': it would take "))
      << set.seen()->error().message;
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(Pictures, AVideoThatIsNotReadIsRefusedWithASentence) {
  const media::Processor processor = of_videos(true);
  TestOptions options = seeing(kSeeingVideos);
  options.config.processor = &processor;
  const TestApi api(std::move(options));
  const std::string part = "messages[0].content[0]";
  const std::string frame = quoted(data_url(bmp(4, 4)));
  EXPECT_NE(tokens(api, user(video(""))).find("at least one image"), std::string::npos);
  EXPECT_NE(tokens(api, user(video("3"))).find("'" + part + ".video[0]'"), std::string::npos);
  EXPECT_NE(tokens(api, user(video(frame, R"(,"fps":0)"))).find("frames a second, found 0"),
            std::string::npos);
  EXPECT_NE(tokens(api, user(video(frame, R"(,"fps":"2")"))).find("a number"), std::string::npos);
  const std::string uneven = user(video(frame + "," + quoted(data_url(bmp(8, 4)))));
  EXPECT_NE(count_of(api.post("/v1/chat/completions", R"({"model":"m","messages":)" + uneven + "}"),
                     "none")
                .find("Invalid image in '" + part +
                      ".video[1]': expected a frame of 4 x 4 pixels, as the video's first one, "
                      "found 8 x 4"),
            std::string::npos);
  const TestApi blind(seeing(kSeeingVideos));
  EXPECT_NE(tokens(blind, user(video(frame)))
                .find("'" + part + ".video': this model does not support videos"),
            std::string::npos);
}

// They come as far as the engine, which has no encoder here.
TEST_F(Pictures, APromptThatIsNoConversationShowsThemToo) {
  const std::string image = quoted(digits(bmp(9, 5)));
  const auto answer = [](const TestApi& api, const std::string& text, const std::string& data) {
    return count_of(api.post("/completion", R"({"n_predict":1,"prompt":{"prompt_string":")" + text +
                                                R"(","multimodal_data":[)" + data + "]}}"),
                    "none");
  };
  const TestApi api(seeing());
  const std::string shown = "This model takes no pictures";
  EXPECT_NE(answer(api, "a<__media__>b", image).find(shown), std::string::npos);
  EXPECT_NE(answer(api, "<__media__>ab<__media__>", image + "," + image).find(shown),
            std::string::npos);
  EXPECT_NE(answer(api, "ab", image).find("expected <__media__> once for each of 1 images, found 0"),
            std::string::npos);
  EXPECT_NE(answer(api, "<__media__>", quoted("@")).find("'prompt.multimodal_data[0]'"),
            std::string::npos);
  EXPECT_NE(answer(TestApi(), "<__media__>", image).find("does not support images"),
            std::string::npos);
  for (const char* text : {"ab", "a[img-1]b", "a[img-0]b[img-7][img-1]"}) {
    const auto told = api.post("/api/generate", R"({"model":"m","raw":true,"stream":false,"prompt":")" +
                                                    std::string(text) + R"(","images":[)" + image +
                                                    "," + image + "]}");
    EXPECT_NE(told.body.find(shown), std::string::npos) << told.body;
  }
}

TEST_F(Pictures, AModelWithoutATowerSaysSo) {
  const TestApi api;
  const std::string refusal =
      "400 unsupported_parameter: Unsupported 'messages[0].content[0].image_url.url': this model "
      "does not support images: it has no vision tower.";
  const std::string messages = user(image_url(data_url(bmp(1, 1))));
  EXPECT_EQ(tokens(api, messages), refusal);
  EXPECT_EQ(count_of(api.post("/v1/chat/completions", R"({"model":"m","messages":)" + messages + "}"),
                     "none"),
            refusal);
  EXPECT_NE(api.get("/props").body.find(R"("vision":false)"), std::string::npos);
}

TEST_F(Pictures, AreRefusedWhereNothingLooksAtThem) {
  const TestApi api(seeing());
  const auto response = api.post(
      "/v1/embeddings",
      R"({"model":"m","messages":)" + user(image_url(data_url(bmp(1, 1)))) + "}");
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("images and sounds are not embedded"), std::string::npos) << response.body;
}

TEST_F(Pictures, AModelThatSeesSaysSo) {
  const TestApi api(seeing());
  EXPECT_NE(api.get("/props").body.find(R"("vision":true)"), std::string::npos);
  EXPECT_NE(api.get("/v1/models").body.find(R"("input_modalities":["text","image"])"),
            std::string::npos);
  EXPECT_NE(api.get("/api/tags").body.find(R"("vision")"), std::string::npos);
}

TEST_F(Pictures, FilesComeFromBelowOneFolder) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("weir-media-" + std::to_string(::getpid()));
  fs::create_directories(folder / "a");
  std::ofstream(folder / "a" / "b.bmp", std::ios::binary) << bmp(3, 3);
  fs::create_symlink(folder / "a" / "b.bmp", folder / "link.bmp");
  TestOptions options = seeing();
  options.config.media_limits.folder = folder.string();
  {
    const TestApi api(std::move(options));
    const std::string one = std::to_string(kAround + kImage);
    EXPECT_EQ(tokens(api, user(image_url("file:a/b.bmp"))), one);
    EXPECT_EQ(tokens(api, user(image_url("file://" + folder.string() + "/a/b.bmp"))), one);
    for (const char* path : {"file:///etc/passwd", "file:../x", "file:link.bmp", "file:none"})
      EXPECT_EQ(tokens(api, user(image_url(path))).substr(0, 3), "400") << path;
    EXPECT_EQ(tokens(api, user(image_url("file:///etc/passwd"))).find(folder.string()),
              std::string::npos)
        << "an error tells where the folder is";
  }
  fs::remove_all(folder);
}

TEST_F(Pictures, WebAddressesAreFetchedFirst) {
  TableDesk desk({{"https://a.example/b.bmp", bmp(2, 2)}});
  TestOptions options = seeing();
  options.config.media = &desk;
  TestApi api(std::move(options));
  const auto ask = [&](const std::string& address) {
    RawClient client(api.port());
    client.send(net::post("/tokenize", R"({"messages":)" + user(image_url(address)) + "}"));
    EXPECT_TRUE(api.eventually([&] { return desk.orders() == 1; }));
    api.on_loop([&] { desk.answer(); });
    return count_of(client.read_response(), "count");
  };
  EXPECT_EQ(ask("https://a.example/b.bmp"), std::to_string(kAround + kImage));
  EXPECT_EQ(ask("https://a.example/none"),
            "400 failed_to_download_image: Invalid image in "
            "'messages[0].content[0].image_url.url': it cannot be fetched: a.example: no such "
            "file.");
  {
    RawClient client(api.port());
    client.send(net::post("/tokenize",
                          R"({"messages":)" + user(image_url("https://a.example/b.bmp")) + "}"));
    EXPECT_TRUE(api.eventually([&] { return desk.orders() == 1; }));
  }
  EXPECT_TRUE(api.eventually([&] { return desk.cancelled() == 1; })) << "the client has left";
  api.on_loop([&] { desk.answer(); });
}

}  // namespace
}  // namespace weir::api
