// What each API's parts become in the prompt, and the words in which they are refused.
#include "api/prompt/content_part.h"

#include <gtest/gtest.h>

#include <string>

#include "api/anthropic/message_request.h"
#include "api/openai/chat_messages.h"

namespace weir::api {
namespace {

std::string in_quotes(const std::string& type) { return "\"" + type + "\""; }

// The text of one part of a chat's message, or why there is none.
std::string chat_part(const std::string& members) {
  const auto doc = JsonDoc::parse("[{" + members + "}]");
  const auto text = openai::content_text("content", doc->root());
  return text ? *text : text.error().param + " | " + text.error().message;
}

std::string chat_part_of(const std::string& type) {
  return chat_part(R"("type":)" + in_quotes(type));
}

// The same of a message of Anthropic's.
std::string message_part_of(const std::string& role, const std::string& members) {
  const auto request =
      anthropic::parse_message_request(R"({"model":"m","max_tokens":9,"messages":[{"role":")" +
                                           role + R"(","content":[{)" + members + "}]}]}",
                                       RequestLimits{1000});
  return request ? request->last_content : request.error().param + " | " + request.error().message;
}

TEST(ContentPart, TextsStandInThePromptHoweverTheyAreSpelled) {
  for (const char* type : {"text", "input_text", "output_text"})
    EXPECT_EQ(chat_part(R"("text":"a","type":)" + in_quotes(type)), "a");
  EXPECT_EQ(chat_part(R"("type":"refusal","refusal":"no")"), "no");
  EXPECT_EQ(message_part_of("user", R"("type":"text","text":"a")"), "a");
  EXPECT_EQ(message_part_of("user", R"("type":"document","source":{"type":"text","data":"d"})"),
            "d");
}

TEST(ContentPart, OthersAreRefusedByWhatTheyAre) {
  const std::string path = "content[0].type | Unsupported 'content[0].type': this model does not ";
  EXPECT_EQ(chat_part_of("video_url"), path + "support parts of type video_url.");
  // Where a text is all that can be.
  for (const char* type :
       {"image_url", "input_image", "input_audio", "audio_url", "file", "input_file"})
    EXPECT_EQ(chat_part_of(type),
              "content[0].type | Unsupported 'content[0].type': images and audio can stand in "
              "messages only.");
  const std::string image =
      "messages[0].content[0].type | Unsupported 'messages[0].content[0].type': images and audio "
      "can stand in messages only.";
  for (const char* role : {"assistant", "system"})
    EXPECT_EQ(message_part_of(role, R"("type":"image")"), image);
}

TEST(ContentPart, EachApiSaysWhatItExpects) {
  EXPECT_EQ(chat_part_of("song"),
            "content[0].type | Invalid value for 'content[0].type': expected \"text\", "
            "\"image_url\" or \"input_audio\", found \"song\".");
  const std::string path =
      "messages[0].content[0].type | Unsupported 'messages[0].content[0].type': expected ";
  EXPECT_EQ(message_part_of("user", R"("type":"input_text")"),
            path + "text, image, tool_result, document or search_result, found \"input_text\".");
  EXPECT_EQ(message_part_of("assistant", R"("type":"input_text")"),
            path + "text, thinking or tool_use, found \"input_text\".");
  EXPECT_EQ(message_part_of("system", R"("type":"document")"),
            path + "\"text\", found \"document\".");
  EXPECT_EQ(message_part_of("user", R"("type":"document","source":{"type":"base64"})"),
            "messages[0].content[0].source.type | Unsupported "
            "'messages[0].content[0].source.type': expected \"text\" or \"content\", found "
            "\"base64\".");
}

}  // namespace
}  // namespace weir::api
