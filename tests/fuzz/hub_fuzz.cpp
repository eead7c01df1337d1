// What a hub answers: any bytes as a list of files, a model's info, a search, an index of shards, a
// list in the cache, or a head give values that keep their promises, or an error of one line.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "hub/answer.h"
#include "hub/model_info.h"
#include "hub/model_name.h"
#include "hub/selection.h"
#include "hub/tree.h"
#include "hub/url.h"

namespace {

using namespace weir::hub;

const std::string kCommit(40, 'c');

template <class T>
bool holds(const weir::Result<T>& result) {
  if (result) return true;
  for (const char c : result.error().message) CHECK(c != '\n' && c != '\r' && c != '\0');
  return false;
}

void check_tree(const Tree& tree) {
  for (const TreeFile& file : tree.files) {
    CHECK(is_safe_path(file.path) && is_blob_name(file.blob) && file.size >= 0);
    CHECK(tree.find(file.path) == &file);
    CHECK(file.path[0] != '/' && ("/" + file.path + "/").find("/../") == std::string::npos);
  }
  const weir::Result<Tree> again = Tree::from_json(tree.to_json(), kCommit);
  CHECK(again && again->to_json() == tree.to_json());
  for (const char* file : {"", "Q4_K_M", "a.gguf"}) {
    const auto files = select_files(tree, file, {}, {});
    if (holds(files))
      for (const TreeFile& each : *files) CHECK(tree.find(each.path) != nullptr);
  }
}

void read_lists(std::string_view text) {
  Tree tree{.commit = kCommit, .files = {}};
  if (holds(tree.add_page(text)) && holds(tree.finish())) check_tree(tree);
  if (const auto cached = Tree::from_json(text, kCommit); holds(cached)) check_tree(*cached);
  if (const auto info = ModelInfo::parse(text); holds(info))
    CHECK(is_repo_id(info->id) && is_commit(info->commit));
  if (const auto infos = ModelInfo::parse_list(text); holds(infos))
    for (const ModelInfo& info : *infos) CHECK(is_repo_id(info.id));
  Tree shards{.commit = kCommit, .files = {}};
  for (const char* path : {"a.safetensors", "config.json", "model.safetensors.index.json"})
    shards.files.push_back({.path = path, .size = 1, .blob = kCommit});
  (void)holds(select_files(shards, {}, {}, text));
}

// Lines of "name: value", the first of which is the status.
void read_head(std::string_view text) {
  ResponseHead head;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      head.status = static_cast<int>(line.size());
    else
      head.headers.emplace_back(line.substr(0, colon), line.substr(colon + 1));
  }
  for (const char c : error_of(head, {.id = "org/name"}).message) CHECK(c >= ' ');
  if (const auto wait = wait_asked(head)) CHECK(wait->count() >= 0 && wait->count() <= 3'600'000);
  const Url base = *Url::parse("https://hub.example/a/b");
  if (const auto url = base.join(std::string(head.header("location"))); holds(url)) {
    CHECK(url->scheme == "http" || url->scheme == "https");
    CHECK(Url::parse(url->text)->same_origin(*url));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_lists(text);
  read_head(text);
  if (const auto name = ModelName::parse(text); holds(name)) {
    CHECK(is_repo_id(name->id) && name->text() == text);
    CHECK(("/" + name->revision + "/").find("/../") == std::string::npos);
  }
  return 0;
}
