// Names of options that people bring along from llama-server, Ollama and vLLM: short ones that work
// here too, and others that are answered with a sentence instead of a guess at a typing mistake.
//
// Threads: any; the tables are constants.
#pragma once

#include <string_view>

namespace weir {

// "model" of "m", and the other way round; empty if there is none. Without dashes.
std::string_view long_name(std::string_view short_option);
std::string_view short_name(std::string_view option);

// What Weir has instead of such an option ("-ngl", "--max-model-len"); empty for unknown names.
std::string_view foreign_option(std::string_view flag);

// What Weir has instead of such a command ("run", "push").
std::string_view foreign_command(std::string_view word);

}  // namespace weir
