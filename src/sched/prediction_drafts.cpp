#include "sched/prediction_drafts.h"

#include <algorithm>

#include "sched/copy_drafts.h"

namespace weir::sched {

namespace {

// Before the answer has begun the beginning of the prediction is expected, as surely as after so
// many equal tokens.
constexpr int32_t kEqualFirst = 5;
// Where the answer has left the prediction it goes on soon after: so few tokens are enough there
// to find it again, and so far around they are looked for.
constexpr int32_t kNearKey = 2, kNear = 64;

// The nearest place to `lost` at which the text's last tokens end; else the best of all.
TextIndex::Match find_again(const TextIndex& prediction, int32_t lost,
                            std::span<const int32_t> tail) {
  TextIndex::Match near;
  const int32_t first = std::max(lost - kNear, kNearKey);
  const int32_t last = std::min(lost + kNear, prediction.size() - 1);
  for (int32_t end = first; end <= last; ++end) {
    const int32_t length = prediction.length_at(end, tail);
    if (length >= kNearKey && length > near.length) near = {.end = end, .length = length};
  }
  return near.length > 0 ? near : prediction.find(tail);
}

}  // namespace

int32_t PredictionDrafts::begin(const Request& request, int32_t sequence) {
  if (!request.prediction || !request.text) return 0;
  cursors_[static_cast<size_t>(sequence)] = {
      .equal = kEqualFirst, .seen = static_cast<int32_t>(request.prompt.size())};
  return kDraftsMax;
}

void PredictionDrafts::follow_text(Cursor& cursor, const TextIndex& prediction,
                                   const TextIndex& text) {
  cursor.seen = std::max(cursor.seen, text.begin());
  for (; cursor.seen < text.size(); ++cursor.seen) {
    const bool equal = cursor.equal > 0 && cursor.next < prediction.size() &&
                       prediction[cursor.next] == text[cursor.seen];
    cursor.equal = equal ? cursor.equal + 1 : 0;
    if (equal) ++cursor.next;
  }
  if (cursor.equal > 0) return;
  const TextIndex::Match found = find_again(prediction, cursor.next, text.tail().all());
  if (found.length > 0) cursor.next = found.end;
  cursor.equal = found.length;
}

void PredictionDrafts::draft(std::span<DraftOrder> orders) {
  for (DraftOrder& order : orders) {
    const TextIndex* const prediction = order.request->prediction.get();
    if (prediction == nullptr || !order.request->text) continue;
    extend_text(order);
    Cursor& cursor = cursors_[static_cast<size_t>(order.sequence)];
    follow_text(cursor, *prediction, *order.request->text);
    if (cursor.equal == 0) continue;
    const uint8_t sureness = sureness_of(cursor.equal);
    const int32_t left = prediction->size() - cursor.next;
    order.count = std::min(left, static_cast<int32_t>(order.drafts.size()));
    for (int32_t i = 0; i < order.count; ++i)
      order.drafts[static_cast<size_t>(i)] = {.token = (*prediction)[cursor.next + i],
                                              .sureness = sureness};
  }
}

}  // namespace weir::sched
