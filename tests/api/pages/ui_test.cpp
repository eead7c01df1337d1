// The web page over HTTP: its files, how long they may be kept, and under which policy they run.
#include "api/pages/ui.h"

#include <gtest/gtest.h>

#include "api/test_api.h"
#include "page/page_files.h"

namespace weir::api::pages {
namespace {

constexpr char kBrowser[] = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n";

std::string address(std::string_view name) {
  return "/ui/" + std::string(page::page_version()) + "/" + std::string(name);
}

TEST(Ui, IsThePageForBrowsersOnly) {
  TestApi server;
  const auto page = server.get("/", kBrowser);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.header("Cache-Control"), "no-cache");
  EXPECT_EQ(page.header("Vary"), "Accept, Accept-Encoding");
  EXPECT_NE(page.body.find(address("main.js")), std::string::npos) << page.body;
  EXPECT_EQ(server.get("/", "Accept: */*\r\n").header("Content-Type"), "text/plain; charset=utf-8");
}

TEST(Ui, SaysNothingOfAPageThatTheBrowserHas) {
  TestApi server;
  const std::string tag = server.get("/", kBrowser).header("ETag");
  ASSERT_EQ(tag, '"' + std::string(page::page_version()) + '"');
  const auto again = server.get("/", std::string(kBrowser) + "If-None-Match: W/" + tag + "\r\n");
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(server.get("/", std::string(kBrowser) + "If-None-Match: \"x\"\r\n").status, 200);
}

TEST(Ui, EveryFileHasAStrictPolicyAndAnAddressForEver) {
  TestApi server;
  size_t files = 0;
  for (const page::PageFile& file : page::page_files()) {
    if (file.name == "index.html") continue;
    SCOPED_TRACE(file.name);
    const auto answer = server.get(address(file.name));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("Content-Type"), file.type);
    EXPECT_EQ(answer.body, file.bytes);
    EXPECT_EQ(answer.header("Cache-Control"), "public, max-age=31536000, immutable");
    EXPECT_EQ(answer.header("X-Content-Type-Options"), "nosniff");
    const std::string policy = answer.header("Content-Security-Policy");
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
    for (const char* part : {"default-src 'none'", "script-src 'self'", "trusted-types 'none'",
                             "require-trusted-types-for 'script'", "frame-ancestors 'none'"})
      EXPECT_NE(policy.find(part), std::string::npos) << part;
    ++files;
  }
  EXPECT_GT(files, 10u);
}

TEST(Ui, IsPackedForThoseWhoCanUnpack) {
  TestApi server;
  const page::PageFile& file = *page::find_page_file("main.js");
  for (const char* accept : {"gzip", "gzip, deflate, br", "br;q=1.0, gzip;q=0.8"}) {
    const auto answer =
        server.get(address("main.js"), "Accept-Encoding: " + std::string(accept) + "\r\n");
    EXPECT_EQ(answer.header("Content-Encoding"), "gzip") << accept;
    EXPECT_EQ(answer.body, file.packed) << accept;
  }
  for (const char* accept : {"br", "gzip;q=0", "gzip;q=0.0", "xgzip"}) {
    const auto answer =
        server.get(address("main.js"), "Accept-Encoding: " + std::string(accept) + "\r\n");
    EXPECT_EQ(answer.header("Content-Encoding"), "") << accept;
    EXPECT_EQ(answer.body, file.bytes) << accept;
  }
}

TEST(Ui, HasNothingElse) {
  TestApi server;
  for (const std::string& path : {address("none.js"), address("index.html"), address("../main.js"),
                                  std::string("/ui/other/main.js"), std::string("/ui/main.js")}) {
    const auto answer = server.get(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.header("Cache-Control"), "no-store") << path;
  }
}

TEST(Ui, CanBeOff) {
  TestOptions options;
  options.config.ui = false;
  TestApi server(options);
  EXPECT_EQ(server.get("/", kBrowser).body.find("/ui/"), std::string::npos);
  EXPECT_EQ(server.get(address("main.js")).status, 404);
}

TEST(Ui, NeedsNoKeyAndTellsNothing) {
  TestOptions options;
  options.config.model_id = "secret-model";
  options.config.api_keys = {{.secret = "k", .name = "a"}};
  TestApi server(options);
  EXPECT_EQ(server.get(address("main.js")).status, 200);
  const auto page = server.get("/", kBrowser);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body.find("secret-model"), std::string::npos);
}

// What a first visit costs, and what the first formula costs beside it (docs/page.md).
TEST(Ui, IsSmall) {
  size_t page = 0, formulas = 0;
  for (const page::PageFile& file : page::page_files())
    (file.name.starts_with("katex") ? formulas : page) += file.packed.size();
  EXPECT_LE(page, size_t{110} << 10);
  EXPECT_LE(page + formulas, size_t{190} << 10);
}

}  // namespace
}  // namespace weir::api::pages
