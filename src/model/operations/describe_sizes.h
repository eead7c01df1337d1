// What texts of operations are made of.
//
// Threads: free functions.
#pragma once

#include <string>

namespace weir::model {

// As printf's, at most 255 characters.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

std::string number(float value);  // The shortest of it.

}  // namespace weir::model
