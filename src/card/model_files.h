// ModelFiles: a model's files by name, from a folder or compiled into the binary; or those that are
// a model in one: GGUF; or the beginnings of files that are not here. Only the readers of src/card
// open them; everybody else gets what was read (model_card.h).
//
// Threads: immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::card {

class ModelFiles {
 public:
  struct Embedded {
    std::string_view name;
    std::span<const std::byte> bytes;
  };
  // A file that is elsewhere, and what is known of it: small ones whole, of weights the header.
  struct Beginning {
    std::string name;
    std::string head;
    uint64_t bytes = 0;  // Of the whole file.
  };

  // Files of settings and templates: more than ten times the largest one published.
  static constexpr size_t kSettingsBytesMax = size_t{16} << 20;

  // A folder, a model's folder in Hugging Face's cache (hub_cache.h), or a GGUF file, which a
  // folder without config.json may hold; an error says what was found in its place.
  static Result<ModelFiles> open(const std::string& given);
  static ModelFiles embedded(std::string name, std::vector<Embedded> files);
  // What weights beyond their headers are is zeros: enough to plan the model, not to run it. Where
  // there is no config.json, GGUF files among them are the model, the first part first.
  static ModelFiles beginnings(std::string name, std::vector<Beginning> files);

  // The folder's last component, the hub's ORG/NAME, or the name of a GGUF file without its end.
  const std::string& name() const { return name_; }
  const std::string& folder() const { return folder_; }  // Empty when compiled in, or elsewhere.
  // The path of the folder or of the GGUF file; empty when compiled in, or elsewhere.
  std::string path() const {
    return gguf_.empty() || folder_.empty() ? folder_ : folder_ + "/" + gguf_[0];
  }
  // The path where there is one, else the name: what messages put before a file's name.
  std::string where() const { return folder_.empty() ? name_ : path(); }
  // Names of a GGUF model's files, in their order; empty for other models. Such a model has no
  // others, whatever lies beside them.
  const std::vector<std::string>& gguf() const { return gguf_; }

  // There is something of that name. What is not a file that can be read (a link that leads
  // nowhere, a FIFO, a folder) is an error of the readers below, never as if it were not there.
  bool has(std::string_view file) const;
  Result<FileView> open_file(std::string_view file) const;
  // A small file of text, whole; nullopt where there is none.
  Result<std::optional<std::string>> read_text(std::string_view file,
                                               size_t bytes_max = kSettingsBytesMax) const;
  // A small file as JSON (parse_config()). An error names the file.
  Result<std::optional<JsonDoc>> read_json(std::string_view file) const;

 private:
  std::string name_;
  std::string folder_;
  std::vector<std::string> gguf_;
  std::vector<Embedded> embedded_;
  std::vector<Beginning> beginnings_;
};

}  // namespace weir::card
