#include "text/vocabulary_check.h"

#include <algorithm>

#include "base/concat.h"

namespace weir::text {

namespace {

// A token's text is as long as a file chose it.
constexpr size_t kShownBytesMax = 64;

std::string shown(const Tokenizer& tokenizer, int32_t id) {
  return concat({"token ", std::to_string(id), " '",
                 tokenizer.decode(std::span(&id, 1), false).substr(0, kShownBytesMax), "'"});
}

}  // namespace

Result<void> check_tokens(std::span<const int32_t> ids, const Tokenizer& tokenizer,
                          int32_t vocab_size) {
  const auto wrong = std::ranges::find_if(ids, [=](int32_t id) { return id >= vocab_size; });
  if (wrong == ids.end()) return {};
  return fail(ErrorCode::kConfig,
              concat({"tokenizer.json: ", shown(tokenizer, *wrong), ": expected an id below the ",
                      "model's vocab_size ", std::to_string(vocab_size)}));
}

Result<std::string> check_vocabulary(const Tokenizer& tokenizer, int32_t vocab_size) {
  const std::vector<int32_t> ids = tokenizer.surrounding_ids();
  if (auto surrounding = check_tokens(ids, tokenizer, vocab_size); !surrounding)
    return fail(ErrorCode::kConfig, concat({surrounding.error().message,
                                            ", because post_processor adds it to every text"}));
  int32_t first = -1, count = 0;
  for (int32_t id = vocab_size; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.piece(id).empty() && !tokenizer.is_special(id)) continue;
    if (count++ == 0) first = id;
  }
  if (count == 0) return std::string();
  return concat({"has no row for ", std::to_string(count), count == 1 ? " token" : " tokens",
                 " of tokenizer.json, beyond vocab_size ", std::to_string(vocab_size), ": ",
                 shown(tokenizer, first), count == 1 ? "" : " and following",
                 "; prompts that have them are refused"});
}

}  // namespace weir::text
