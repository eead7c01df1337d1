#include "base/log.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace weir::log {
namespace {

TEST(Log, AnEventIsTextOrJson) {
  const Field fields[] = {
      {"path", std::string_view("/a\"b\n")}, {"status", int64_t{200}}, {"total_ms", 12.345}};
  EXPECT_EQ(format_event(Format::kText, "http answer", fields),
            "http answer path=/a\"b\n status=200 total_ms=12.3");
  EXPECT_EQ(format_event(Format::kJson, "http answer", fields),
            R"("event":"http answer","path":"/a\"b\n","status":200,"total_ms":12.3)");
  EXPECT_EQ(format_event(Format::kText, "x", {}), "x");
}

// Whatever clients put into it: a line is one JSON object.
TEST(Log, JsonLinesAreJson) {
  testing::internal::CaptureStderr();
  configure(Level::kInfo, Format::kJson);
  const Field fields[] = {{"path", std::string_view("/\xff\x01{}\n%v")}, {"huge", 1e300}};
  event(Level::kInfo, "http answer", fields);
  info("plain \"quoted\"\n{} line");
  debug("left out");
  configure(Level::kInfo, Format::kText);
  EXPECT_TRUE(flush(std::chrono::seconds(10)));
  const std::string lines = testing::internal::GetCapturedStderr();
  size_t begin = 0, count = 0;
  for (size_t end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto doc = JsonDoc::parse(lines.substr(begin, end - begin));
    ASSERT_TRUE(doc) << lines;
    const JsonObject object = doc->root().get_object().value_unsafe();
    EXPECT_TRUE(json_get(object, "time") && json_get(object, "level")) << lines;
    EXPECT_TRUE(json_get(object, count == 0 ? "event" : "message")) << lines;
    ++count;
  }
  EXPECT_EQ(count, 2u) << lines;
}

}  // namespace
}  // namespace weir::log
