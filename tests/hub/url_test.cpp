#include "hub/url.h"

#include <gtest/gtest.h>

namespace weir::hub {
namespace {

TEST(Url, IsTakenApart) {
  const Result<Url> url = Url::parse("https://Hub.Example:8443/a/b?x=1");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->scheme + " " + url->host + " " + std::to_string(url->port),
            "https hub.example 8443");
  EXPECT_EQ(Url::parse("http://h")->port, 80);
  EXPECT_EQ(Url::parse("https://[::1]/")->host, "[::1]");
}

TEST(Url, OnlyHttpWithoutAUserIsOne) {
  for (const char* text :
       {"", "hub", "ftp://h/", "file:///etc/passwd", "https://u:p@h/", "https://u@h/", "https://",
        "https://h/a b", "https://h/\n", "//h/path", "https://h:99999/", "https://h%D0/",
        "https://h%2541/", "https://h\xd0/", "https://h\x01/"})
    EXPECT_FALSE(Url::parse(text)) << text;
}

TEST(Url, ErrorsDoNotRepeatAQuery) {
  const Result<Url> url = Url::parse("https://user@h/path?Signature=secret");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().message.find("secret"), std::string::npos) << url.error().message;
}

TEST(Url, JoinsWhatLocationsSay) {
  const Url base = *Url::parse("https://h/a/b?x=1");
  EXPECT_EQ(base.join("/c?y=2")->text, "https://h/c?y=2");
  EXPECT_EQ(base.join("c")->text, "https://h/a/c");
  EXPECT_TRUE(base.join("/c")->same_origin(base));
  // None of these is the hub, however much it looks like it.
  for (const char* location :
       {"//evil/c", "https://evil/c", "http://h/c", "https://h:444/", "https://h.evil/"}) {
    const Result<Url> url = base.join(location);
    EXPECT_TRUE(url && !url->same_origin(base)) << location;
  }
  for (const char* location : {"https://h@evil/", "javascript:x", "file:///etc/passwd", "//e%D0/d"})
    EXPECT_FALSE(base.join(location)) << location;
}

TEST(Url, EncodesWhatIsNotPlain) {
  EXPECT_EQ(percent_encode("a b/c?d#\xc3\xa9", true), "a%20b/c%3Fd%23%C3%A9");
  EXPECT_EQ(percent_encode("refs/pr/1"), "refs%2Fpr%2F1");
}

}  // namespace
}  // namespace weir::hub
