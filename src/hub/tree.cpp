#include "hub/tree.h"

#include <algorithm>
#include <optional>

#include "base/concat.h"
#include "base/json.h"
#include "hub/shown.h"

namespace weir::hub {

namespace {

constexpr size_t kPathBytesMax = 1024;
constexpr size_t kPartBytesMax = 255;  // NAME_MAX.
constexpr size_t kPartsMax = 16;
constexpr size_t kShaDigits = 40, kSha256Digits = 64;
// A hundred times the largest file that the hub takes, so that sums of sizes cannot overflow.
constexpr int64_t kSizeMax = int64_t{50} << 40;

tl::unexpected<Error> wrong(std::string_view path, std::string_view expected,
                            std::string_view found) {
  return fail(ErrorCode::kInvalid, concat({"the hub's list of files: ", shown(path), ": expected ",
                                           expected, ", found ", found}));
}

std::string_view text_of(JsonObject object, std::string_view key) {
  const std::optional<JsonValue> value = json_get(object, key);
  std::string_view text;
  if (!value || value->get(text) != simdjson::SUCCESS) return {};
  return text;
}

std::optional<int64_t> size_of(JsonObject object, std::string_view key) {
  const std::optional<JsonValue> value = json_get(object, key);
  int64_t size = 0;
  if (!value || value->get(size) != simdjson::SUCCESS || size < 0 || size > kSizeMax)
    return std::nullopt;
  return size;
}

// Size, SHA-256 and SHA-1 as one of the two lists has them.
Result<TreeFile> checked_file(std::string_view path, std::optional<int64_t> size,
                              std::string_view oid, std::string_view sha256, std::string_view xet) {
  if (!is_safe_path(path))
    return wrong(path, "a path below the model's folder", "one that is not, or is too long");
  if (!size) return wrong(path, "a size in bytes", "none");
  const bool large = !sha256.empty();
  const std::string_view blob = large ? sha256 : oid;
  if (!is_blob_name(blob) || blob.size() != (large ? kSha256Digits : kShaDigits))
    return wrong(path, large ? "a SHA-256" : "a SHA-1 of git's", blob.empty() ? "none" : "another");
  TreeFile file{.path = std::string(path), .size = *size, .blob = std::string(blob)};
  if (large && is_blob_name(oid) && oid.size() == kShaDigits) file.pointer = oid;
  if (is_blob_name(xet)) file.xet = xet;
  return file;
}

bool path_less(const TreeFile& a, const TreeFile& b) { return a.path < b.path; }

}  // namespace

bool TreeFile::is_large() const { return blob.size() == kSha256Digits; }

bool is_safe_path(std::string_view path) {
  if (path.size() > kPathBytesMax) return false;
  for (size_t parts = 1;; ++parts) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (parts > kPartsMax || part.empty() || part.size() > kPartBytesMax || part == "." ||
        part == "..")
      return false;
    for (const char c : part)
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\\') return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_blob_name(std::string_view text) {
  return (text.size() == kShaDigits || text.size() == kSha256Digits) &&
         std::ranges::all_of(
             text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

const TreeFile* Tree::find(std::string_view path) const {
  const auto at = std::ranges::lower_bound(files, path, {}, &TreeFile::path);
  return at != files.end() && at->path == path ? &*at : nullptr;
}

Result<void> Tree::add_page(std::string_view json) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(json, 16));
  JsonArray entries;
  if (doc.root().get(entries) != simdjson::SUCCESS)
    return wrong("a page", "an array", json_type_name(doc.root()));
  for (const JsonValue entry : entries) {
    JsonObject object;
    if (entry.get(object) != simdjson::SUCCESS)
      return wrong("an entry", "an object", json_type_name(entry));
    if (text_of(object, "type") != "file") continue;
    if (files.size() >= kFilesMax)
      return wrong("a page", concat({"at most ", std::to_string(kFilesMax), " files"}), "more");
    const std::string_view path = text_of(object, "path");
    std::optional<int64_t> size = size_of(object, "size");
    std::string_view sha256;
    if (const std::optional<JsonValue> lfs = json_get(object, "lfs")) {
      JsonObject large;
      if (lfs->get(large) != simdjson::SUCCESS) return wrong(path, "an object 'lfs'", "another");
      sha256 = text_of(large, "oid");
      if (sha256.empty()) return wrong(path, "a SHA-256 'lfs.oid'", "none");
      if (const std::optional<int64_t> whole = size_of(large, "size")) size = whole;
    }
    WEIR_ASSIGN(TreeFile file, checked_file(path, size, text_of(object, "oid"), sha256,
                                            text_of(object, "xetHash")));
    files.push_back(std::move(file));
  }
  return {};
}

Result<void> Tree::finish() {
  std::ranges::sort(files, path_less);
  // "a-b" sorts between "a" and "a/b": each file is looked for as a folder of others.
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i].path;
    if (i > 0 && files[i - 1].path == path) return wrong(path, "one file of that path", "two");
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1))
      if (find(std::string_view(path).substr(0, slash)) != nullptr)
        return wrong(path, "a folder of that name", "a file");
  }
  return {};
}

std::string Tree::to_json() const {
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("format_version", 1).key("files").begin_object();
  for (const TreeFile& file : files) {
    json.key(file.path).begin_object().field("size", file.size);
    json.field("blob_id", file.is_large() ? file.pointer : file.blob);
    if (file.is_large()) json.field("lfs_sha256", file.blob).field("lfs_size", file.size);
    if (!file.xet.empty()) json.field("xet_hash", file.xet);
    json.end_object();
  }
  json.end_object().end_object();
  return text;
}

Result<Tree> Tree::from_json(std::string_view json, std::string commit) {
  Tree tree{.commit = std::move(commit), .files = {}};
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(json, 16));
  JsonObject root, listed;
  if (doc.root().get(root) != simdjson::SUCCESS || size_of(root, "format_version") != 1)
    return wrong("trees", "an object of format_version 1", "another");
  const std::optional<JsonValue> files = json_get(root, "files");
  if (!files || files->get(listed) != simdjson::SUCCESS)
    return wrong("trees", "an object 'files'", "none");
  for (const auto& [path, entry] : listed) {
    JsonObject object;
    if (entry.get(object) != simdjson::SUCCESS || tree.files.size() >= kFilesMax)
      return wrong(path, "an object, one of at most 100000", json_type_name(entry));
    WEIR_ASSIGN(TreeFile file,
                checked_file(path, size_of(object, "size"), text_of(object, "blob_id"),
                             text_of(object, "lfs_sha256"), text_of(object, "xet_hash")));
    tree.files.push_back(std::move(file));
  }
  WEIR_TRY(tree.finish());
  return tree;
}

}  // namespace weir::hub
