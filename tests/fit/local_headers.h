// The files of a folder as if they were at a hub: settings whole, of weights the headers alone.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "card/gguf.h"
#include "card/model_files.h"
#include "card/safetensors.h"

namespace weir::fit {

inline std::string head_of(const std::string& name, std::string_view text) {
  uint64_t bytes = text.size();
  if (name.ends_with(".safetensors")) {
    bytes = card::safetensors_head_bytes(name, text).value_or(bytes);
  } else if (name.ends_with(".gguf")) {
    const auto found = card::gguf_head_bytes(name, std::as_bytes(std::span(text)));
    if (found) bytes = found->value_or(bytes);
  }
  return std::string(text.substr(0, bytes));
}

// `path`: a folder, or a GGUF file, whose parts lie beside it.
inline card::ModelFiles headers_of(const std::string& path) {
  namespace fs = std::filesystem;
  const bool folder = fs::is_directory(path);
  const fs::path in = folder ? fs::path(path) : fs::path(path).parent_path();
  std::vector<card::ModelFiles::Beginning> files;
  for (const auto& entry : fs::directory_iterator(in)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.starts_with("expected.")) continue;
    if (!folder && name != fs::path(path).filename()) continue;
    const auto view = FileView::map(entry.path().string());
    CHECK(view);
    files.push_back({name, head_of(name, view->text()), view->bytes().size()});
  }
  std::ranges::sort(files, {}, &card::ModelFiles::Beginning::name);
  return card::ModelFiles::beginnings(path, std::move(files));
}

}  // namespace weir::fit
