// The web page's files, compiled in (embed.cmake makes the table of src/page/web when it is built).
//
// Threads: any; constant data.
#pragma once

#include <span>
#include <string_view>

namespace weir::page {

struct PageFile {
  std::string_view name;    // "chat.js"
  std::string_view type;    // "text/javascript; charset=utf-8"
  std::string_view bytes;   // As a browser reads it.
  std::string_view packed;  // The same by gzip.
};

// Each name once.
std::span<const PageFile> page_files();

// Changes with every byte of every file.
std::string_view page_version();

// Null: there is none of that name.
const PageFile* find_page_file(std::string_view name);

}  // namespace weir::page
