// What shells need to complete the words of a command line of weir, made of the table of options:
// commands, their options, and the values of options that are words, files or folders.
#pragma once

#include <string>

namespace weir {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace weir
