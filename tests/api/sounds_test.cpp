// Sounds through the APIs of a whole server: how many tokens they become, beside images too, and in
// which words they are refused. The front end is made up: a sound becomes the token <sound> once
// for each 160 samples, in brackets.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "api/media_answers.h"
#include "api/test_api.h"
#include "base/base64.h"

namespace weir::api {
namespace {

media::FrontEnd quarter_second_at_most() {
  media::FrontEnd front_end;
  front_end.framing = media::Framing::kCausal;
  front_end.frame = 319;  // So that a frame is there for each whole hop of two.
  front_end.fft = 320;
  front_end.samples_max = 4000;
  front_end.row_count = media::RowCount::kSubsampled;
  front_end.rows_max = 6;
  front_end.placeholder = {.prompt = "<s>", .sound = "<sound>", .before = "(", .after = ")"};
  return front_end;
}

media::Processor four_tokens() {
  media::Processor processor;
  processor.width = processor.height = 4;
  processor.unit = 2;
  processor.placeholder = {.prompt = "<i>", .image = "<mark>", .before = "(", .after = ")"};
  return processor;
}

std::string number(uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// A WAV of 16 kHz, and so many channels of 32-bit floats.
std::string wav(const std::vector<float>& samples, uint32_t channels = 1) {
  const auto bytes = static_cast<uint32_t>(samples.size() * sizeof(float));
  std::string out = "RIFF" + number(36 + bytes, 4) + "WAVEfmt " + number(16, 4) + number(3, 2) +
                    number(channels, 2) + number(16000, 4) + number(16000 * 4 * channels, 4) +
                    number(4 * channels, 2) + number(32, 2) + "data" + number(bytes, 4);
  out.resize(out.size() + bytes);
  std::memcpy(out.data() + out.size() - bytes, samples.data(), bytes);
  return out;
}

std::string digits(const std::string& bytes) {
  std::string out;
  append_base64(out, {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  return out;
}

// Writes the messages' parts as a template of a model that hears and sees does.
constexpr const char* kHearing =
    "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{% if p.type == 'image' %}<i>{% elif p.type == 'audio' %}<s>"
    "{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

class Sounds : public testing::Test {
 protected:
  TestOptions hearing(const char* chat_template = kHearing) {
    TestOptions options;
    options.config.front_end = &front_end_;
    options.chat_template = chat_template;
    return options;
  }
  // The tokens of a conversation, by /tokenize; or the error's message.
  static std::string tokens(const TestApi& api, const std::string& parts) {
    return count_of(api.post("/tokenize", R"({"messages":)" + user(parts) + "}"), "count");
  }
  static std::string input_audio(const std::string& bytes, const std::string& format = "wav") {
    return R"({"type":"input_audio","input_audio":{"data":")" + digits(bytes) + R"(","format":")" +
           format + R"("}})";
  }
  static std::string audio_url(const std::string& url) {
    return R"({"type":"audio_url","audio_url":{"url":")" + url + R"("}})";
  }
  static std::string data_url(const std::string& bytes) {
    return "data:audio/wav;base64," + digits(bytes);
  }

  const media::FrontEnd front_end_ = quarter_second_at_most();
  const media::Processor processor_ = four_tokens();
  const std::vector<float> sound_ = std::vector<float>(1600, 0.25f);
};

// "[user]" and "[assistant]" are 6 and 11 bytes; the sound is 9 frames, so 3 tokens, and 2 bytes.
constexpr int kAround = 6 + 11, kSound = 5, kImage = 6;

constexpr const char* kHi = R"(,{"type":"text","text":"Hi"})";

TEST_F(Sounds, EveryApiThatDefinesThemCountsThem) {
  const TestApi api(hearing());
  const std::string one = std::to_string(kAround + kSound + 2), url = data_url(wav(sound_));
  EXPECT_EQ(tokens(api, input_audio(wav(sound_)) + kHi), one);
  EXPECT_EQ(tokens(api, audio_url(url) + kHi), one);
  EXPECT_EQ(tokens(api, R"({"type":"file","file":{"file_data":")" + url + R"("}})" + kHi), one);
  EXPECT_EQ(tokens(api, input_audio(wav(sound_)) + kHi + "," + input_audio(wav(sound_))),
            std::to_string(kAround + 2 * kSound + 2));
  EXPECT_EQ(count_of(api.post("/v1/responses/input_tokens",
                              R"({"model":"m","input":)" +
                                  user(R"({"type":"input_text","text":"Hi"},)" +
                                       input_audio(wav(sound_))) +
                                  "}"),
                     "input_tokens"),
            one);
  EXPECT_EQ(count_of(api.post("/v1/responses/input_tokens",
                              R"({"model":"m","input":)" +
                                  user(R"({"type":"input_text","text":"Hi"},{"type":"input_file",)"
                                       R"("filename":"a.wav","file_data":")" +
                                       url + R"("})") +
                                  "}"),
                     "input_tokens"),
            one);
}

