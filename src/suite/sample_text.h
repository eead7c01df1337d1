// The text that perplexity is measured on: the beginning of Alice's Adventures in Wonderland by
// Lewis Carroll, 1865, which is in the public domain. It is sample_text.txt, compiled in.
//
// Threads: any.
#pragma once

#include <string_view>

namespace weir::suite {

std::string_view sample_text();

}  // namespace weir::suite
