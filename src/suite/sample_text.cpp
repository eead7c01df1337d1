#include "suite/sample_text.h"

// Symbols of sample_text.S: the first byte, and one past the last.
extern "C" const char weir_suite_text[];
extern "C" const char weir_suite_text_end[];

namespace weir::suite {

std::string_view sample_text() { return {weir_suite_text, weir_suite_text_end}; }

}  // namespace weir::suite