TEST_F(Sounds, StandBesideImages) {
  TestOptions options = hearing();
  options.config.processor = &processor_;
  const TestApi api(options);
  const std::string bmp = "BM" + number(54 + 4, 4) + number(0, 4) + number(54, 4) + number(40, 4) +
                          number(1, 4) + number(1, 4) + number(1, 2) + number(24, 2) +
                          number(0, 24) + number(0, 4);
  const std::string image =
      R"({"type":"image_url","image_url":{"url":"data:image/bmp;base64,)" + digits(bmp) + R"("}})";
  const std::string both = std::to_string(kAround + kSound + kImage + 2);
  EXPECT_EQ(tokens(api, input_audio(wav(sound_)) + "," + image + kHi), both);
  EXPECT_EQ(tokens(api, image + "," + input_audio(wav(sound_)) + kHi), both);
  const std::string props = api.get("/props").body;
  EXPECT_NE(props.find(R"("vision":true,"audio":true)"), std::string::npos) << props;
  const std::string models = api.get("/v1/models").body;
  EXPECT_NE(models.find(R"("input_modalities":["text","image","audio"])"), std::string::npos)
      << models;
}

TEST_F(Sounds, OfATemplateThatTakesStringsStandInTheText) {
  const TestApi api(hearing(""));
  EXPECT_EQ(tokens(api, R"({"type":"text","text":"Hi"},)" + input_audio(wav(sound_))),
            std::to_string(kAround + kSound + 3));  // A line feed between.
}

TEST_F(Sounds, AreRefusedInWordsThatSayWhatIsTaken) {
  TestOptions options = hearing();
  options.config.media_limits.sounds_max = 2;
  options.config.media_limits.sound_file_bytes_max = 40'000;
  const TestApi api(options);
  const auto refused = [&](const std::string& part, const char* told) {
    const std::string answer = tokens(api, part);
    EXPECT_NE(answer.find(told), std::string::npos) << answer;
    EXPECT_EQ(answer.substr(0, 4), "400 ") << answer;
  };
  refused(input_audio(wav(sound_), "aac"),
          "expected wav, flac, mp3, ogg, opus or vorbis, found \"aac\"");
  refused(input_audio(wav(sound_).substr(0, 900)),
          "audio_parse_error: Invalid audio in "
          "'messages[0].content[0].input_audio.data': ");
  refused(input_audio("%PDF-1.7 "), "unsupported_audio_media_type");
  refused(input_audio(""), "audio");
  refused(input_audio(wav(std::vector<float>(5000))), "this model hears at most 0.2 s at once");
  refused(input_audio(wav({0.5f})), "too few for this model to hear anything");
  refused(input_audio(wav(std::vector<float>(1600, NAN))), "audio_parse_error");
  refused(input_audio(wav(std::vector<float>(20'000))), "audio_too_large");
  refused(
      input_audio(wav(sound_)) + "," + input_audio(wav(sound_)) + "," + input_audio(wav(sound_)),
      "too_many_sounds: Invalid audio in 'messages[0].content[2].input_audio.data': a request may "
      "have at most 2 sounds (--max-sounds), this one has 3.");
  refused(audio_url("https://a.example/a.wav"), "--allow-remote-media");
  refused(audio_url("file:a.wav"), "--media-path");
  refused(audio_url("data:image/png;base64,AAAA"), "expected data:audio/TYPE;base64,DIGITS");
  refused(R"({"type":"input_audio","input_audio":{"format":"wav"}})", "input_audio.data");
  refused(R"({"type":"input_audio"})", "input_audio");
  refused(input_audio(wav(sound_)) + R"(,{"type":"text","text":"<sound>"})",
          "expected <sound> for sounds alone, found it in a message's text");
  // Its bytes say what it is, whatever the format claims.
  EXPECT_EQ(tokens(api, input_audio(wav(sound_), "mp3")), std::to_string(kAround + kSound));
  // Seven channels become their mean.
  EXPECT_EQ(tokens(api, input_audio(wav(std::vector<float>(7 * 1600 / 2, 0.5f), 7))),
            std::to_string(kAround + 2 + 1));
}

TEST_F(Sounds, OfAModelThatHearsNoneAreRefused) {
  const TestApi api({.chat_template = kHearing});
  EXPECT_NE(tokens(api, input_audio(wav(sound_)))
                .find("this model does not support audio: it has no encoder of sounds"),
            std::string::npos);
  const std::string props = api.get("/props").body;
  EXPECT_NE(props.find(R"("vision":false,"audio":false)"), std::string::npos) << props;
}

TEST_F(Sounds, GiveTheirMemoryBack) {
  TestOptions options = hearing();
  options.config.media_limits.bytes_max = 1 << 20;
  const TestApi api(options);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(tokens(api, input_audio(wav(sound_))), std::to_string(kAround + kSound)) << i;
}

}  // namespace
}  // namespace weir::api
