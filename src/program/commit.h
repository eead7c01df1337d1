// What this program was built from.
#pragma once

#include <string_view>

namespace weir {

// As `git describe` names it; "unknown" where it was not built from a clone. Its definition is
// written by commit.cmake at each build.
std::string_view commit();

}  // namespace weir
