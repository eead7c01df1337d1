#include "api/serving/breaker_store.h"

#include <algorithm>
#include <string_view>

namespace weir::api {

namespace {

// A text's rest beyond so many tokens is left out, as llama.cpp does.
constexpr size_t kRestTokensMax = 20;
// Of one list of texts: 512 KiB. Beyond it texts are only found within tokens.
constexpr size_t kBegunMax = size_t{1} << 16;

}  // namespace

const std::vector<std::string>& default_breakers() {
  static const std::vector<std::string> kTexts = {"\n", ":", "\"", "*"};
  return kTexts;
}

std::shared_ptr<const sample::SequenceBreakers> BreakerStore::get(
    const std::optional<std::vector<std::string>>& texts) {
  const std::vector<std::string>& wanted = texts ? *texts : default_breakers();
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(entries_, wanted, &Entry::first);
    if (known != entries_.end()) return known->second;
  }
  auto found = find(wanted);
  const std::lock_guard lock(mutex_);
  if (entries_.size() == kEntriesMax) entries_.erase(entries_.begin());
  entries_.emplace_back(wanted, found);
  return found;
}

std::shared_ptr<const sample::SequenceBreakers> BreakerStore::find(
    const std::vector<std::string>& texts) const {
  auto breakers = std::make_shared<sample::SequenceBreakers>();
  const int32_t tokens = std::min(vocab_size_, tokenizer_.vocab_size());
  breakers->whole.resize((static_cast<size_t>(std::max(tokens, 0)) + 63) / 64);
  for (const std::string& text : texts) {
    // By how much of the text a token ends with: one byte at least.
    const size_t first_rest = breakers->rests.size();
    for (size_t begun = 1; begun < text.size(); ++begun) {
      std::vector<int32_t>& rest = breakers->rests.emplace_back(tokenizer_.encode(
          std::string_view(text).substr(begun), {.add_special = false, .parse_special = false}));
      rest.resize(std::min(rest.size(), kRestTokensMax));
    }
    for (int32_t token = 0; token < tokens; ++token) {
      const std::string_view piece = tokenizer_.piece(token);
      if (piece.find(text) != std::string_view::npos) {
        breakers->whole[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
        continue;
      }
      for (size_t begun = std::min(text.size() - 1, piece.size()); begun > 0; --begun)
        if (piece.ends_with(std::string_view(text).substr(0, begun)) &&
            breakers->begun.size() < kBegunMax)
          breakers->begun.push_back({token, static_cast<uint32_t>(first_rest + begun - 1)});
    }
  }
  breakers->sort();
  return breakers;
}

}  // namespace weir::api
