#include "sched/answer_drafts.h"

#include <algorithm>

#include "sched/copy_drafts.h"

namespace weir::sched {

namespace {

// Places in a text are counted in 32 bits: long before they run out it begins anew.
constexpr int32_t kPlacesMax = 1 << 30;

}  // namespace

AnswerDrafts::AnswerDrafts(int32_t texts_max) : texts_(static_cast<size_t>(texts_max)) {}

// Null: nothing was answered yet, or not lately.
AnswerDrafts::Text* AnswerDrafts::find(const Request& request) {
  const auto found = std::ranges::find_if(texts_, [&](const Text& text) {
    return text.added > 0 && text.salt == request.cache_salt && text.adapter == request.adapter_key;
  });
  return found == texts_.end() ? nullptr : &*found;
}

void AnswerDrafts::draft(std::span<DraftOrder> orders) {
  for (DraftOrder& order : orders) {
    if (!wants(*order.request)) continue;
    const Text* const answers = find(*order.request);
    if (answers == nullptr) continue;
    extend_text(order);
    const TextIndex::Tail tail = order.request->text->tail();
    const TextIndex::Match match = answers->tokens.find(tail.all());
    const auto most = std::min({match.length, answers->tokens.size() - match.end,
                                static_cast<int32_t>(order.drafts.size())});
    for (int32_t i = 0; i < most; ++i) {
      const int32_t token = answers->tokens[match.end + i];
      if (token == TextIndex::kNoToken) break;  // There the answer ended.
      order.drafts[static_cast<size_t>(i)] = {.token = token,
                                              .sureness = sureness_of(match.length)};
      order.count = i + 1;
    }
  }
}

void AnswerDrafts::end(const Request& request) {
  if (!request.text || request.log.size() == 0) return;
  extend_text({.request = &request, .pending = {}, .memory = {}, .drafts = {}});
  Text* answers = find(request);
  if (answers == nullptr) {
    answers = &*std::ranges::min_element(texts_, {}, &Text::added);
    answers->salt = request.cache_salt;
    answers->adapter = request.adapter_key;
    answers->tokens.clear();
  }
  if (answers->tokens.size() > kPlacesMax) answers->tokens.clear();
  answers->added = ++answers_;
  const TextIndex& text = *request.text;
  const auto prompt = static_cast<int32_t>(request.prompt.size());
  const int32_t last = std::min(text.size(), prompt + kAnswerTokensMax);
  for (int32_t i = std::max(text.begin(), prompt - kLeadTokens); i < last; ++i)
    answers->tokens.append(text[i]);
  answers->tokens.append(TextIndex::kNoToken);
}

}  // namespace weir::sched
