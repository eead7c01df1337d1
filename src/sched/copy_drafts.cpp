#include "sched/copy_drafts.h"

#include <algorithm>
#include <array>

namespace weir::sched {

namespace {

// The fewest equal tokens of each class: it is about as likely that the next is equal as the class
// says, in text that repeats itself now and then. The controller learns what is true.
constexpr std::array<int32_t, Draft::kClasses> kEqualTokens = {0, 3, 4, 5, 7, 10, 15, 24};

void draft_copy(DraftOrder& order) {
  const TextIndex& text = *order.request->text;
  const TextIndex::Tail tail = text.tail();
  const TextIndex::Match match = text.find(tail.all());
  if (match.length == 0) return;
  const uint8_t sureness = sureness_of(match.length);
  const auto count = std::min(static_cast<size_t>(match.length), order.drafts.size());
  for (size_t i = 0; i < count; ++i) {
    // What is copied may reach the text's end, and goes on with the copy then.
    const int32_t from = match.end + static_cast<int32_t>(i);
    const int32_t token =
        from < text.size() ? text[from] : order.drafts[static_cast<size_t>(from - text.size())].token;
    if (token == TextIndex::kNoToken) return;
    order.drafts[i] = {.token = token, .sureness = sureness};
    order.count = static_cast<int32_t>(i) + 1;
  }
}

// The step has driven all texts out of the caches: their memory is asked for before the first of
// them is looked at, so that it comes for all of them at once.
void fetch_texts(std::span<const DraftOrder> orders) {
  for (const DraftOrder& order : orders) {
    __builtin_prefetch(order.request->text.get(), 1);
    __builtin_prefetch(&order.request->log);
  }
  for (const DraftOrder& order : orders)
    if (order.request->text) order.request->text->fetch_end();
  for (const DraftOrder& order : orders)
    if (order.request->text && order.pending.size() == 1)
      order.request->text->fetch_key(order.pending[0]);
}

}  // namespace

uint8_t sureness_of(int32_t equal_tokens) {
  const auto above = std::ranges::upper_bound(kEqualTokens, equal_tokens);
  return static_cast<uint8_t>(above - kEqualTokens.begin() - 1);
}

void extend_text(const DraftOrder& order) {
  const Request& request = *order.request;
  TextIndex& text = *request.text;
  const auto prompt = static_cast<int32_t>(request.prompt.size());
  const int32_t logged = request.log.size();
  for (int32_t i = text.size() - prompt; i < logged; ++i) text.append(request.log[i].token);
  for (auto i = static_cast<size_t>(text.size() - prompt - logged); i < order.pending.size(); ++i)
    text.append(order.pending[i]);
}

void CopyDrafts::draft(std::span<DraftOrder> orders) {
  fetch_texts(orders);
  for (DraftOrder& order : orders) {
    if (!order.request->text) continue;
    extend_text(order);
    draft_copy(order);
  }
}

}  // namespace weir::sched
