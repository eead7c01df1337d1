#include "hub/selection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "base/concat.h"
#include "base/json.h"

namespace weir::hub {

namespace {

// What src/card and src/text open, and what huggingface's libraries want beside it. Patterns of the
// top folder, but for the two with a slash.
constexpr std::array<std::string_view, 24> kSettings = {"config.json",
                                                        "generation_config.json",
                                                        "hf_quant_config.json",
                                                        "quantize_config.json",
                                                        "quant_config.json",
                                                        "tokenizer*",
                                                        "tekken.json",
                                                        "*.tiktoken",
                                                        "tiktoken.model",
                                                        "vocab.json",
                                                        "vocab.txt",
                                                        "merges.txt",
                                                        "spiece.model",
                                                        "special_tokens_map.json",
                                                        "added_tokens.json",
                                                        "chat_template.*",
                                                        "additional_chat_templates/*.jinja",
                                                        "*processor*config*.json",
                                                        "modules.json",
                                                        "config_sentence_transformers.json",
                                                        "sentence_bert_config.json",
                                                        "?_*/config.json",
                                                        "LICENSE*",
                                                        "NOTICE*"};

constexpr std::string_view kWeights = ".safetensors";

bool in_top(std::string_view path) { return path.find('/') == std::string_view::npos; }

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_setting(std::string_view path) {
  return std::ranges::any_of(kSettings, [&](std::string_view pattern) {
    return std::ranges::count(path, '/') == std::ranges::count(pattern, '/') &&
           matches_glob(pattern, path);
  });
}

// "-00001-of-00004" before the file's ending: its number and how many there are.
struct PartNumber {
  int number = 0, count = 0;
  std::string_view stem;  // Before that.
};
std::optional<PartNumber> part_number(std::string_view path, std::string_view ending) {
  constexpr std::string_view kShape = "-00001-of-00001";
  if (!path.ends_with(ending) || path.size() < ending.size() + kShape.size()) return std::nullopt;
  path.remove_suffix(ending.size());
  const std::string_view tail = path.substr(path.size() - kShape.size());
  PartNumber part{.stem = path.substr(0, path.size() - kShape.size())};
  const auto number_at = [&](size_t at, int& number) {
    const char* end = tail.data() + at + 5;
    const auto read = std::from_chars(tail.data() + at, end, number);
    return read.ec == std::errc() && read.ptr == end && number > 0;
  };
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || !number_at(1, part.number) ||
      !number_at(10, part.count))
    return std::nullopt;
  return part;
}

tl::unexpected<Error> not_found(std::string message) {
  return fail(ErrorCode::kNotFound, std::move(message));
}

// A GGUF model of a tree: one file, or all parts of one.
struct GgufModel {
  std::vector<const TreeFile*> parts;  // By number.
  size_t count = 1;
};

// Of those that are models: a projector for images is none. By path without the parts' numbers.
std::map<std::string, GgufModel> gguf_models(const Tree& tree) {
  constexpr std::string_view kEnding = ".gguf";
  std::map<std::string, GgufModel> models;
  for (const TreeFile& file : tree.files) {
    if (!file.path.ends_with(kEnding) || name_of(file.path).starts_with("mmproj")) continue;
    const std::optional<PartNumber> part = part_number(file.path, kEnding);
    GgufModel& model = models[part ? concat({part->stem, kEnding}) : file.path];
    model.parts.push_back(&file);
    if (part) model.count = static_cast<size_t>(part->count);
  }
  return models;
}

// Whether `word` is in the path between marks that no quantisation's name has: "Q4_K" is not in
// "x-Q4_K_M.gguf", and "4" in nothing.
bool names(std::string_view path, std::string_view word) {
  const auto inside = [](char c) {
    return (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || c == '_';
  };
  const auto equal = [](char a, char b) { return ascii_lower(a) == ascii_lower(b); };
  for (size_t at = 0; at + word.size() <= path.size(); ++at) {
    const size_t end = at + word.size();
    if (std::equal(word.begin(), word.end(), path.begin() + static_cast<std::ptrdiff_t>(at),
                   equal) &&
        (at == 0 || !inside(path[at - 1])) && (end == path.size() || !inside(path[end])))
      return true;
  }
  return false;
}

std::string list_of(const std::map<std::string, GgufModel>& models) {
  constexpr size_t kShown = 20;
  std::string list;
  size_t count = 0;
  for (const auto& [path, model] : models) {
    if (count == kShown) list += ", ...";
    if (count++ < kShown) list.append(list.empty() ? "" : ", ").append(path);
  }
  return list.empty() ? "none" : list;
}

Result<std::vector<TreeFile>> files_of(const std::string& path, const GgufModel& model) {
  if (model.parts.size() != model.count)
    return not_found(concat({path, ": expected ", std::to_string(model.count), " parts, found ",
                             std::to_string(model.parts.size())}));
  std::vector<TreeFile> files;
  for (const TreeFile* part : model.parts) files.push_back(*part);
  return files;
}

Result<std::vector<TreeFile>> select_gguf(const Tree& tree, std::string_view wanted) {
  const std::map<std::string, GgufModel> models = gguf_models(tree);
  std::map<std::string, GgufModel> found;
  for (const auto& [path, model] : models) {
    const bool is_it = path == wanted || name_of(path) == wanted ||
                       std::ranges::any_of(
                           model.parts, [&](const TreeFile* part) { return part->path == wanted; });
    if (is_it) return files_of(path, model);
    if (names(path, wanted)) found.emplace(path, model);
  }
  if (found.size() == 1) return files_of(found.begin()->first, found.begin()->second);
  return not_found(concat({"expected one GGUF file named '", wanted.substr(0, 80), "' there, or ",
                           "with that in its name; found ", list_of(found.empty() ? models : found),
                           found.empty() ? "" : ": name one of them whole"}));
}

// The shards that an index names.
Result<std::set<std::string>> shards_of(std::string_view index) {
  Result<JsonDoc> doc = JsonDoc::parse(index, 16);
  JsonObject root, map;
  if (!doc || doc->root().get(root) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, concat({kIndexFile, ": expected a JSON object"}));
  const std::optional<JsonValue> weight_map = json_get(root, "weight_map");
  if (!weight_map || weight_map->get(map) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, concat({kIndexFile, ": expected an object 'weight_map'"}));
  std::set<std::string> shards;
  for (const auto& [tensor, value] : map) {
    std::string_view shard;
    if (value.get(shard) != simdjson::SUCCESS || !is_safe_path(shard) || !shard.ends_with(kWeights))
      return fail(ErrorCode::kInvalid,
                  concat({kIndexFile, ": expected names of .safetensors files in 'weight_map'"}));
    shards.emplace(shard);
  }
  return shards;
}

Result<std::vector<TreeFile>> select_safetensors(const Tree& tree, std::string_view index) {
  std::set<std::string> shards;
  if (!index.empty()) {
    WEIR_ASSIGN(shards, shards_of(index));
    for (const std::string& shard : shards)
      if (tree.find(shard) == nullptr)
        return not_found(concat({kIndexFile, " names ", shard, ", which is not there"}));
  } else {
    for (const TreeFile& file : tree.files)
      if (in_top(file.path) && file.path.ends_with(kWeights) &&
          !file.path.starts_with("consolidated"))
        shards.insert(file.path);
  }
  if (shards.empty() || tree.find("config.json") == nullptr) {
    const std::map<std::string, GgufModel> gguf = gguf_models(tree);
    if (gguf.size() == 1) return files_of(gguf.begin()->first, gguf.begin()->second);
    return not_found(concat({"expected config.json and .safetensors files there; found ",
                             gguf.empty() ? "neither these nor a GGUF file"
                                          : "GGUF files, of which one is named after a colon "
                                            "(ORG/NAME:Q4_K_M): ",
                             gguf.empty() ? "" : list_of(gguf)}));
  }
  std::vector<TreeFile> files;
  for (const TreeFile& file : tree.files)
    if (shards.contains(file.path) || is_setting(file.path) ||
        (!index.empty() && file.path == kIndexFile))
      files.push_back(file);
  return files;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view path) {
  // Where the last star stands, and up to where it has eaten: on a mismatch it eats one more.
  size_t p = 0, t = 0, star = std::string_view::npos, eaten = 0;
  while (t < path.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == path[t]) && pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      eaten = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++eaten;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool wants_index(const Tree& tree, std::string_view file, std::span<const std::string> include) {
  return file.empty() && include.empty() && tree.find(kIndexFile) != nullptr;
}

Result<std::vector<TreeFile>> select_files(const Tree& tree, std::string_view file,
                                           std::span<const std::string> include,
                                           std::string_view index) {
  if (include.empty())
    return file.empty() ? select_safetensors(tree, index) : select_gguf(tree, file);
  std::vector<TreeFile> files;
  for (const TreeFile& each : tree.files)
    if (std::ranges::any_of(
            include, [&](const std::string& pattern) { return matches_glob(pattern, each.path); }))
      files.push_back(each);
  if (files.empty())
    return not_found(concat({"expected files that match --include ", include[0].substr(0, 80),
                             "; found none among ", std::to_string(tree.files.size())}));
  return files;
}

int64_t total_bytes(std::span<const TreeFile> files) {
  int64_t bytes = 0;
  for (const TreeFile& file : files) bytes += file.size;
  return bytes;
}

}  // namespace weir::hub
