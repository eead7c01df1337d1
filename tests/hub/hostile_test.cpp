// A hub that means harm: lists of files, links, heads and settings made by chance from what could
// do some. Nothing may be written outside of the cache, nothing crash, no token go elsewhere.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "hub/cache_check.h"
#include "hub/cache_list.h"
#include "hub/cache_removal.h"
#include "hub/download.h"
#include "scripted_hub.h"

namespace weir::hub {
namespace {

namespace fs = std::filesystem;

using Random = std::mt19937;

const std::string& one_of(Random& random, const std::vector<std::string>& all) {
  return all[random() % all.size()];
}

std::string hostile_path(Random& random) {
  static const std::vector<std::string> kParts = {"..",
                                                  ".",
                                                  "",
                                                  "a",
                                                  "config.json",
                                                  "model.safetensors",
                                                  "tokenizer.json",
                                                  "refs",
                                                  "blobs",
                                                  "\\u0000",
                                                  "\\\\",
                                                  "\\n",
                                                  "~",
                                                  "*",
                                                  "main",
                                                  "snapshots",
                                                  "b.gguf",
                                                  "%2e%2e",
                                                  "..%2f",
                                                  "C:",
                                                  std::string(256, 'x'),
                                                  "\\u202e",
                                                  "x.weir",
                                                  "x.weir-part",
                                                  "\xc3\xa9"};
  if (random() % 2) return "good" + std::to_string(random() % 100);
  std::string path = random() % 8 == 0 ? "/" : "";
  for (size_t parts = 1 + random() % 5; parts > 0; --parts)
    path += one_of(random, kParts) + (parts > 1 ? "/" : "");
  return path;
}

std::string hostile_value(Random& random) {
  static const std::vector<std::string> kValues = {"0",
                                                   "-1",
                                                   "1e9",
                                                   "5",
                                                   "18446744073709551615",
                                                   "9223372036854775807",
                                                   "null",
                                                   "[]",
                                                   "{}",
                                                   "\"../../x\"",
                                                   "\"\"",
                                                   "true",
                                                   "\"" + std::string(40, 'a') + "\"",
                                                   "\"" + std::string(64, 'b') + "\"",
                                                   "\"" + std::string(40, 'A') + "\"",
                                                   "\"/etc/passwd\"",
                                                   "\"" + std::string(41, 'a') + "\""};
  return one_of(random, kValues);
}

std::string hostile_tree(Random& random, const ScriptedHub& hub) {
  std::string tree = hub.tree();
  tree.pop_back();
  for (size_t entries = 1 + random() % 4; entries > 0; --entries) {
    tree += ",{\"type\":\"file\",\"path\":\"" + hostile_path(random) +
            "\",\"size\":" + (random() % 4 ? "3" : hostile_value(random)) + ",\"oid\":" +
            (random() % 4 ? "\"" + blob_of("xyz", false) + "\"" : hostile_value(random));
    if (random() % 4 == 0) tree += ",\"lfs\":{\"oid\":" + hostile_value(random) + "}";
    tree += "}";
  }
  tree += "]";
  if (random() % 10 == 0) tree.resize(random() % tree.size());
  if (random() % 10 == 0) tree[random() % tree.size()] = static_cast<char>(random());
  return tree;
}

ScriptedAnswer hostile_answer(Random& random) {
  static const std::vector<std::string> kNames = {
      "location", "content-range", "x-linked-etag", "x-linked-size", "x-repo-commit",
      "link",     "ratelimit",     "retry-after",   "x-error-code",  "x-error-message",
      "etag",     "content-length"};
  static const std::vector<std::string> kValues = {
      "https://evil.example/x",
      "http://169.254.169.254/",
      "file:///etc/passwd",
      "//evil",
      "",
      "-1",
      "bytes 5-9/7",
      "bytes */0",
      "bytes 0-18446744073709551615/18446744073709551615",
      "\"\"",
      "W/\"../../x\"",
      std::string(5000, 'a'),
      "<https://evil.example>; rel=\"next\"",
      "<",
      "3",
      "\"api\";r=0;t=99999999999999999999",
      "GatedRepo",
      "https://hub.example@evil.example/",
      "\x1b[2J\x01",
      "https://cdn.example/../../x"};
  ScriptedAnswer answer;
  static const std::vector<int> kStatuses = {200, 206, 302, 307, 401, 403, 404, 416, 418, 500, 0};
  answer.status = kStatuses[random() % kStatuses.size()];
  if (answer.status == 0) answer.ending = random() % 2 ? Ending::kBroken : Ending::kRefused;
  for (size_t count = random() % 4; count > 0; --count)
    answer.headers.emplace_back(one_of(random, kNames), one_of(random, kValues));
  answer.body = std::string(random() % 50, '[');
  return answer;
}

std::vector<std::string> everything_below(const fs::path& folder, const fs::path& but) {
  std::vector<std::string> paths;
  for (fs::recursive_directory_iterator at(folder), end; at != end; ++at) {
    if (at->path() == but) {
      at.disable_recursion_pending();
      continue;
    }
    paths.push_back(at->path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

TEST(HostileHub, CanWriteNothingOutsideTheCache) {
  const fs::path folder =
      fs::temp_directory_path() / ("weir_hostile_" + std::to_string(::getpid()));
  fs::remove_all(folder);
  const Cache cache((folder / "a" / "hub").string());
  fs::create_directories(cache.folder());
  std::ofstream(folder / "precious") << "precious";
  const std::vector<std::string> before = everything_below(folder, cache.folder());
  size_t pulled = 0, refused = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ScriptedHub hub;
    hub.files = {
        {"config.json", "{}"}, {"model.safetensors", std::string(1000, 'w')}, {"xyz", "xyz"}};
    hub.others = "xyz";
    hub.first.push_back({"/tree/", {.body = hostile_tree(random, hub)}});
    for (size_t count = random() % 3; count > 0; --count)
      hub.first.push_back({one_of(random, {"resolve", "cdn.example", "/revision/", "/tree/"}),
                           hostile_answer(random)});
    ScriptedTransport transport([&](const Request& request) { return hub(request); });
    Client client = *Client::create(scripted_settings(cache.folder()), transport);
    const std::vector<std::string> include{"*"};
    const Result<HubModel> model = client.resolve(*ModelName::parse("org/name"), include);
    const bool done = model && download(client, cache, *model, {.disk_reserve = 0});
    ++(done ? pulled : refused);
    EXPECT_FALSE(transport.leaked(kEndpoint));
    EXPECT_EQ(everything_below(folder, cache.folder()), before);
    (void)list_models(cache);
    (void)check_model(cache, *ModelName::parse("org/name"), [](int64_t, int64_t) {});
    if (seed % 10 == 0) (void)remove_model(cache, *ModelName::parse("org/name"));
  }
  // Neither is the test without harm, nor is everything refused.
  EXPECT_GT(pulled, 20u);
  EXPECT_GT(refused, 200u);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace weir::hub
