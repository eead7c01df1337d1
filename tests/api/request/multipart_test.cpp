#include "api/request/multipart.h"

#include <gtest/gtest.h>

namespace weir::api {
namespace {

constexpr std::string_view kType = "multipart/form-data; boundary=b";

std::string part(const std::string& disposition, const std::string& bytes) {
  return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + bytes + "\r\n";
}

Error error_of(std::string_view body, std::string_view type = kType) {
  const auto parts = read_multipart(type, body);
  return parts ? Error{} : parts.error();
}

TEST(Multipart, GivesTheBytesOfEachPartAsTheyAre) {
  const std::string bytes("\r\n--\0\r\n--a--\r\n\xff\r\n--bc\r\n", 24);
  const std::string body = part(R"(name="file"; filename="a.wav")", bytes) +
                           part(R"(name="model")", "whisper-1") + part("name=empty", "") +
                           "--b--\r\nan epilogue";
  const auto parts = read_multipart(kType, body);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ((*parts)[0].name, "file");
  EXPECT_TRUE((*parts)[0].is_file);
  EXPECT_EQ((*parts)[0].bytes, bytes);
  EXPECT_EQ((*parts)[1].name, "model");
  EXPECT_FALSE((*parts)[1].is_file);
  EXPECT_EQ((*parts)[1].bytes, "whisper-1");
  EXPECT_EQ((*parts)[2].name, "empty");
  EXPECT_EQ((*parts)[2].bytes, "");
}

TEST(Multipart, ReadsWhatClientsWriteDifferently) {
  struct {
    std::string type, body, name;
  } const cases[] = {
      {"Multipart/Form-Data; charset=utf-8; Boundary=\"b\"", part("name=a", "x") + "--b--", "a"},
      {"multipart/form-data; boundary=----=_Part/1:2?",
       "------=_Part/1:2?\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n------=_Part/1:2?--",
       "a"},
      {std::string(kType), "preamble\r\n" + part("name=a", "x") + "--b--", "a"},
      {std::string(kType), "--b \t\r\ncontent-disposition:FORM-DATA;NAME=a;\r\n\r\nx\r\n--b--", "a"},
      {std::string(kType),
       "--b\r\nX-A: b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: 8BIT\r\n"
       "Content-Disposition: form-data; name=a\r\n\r\nx\r\n--b--",
       "a"},
      {std::string(kType), part(R"(name="a\"b\\c\d")", "x") + "--b--", R"(a"b\c\d)"},
      {std::string(kType), part(R"(name="a%22b%0D%0A%25")", "x") + "--b--", "a\"b\r\n%25"},
  };
  for (const auto& each : cases) {
    const auto parts = read_multipart(each.type, each.body);
    ASSERT_TRUE(parts) << each.body << parts.error().message;
    ASSERT_EQ(parts->size(), 1u) << each.body;
    EXPECT_EQ(parts->front().name, each.name);
    EXPECT_EQ(parts->front().bytes, "x");
  }
  const std::string extended = part("name=a; filename*=UTF-8''e", "x") + "--b--";
  EXPECT_TRUE(read_multipart(kType, extended)->front().is_file);
  EXPECT_TRUE(read_multipart(kType, "--b--")->empty());
}

TEST(Multipart, SaysWhatIsWrongAndWhere) {
  const std::string good = part("name=a", "x");
  struct {
    std::string body, message;
  } const cases[] = {
      {"", "expected the boundary \"--b\" that the header names"},
      {R"({"model":"whisper-1"})", "which begins with \"{\"model\":\"whisper-1\"}\""},
      {"--c\r\n", "expected the boundary \"--b\""},
      {good, "the part that begins at byte"},
      {good + "--b", "the part that begins at byte"},
      {"--b\r\nContent-Disposition: form-data; name=a\r\n", "have no end"},
      {"--b\r\n\r\nx\r\n--b--", "the part that begins at byte 5 has no name"},
      {"--b\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--b--", "found \"attachment;"},
      {"--b\r\nContent-Disposition: form-data; filename=a\r\n\r\nx\r\n--b--", "name=\"...\" at"},
      {"--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--b--", "name=\"...\" at byte 5"},
      {"--b\r\nno header\r\n\r\nx\r\n--b--", "expected a header of a part at byte 5"},
      {"--b\r\nContent-Disposition: form-data; name=a\r\n folded\r\n\r\nx\r\n--b--",
       "found \" folded\""},
      {"--b\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b\r\n",
       "second Content-Disposition"},
      {"--b\r\nContent-Transfer-Encoding: base64\r\n", "found \"base64\""},
  };
  for (const auto& each : cases) {
    const Error error = error_of(each.body);
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
    EXPECT_NE(error.message.find(each.message), std::string::npos)
        << each.body << "\n" << error.message;
  }
  for (const char* type : {"multipart/form-data", "multipart/form-data; boundary=",
                           "multipart/form-data; boundary=\"a b \"", "multipart/form-data, x",
                           "multipart/form-data; boundary=\"\xc3\xa9\""})
    EXPECT_NE(error_of(good + "--b--", type).message.find("boundary"), std::string::npos) << type;
  EXPECT_NE(error_of("", "multipart/form-data; boundary=" + std::string(71, 'a')).message, "");
}

TEST(Multipart, HasLimits) {
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += part("name=a", "x");
  EXPECT_EQ(error_of(many + "--b--").code, ErrorCode::kTooLarge);
  const std::string name(257, 'a');
  EXPECT_EQ(error_of(part("name=" + name, "x") + "--b--").code, ErrorCode::kTooLarge);
  EXPECT_EQ(error_of("--b\r\nX-A: " + std::string(5000, 'a') + "\r\n").code, ErrorCode::kTooLarge);
  std::string exact;
  for (int i = 0; i < 64; ++i) exact += part("name=a", "x");
  EXPECT_EQ(read_multipart(kType, exact + "--b--")->size(), 64u);
}

// What begins like the boundary, again and again, is not read again and again.
TEST(Multipart, TakesTimeInProportionToTheBody) {
  std::string body = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n";
  for (int i = 0; i < 1'000'000; ++i) body += "\r\n--bx";
  const auto parts = read_multipart(kType, body + "\r\n--b--");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->front().bytes.size(), 6'000'000u);
}

}  // namespace
}  // namespace weir::api
