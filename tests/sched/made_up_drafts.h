// MadeUpDrafts: a DraftSource that knows the answers, and so how many of its drafts are right:
// none, all, all but the last, or as chance has it.
//
// Threads: as DraftSource.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "sched/draft_source.h"

namespace weir::sched {

class MadeUpDrafts final : public DraftSource {
 public:
  enum class Way { kNoneRight, kAllRight, kLastWrong, kRandom };

  // The tokens of a request's answer.
  using AnswerOf = std::function<const std::vector<int32_t>&(const Request&)>;
  // How many drafts a request gets.
  using Most = std::function<int32_t(const Request&)>;

  MadeUpDrafts(Way way, int32_t vocab_size, AnswerOf answer, Most most)
      : way_(way), vocab_size_(vocab_size), answer_(std::move(answer)), most_(std::move(most)) {}

  DraftKind kind() const override { return DraftKind::kDraft; }
  bool computes() const override { return false; }
  int32_t begin(const Request& request, int32_t) override { return most_(request); }
  void draft(std::span<DraftOrder> orders) override {
    for (DraftOrder& order : orders) draft(order);
  }

  int64_t asked() const { return asked_; }
  int64_t right() const { return right_; }
  int64_t wrong_pending() const { return wrong_pending_; }
  int64_t wrong_positions() const { return wrong_positions_; }

 private:
  void draft(DraftOrder& order) {
    const std::vector<int32_t>& answer = answer_(*order.request);
    const std::span<const int32_t> pending = order.pending;
    const std::span<Draft> drafts = order.drafts;
    const auto known = static_cast<size_t>(order.request->log.size());
    if (static_cast<size_t>(order.position) !=
        order.request->prompt.size() + known + pending.size())
      ++wrong_positions_;
    // A step that ran after the answer's end may have chosen anything.
    const size_t checked = std::min(pending.size(), answer.size() - std::min(known, answer.size()));
    for (size_t i = 0; i < checked; ++i)
      if (pending[i] != answer[known + i]) ++wrong_pending_;
    const size_t right = way_ == Way::kNoneRight   ? 0
                         : way_ == Way::kAllRight  ? drafts.size()
                         : way_ == Way::kLastWrong ? drafts.size() - 1
                                                   : random_() % (drafts.size() + 1);
    for (size_t i = 0; i < drafts.size(); ++i) {
      const size_t at = known + pending.size() + i;
      const int32_t token = at < answer.size() ? answer[at] : 0;
      drafts[i] = {.token = i < right ? token : (token + 1) % vocab_size_,
                   .sureness = Draft::kClasses / 2};
      if (i < right && at < answer.size()) ++right_;
    }
    // Some are fewer than there is room for.
    order.count = static_cast<int32_t>(way_ == Way::kRandom ? random_() % (drafts.size() + 1)
                                                            : drafts.size());
    ++asked_;
  }

  const Way way_;
  const int32_t vocab_size_;
  const AnswerOf answer_;
  const Most most_;
  std::mt19937 random_{20261123};
  int64_t asked_ = 0, right_ = 0, wrong_pending_ = 0, wrong_positions_ = 0;
};

}  // namespace weir::sched
