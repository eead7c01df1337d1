// What a message holds, as JSON and as one text.
#include "api/request/message_content.h"

#include <gtest/gtest.h>

#include "api/request/media_source.h"

namespace weir::api {
namespace {

std::string json_of(const MessageContent& content) {
  std::string out;
  JsonWriter json(out);
  content.write(json);
  return out;
}

TEST(MessageContent, IsAStringWithoutPicturesAndAListWithThem) {
  MessageContent content;
  EXPECT_EQ(json_of(content), R"("")");
  content.add_text("a");
  content.add_text("b");
  EXPECT_EQ(json_of(content), R"("a\nb")");
  content.add_medium(Medium::kPicture);
  content.add_text("c");
  EXPECT_EQ(json_of(content),
            R"([{"type":"text","text":"a\nb"},{"type":"image"},{"type":"text","text":"c"}])");
  EXPECT_EQ(content.text_with({.image = "<i>"}), "a\nb\n<i>\nc");
  EXPECT_EQ(content.text(), "a\nb\nc");
  const auto doc = JsonDoc::parse(json_of(content));
  EXPECT_EQ(json_of(MessageContent::read(doc->root())), json_of(content));
  EXPECT_EQ(content.drop(Medium::kPicture), 1u);
  EXPECT_EQ(json_of(content), R"("a\nb\nc")");
}

TEST(MessageContent, HasSoundsBesidePictures) {
  MessageContent content;
  content.add_medium(Medium::kSound);
  content.add_text("a");
  content.add_medium(Medium::kPicture);
  content.add_text("b");
  EXPECT_EQ(json_of(content),
            R"([{"type":"audio"},{"type":"text","text":"a"},{"type":"image"},)"
            R"({"type":"text","text":"b"}])");
  const auto doc = JsonDoc::parse(json_of(content));
  EXPECT_EQ(json_of(MessageContent::read(doc->root())), json_of(content));
  EXPECT_EQ(content.text_with({.image = "<i>", .sound = "<s>"}), "<s>\na\n<i>\nb");
  EXPECT_EQ(content.drop(Medium::kPicture), 1u);
  EXPECT_EQ(content.media(), 1u);
  EXPECT_TRUE(content.has(Medium::kSound) && !content.has(Medium::kPicture));
  EXPECT_EQ(content.text_with({.sound = "<s>"}), "<s>\na\nb");
}

TEST(MessageContent, TextsThatAreNothingAddNoLine) {
  MessageContent content;
  content.add_line("");
  EXPECT_TRUE(content.empty());
  content.append(MessageContent("a"));
  content.append(MessageContent(""));
  content.append(MessageContent("b"), "; ");
  EXPECT_EQ(content.text(), "a; b");
  content.prefix("Error: ");
  EXPECT_EQ(content.text(), "Error: a; b");
  MessageContent picture;
  picture.add_medium(Medium::kPicture);
  picture.prefix("x");
  EXPECT_EQ(picture.text_with({.image = "<i>"}), "x\n<i>");
  EXPECT_FALSE(picture.empty());
}

std::string found(std::string_view url) {
  const auto source = media_at(Medium::kPicture, "f", url);
  if (!source) return source.error().kind + " | " + source.error().message;
  constexpr const char* kKinds[] = {"base64 ", "remote ", "file "};
  return kKinds[static_cast<size_t>(source->kind)] + source->text;
}

TEST(MediaSource, AnAddressSaysWhereThePictureIs) {
  EXPECT_EQ(found("data:image/png;base64,AAAA"), "base64 AAAA");
  EXPECT_EQ(found("DATA:image/svg+xml;charset=utf-8;BASE64,"), "base64 ");
  EXPECT_EQ(found("https://a.example/b.png?c"), "remote https://a.example/b.png?c");
  EXPECT_EQ(found("HTTP://a.example"), "remote HTTP://a.example");
  EXPECT_EQ(found("file:a/b.png"), "file a/b.png");
  for (const char* wrong : {"data:image/png,AAAA", "data:text/plain;base64,AAAA", "data:", "data:,"})
    EXPECT_NE(found(wrong).find("expected data:image/TYPE;base64,DIGITS"), std::string::npos)
        << wrong;
  EXPECT_EQ(found("ftp://a").substr(0, 33), "invalid_image_url | Invalid image");
  const auto sound = media_at(Medium::kSound, "f", "data:audio/wav;base64,AAAA");
  ASSERT_TRUE(sound);
  EXPECT_EQ(sound->medium, Medium::kSound);
  EXPECT_FALSE(media_at(Medium::kSound, "f", "data:image/png;base64,AAAA"));
  EXPECT_NE(found("/etc/passwd").find("found \"/etc/passwd\""), std::string::npos);
}

TEST(MediaSource, AnAddressMaySayWhatItIsOf) {
  for (const char* sound : {"data:audio/wav;base64,", "https://a.example/b.MP3?c=d.png", "file:a/b.opus"})
    EXPECT_EQ(medium_of_address(sound), Medium::kSound) << sound;
  for (const char* picture : {"data:image/png;base64,", "https://a.example/b.png?c=d.wav", "file:wav"})
    EXPECT_EQ(medium_of_address(picture), Medium::kPicture) << picture;
}

}  // namespace
}  // namespace weir::api
