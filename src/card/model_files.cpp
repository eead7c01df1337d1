#include "card/model_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "card/config_reader.h"
#include "card/gguf_files.h"
#include "card/hub_cache.h"

namespace weir::card {

namespace {

// Why `path` is no model's folder: it is a file, a name of the hub, or not there.
std::string no_folder(const std::string& given, const std::filesystem::path& path) {
  const std::string expected = given + ": expected a folder with a model's config.json and " +
                               "safetensors files (Hugging Face or MLX layout), or a GGUF file; " +
                               "found ";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return expected + "no such folder";
  const std::filesystem::path above = path.parent_path();
  if (std::filesystem::is_regular_file(above / "config.json", error))
    return expected + "a file; the folder it lies in is one: --model " + above.string();
  return expected + "a file";
}

}  // namespace

Result<ModelFiles> ModelFiles::open(const std::string& given) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(given, error).lexically_normal();
  ModelFiles files;
  if (path.extension() == ".gguf" && std::filesystem::is_regular_file(path, error)) {
    files.folder_ = path.parent_path().string();
    WEIR_ASSIGN(files.gguf_, gguf_parts(files.folder_, path.filename().string()));
    files.name_ = path.stem().string();
    return files;
  }
  if (!std::filesystem::is_directory(path, error))
    return fail(ErrorCode::kConfig, no_folder(given, path));
  std::string normal = path.string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  WEIR_ASSIGN(const ModelFolder resolved, resolve_hub_folder(normal));
  files.folder_ = resolved.path;
  files.name_ = resolved.name;
  if (!files.has("config.json")) {
    WEIR_ASSIGN(files.gguf_, find_gguf(files.folder_));
  }
  return files;
}

ModelFiles ModelFiles::embedded(std::string name, std::vector<Embedded> embedded) {
  ModelFiles files;
  files.name_ = std::move(name);
  files.embedded_ = std::move(embedded);
  return files;
}

ModelFiles ModelFiles::beginnings(std::string name, std::vector<Beginning> beginnings) {
  ModelFiles files;
  files.name_ = std::move(name);
  files.beginnings_ = std::move(beginnings);
  if (files.has("config.json")) return files;
  for (const Beginning& b : files.beginnings_)
    if (b.name.ends_with(".gguf")) files.gguf_.push_back(b.name);
  return files;
}

bool ModelFiles::has(std::string_view file) const {
  if (!gguf_.empty()) return std::ranges::find(gguf_, file) != gguf_.end();
  if (!folder_.empty()) {
    // A folder between that is a link to nowhere hides nothing either.
    for (size_t end = 0; end != std::string_view::npos;) {
      end = file.find('/', end + 1);
      const std::string path = folder_ + "/" + std::string(file.substr(0, end));
      struct stat info {};
      if (::lstat(path.c_str(), &info) != 0) return errno != ENOENT;
      if (::stat(path.c_str(), &info) != 0) return true;
    }
    return true;
  }
  return std::ranges::find(embedded_, file, &Embedded::name) != embedded_.end() ||
         std::ranges::find(beginnings_, file, &Beginning::name) != beginnings_.end();
}

Result<FileView> ModelFiles::open_file(std::string_view file) const {
  if (!folder_.empty()) return FileView::map(folder_ + "/" + std::string(file));
  for (const Embedded& e : embedded_)
    if (e.name == file) return FileView::borrow(name_ + "/" + std::string(file), e.bytes);
  for (const Beginning& b : beginnings_)
    if (b.name == file) return FileView::beginning(name_ + "/" + b.name, b.head, b.bytes);
  return fail(ErrorCode::kIo, name_ + ": expected a file " + std::string(file) + ", found none");
}

Result<std::optional<std::string>> ModelFiles::read_text(std::string_view file,
                                                         size_t bytes_max) const {
  if (!has(file)) return std::nullopt;
  WEIR_ASSIGN(const FileView view, open_file(file));
  if (view.bytes().size() > bytes_max)
    return fail(ErrorCode::kConfig, view.name() + ": expected at most " +
                                        std::to_string(bytes_max) + " bytes, found " +
                                        std::to_string(view.bytes().size()));
  return std::optional<std::string>(view.text());
}

Result<std::optional<JsonDoc>> ModelFiles::read_json(std::string_view file) const {
  WEIR_ASSIGN(const std::optional<std::string> text, read_text(file));
  if (!text) return std::nullopt;
  Result<JsonDoc> doc = parse_config(*text);
  if (!doc)
    return fail(ErrorCode::kConfig, where() + "/" + std::string(file) + ": " + doc.error().message);
  return std::optional<JsonDoc>(std::move(*doc));
}

}  // namespace weir::card
