#include "page/page_files.h"

namespace weir::page {

const PageFile* find_page_file(std::string_view name) {
  for (const PageFile& file : page_files())
    if (file.name == name) return &file;
  return nullptr;
}

}  // namespace weir::page
