// The manual page weir(1), in troff with the macros of man(7), made of the table of options.
#pragma once

#include <string>

namespace weir {

std::string man_page();

}  // namespace weir
