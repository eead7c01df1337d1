// Filling in the middle: the text between a prefix and a suffix, by models whose vocabulary has
// tokens for the three places.
//
// Threads: pure functions; an InfillTokens is a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace weir::api {

struct InfillTokens {
  int32_t prefix = -1, suffix = -1;
  int32_t middle = -1;  // -1: what follows the prefix is the middle (Codestral).
  bool suffix_first = false;
  std::vector<int32_t> ends;  // Tokens that end a middle.
  // Before the name of a repository and of a file, for models that read several; -1: they know no
  // such token.
  int32_t repository = -1, file = -1;
};

// Another file of the project that the hole is in.
struct InfillFile {
  std::string name, text;
};

// Finds them by the tokens' names; none: the model cannot fill in.
std::optional<InfillTokens> find_infill_tokens(const text::Tokenizer& tokenizer);

// The prompt after which the model writes the middle. `files` come first.
std::vector<int32_t> infill_prompt(const text::Tokenizer& tokenizer, const InfillTokens& tokens,
                                   std::string_view prefix, std::string_view suffix,
                                   std::span<const InfillFile> files = {});

}  // namespace weir::api
