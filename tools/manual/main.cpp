// weir-manual: writes the manual page and the shells' completions of weir into a folder, for
// packages.
#include <cstdio>
#include <fstream>
#include <string>

#include "program/completion.h"
#include "program/man_page.h"

namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "weir-manual: cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: weir-manual FOLDER\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  const bool written = write(folder + "weir.1", weir::man_page()) &&
                       write(folder + "weir.bash", weir::bash_completion()) &&
                       write(folder + "weir.zsh", weir::zsh_completion()) &&
                       write(folder + "weir.fish", weir::fish_completion());
  return written ? 0 : 1;
}
