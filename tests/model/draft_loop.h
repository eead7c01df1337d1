// DraftLoop: sequences that a model computes with a drafter beside it, as an engine does, but with
// nothing else: no scheduler, no sampling, no prefix cache.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "kernels/cpu_ops.h"
#include "model/batch_builder.h"
#include "model/drafts/drafter.h"
#include "model/model.h"

namespace weir::model {

class DraftLoop {
 public:
  struct Chat {
    std::vector<int32_t> tokens;  // The prompt, then what has been generated.
    int32_t prompt_length = 0;
    std::vector<int32_t> answer{};  // What is to be generated, once that is known.
    int32_t computed = 0;
    std::vector<int32_t> drafts{};  // Of the next step.
    std::vector<int32_t> pages{};

    int32_t generated() const { return static_cast<int32_t>(tokens.size()) - prompt_length; }
  };
  struct Counts {
    int64_t verifications = 0;
    int64_t accepted = 0;
    double mean() const {
      return static_cast<double>(accepted) / static_cast<double>(verifications);
    }
    bool operator==(const Counts&) const = default;
  };

  DraftLoop(Model& model, const kernels::Ops& ops, ThreadTeam& team, int32_t tokens_max,
            kernels::FloatType kv_type = kernels::FloatType::kF32)
      : model_(model),
        ops_(ops),
        team_(team),
        pages_((tokens_max + kernels::kPageTokens - 1) / kernels::kPageTokens),
        kv_type_(kv_type) {}

  void begin(std::span<const std::vector<int32_t>> prompts) {
    const auto count = static_cast<int32_t>(prompts.size());
    auto cache = kv::KvCache::create(model_.memory_needs(), kv_type_, pages_ * count, {count});
    CHECK(cache.has_value());
    cache_ = std::make_unique<kv::KvCache>(*std::move(cache));
    if (Drafter* drafter = model_.drafter()) drafter->use(*cache_);
    chats_.clear();
    int32_t page = 0;
    for (const auto& prompt : prompts) {
      Chat& chat = chats_.emplace_back();
      chat.tokens = prompt;
      chat.prompt_length = static_cast<int32_t>(prompt.size());
      for (int32_t i = 0; i < pages_; ++i) chat.pages.push_back(page++);
    }
  }
  std::vector<Chat>& chats() { return chats_; }

  // A pass of the next `rows` rows at most of each chat that is not done, and the drafts after it.
  // Of what has been generated a chat takes what is its answer, where that is known: drafts are
  // right as far as they agree with it, and the model has to give the same. False: all are done.
  bool step(int32_t drafts, int32_t rows_max, int32_t answer_max, std::span<const int32_t> ends,
            Counts* counts = nullptr) {
    BatchBuilder batch;
    std::vector<size_t> members;
    int32_t room = model_.options().rows_max;
    for (size_t i = 0; i < chats_.size(); ++i) {
      Chat& chat = chats_[i];
      if (done(chat, answer_max, ends)) continue;
      const auto known = static_cast<int32_t>(chat.tokens.size());
      const int32_t certain = std::min({known - chat.computed, rows_max, room});
      const bool last = chat.computed + certain == known;
      const auto drafted = last ? std::min(std::ssize(chat.drafts), std::ptrdiff_t{room - certain})
                                : std::ptrdiff_t{0};
      chat.drafts.resize(static_cast<size_t>(drafted));
      if (certain == 0) continue;
      batch.add_slice({.first_position = chat.computed,
                       .prompt_length = chat.prompt_length,
                       .memory = {.tables = chat.pages.data()},
                       .sequence = static_cast<int32_t>(i)});
      batch.add_tokens(
          std::span(chat.tokens)
              .subspan(static_cast<size_t>(chat.computed), static_cast<size_t>(certain)));
      batch.add_tokens(chat.drafts);
      if (last) batch.want(Wanted::kScore, certain - 1, 1 + static_cast<int32_t>(drafted));
      members.push_back(i);
      room -= certain + static_cast<int32_t>(drafted);
    }
    if (members.empty()) return false;
    run(batch);
    follow(batch, members, drafts, counts);
    return true;
  }

  // All of them, greedily.
  Counts generate(int32_t drafts, int32_t answer_max, std::span<const int32_t> ends) {
    Counts counts;
    while (step(drafts, model_.options().rows_max, answer_max, ends, &counts)) {
    }
    return counts;
  }

  // The vectors of a drafter's own last pass come after this.
  std::span<const int32_t> drafts_of(size_t chat) const { return chats_[chat].drafts; }

 private:
  class Best final : public RowSink {
   public:
    Best(const kernels::Ops& ops, const Batch& batch, std::vector<int32_t>& best)
        : ops_(ops), batch_(batch), best_(best) {}
    void on_rows(int32_t wanted, int32_t first, Rows rows, int) override {
      const int32_t row = batch_.wanted[static_cast<size_t>(wanted)].row_begin + first;
      for (int32_t i = 0; i < rows.count; ++i)
        best_[static_cast<size_t>(row + i)] = ops_.argmax(rows.row(i).data(), rows.width);
    }

   private:
    const kernels::Ops& ops_;
    const Batch& batch_;
    std::vector<int32_t>& best_;
  };

  static bool done(const Chat& chat, int32_t answer_max, std::span<const int32_t> ends) {
    if (!chat.answer.empty()) return chat.generated() >= std::ssize(chat.answer);
    if (chat.generated() == 0) return false;
    return chat.generated() >= answer_max || std::ranges::count(ends, chat.tokens.back()) > 0;
  }

  void run(BatchBuilder& builder) {
    const Batch batch = builder.batch();
    best_.assign(static_cast<size_t>(batch.rows()), -1);
    Best sink(ops_, batch, best_);
    team_.run([&](int member) { model_.forward(batch, *cache_, sink, team_, member); });
  }

  // What the pass has made certain; then the drafter's round.
  void follow(const BatchBuilder& batch, std::span<const size_t> members, int32_t drafts,
              Counts* counts) {
    std::vector<DraftSlice> slices;
    for (size_t s = 0; s < members.size(); ++s) {
      const BatchSlice& slice = batch.slices()[s];
      Chat& chat = chats_[members[s]];
      const auto certain = slice.rows - static_cast<int32_t>(chat.drafts.size());
      int32_t taken = 0;
      if (best_[static_cast<size_t>(slice.row_begin + certain - 1)] >= 0) {
        const bool verified = chat.generated() > 0;
        taken = take(chat, slice.row_begin + certain - 1);
        if (counts != nullptr && verified) ++counts->verifications, counts->accepted += taken;
      }
      chat.computed += certain + taken;
      // An answer whose last token is a draft has no token after it.
      const int32_t computed =
          std::min(chat.computed, static_cast<int32_t>(chat.tokens.size())) - slice.first_position;
      slices.push_back(
          {.sequence = slice.sequence,
           .memory = slice.memory,
           .first = slice.first_position,
           .row = slice.row_begin,
           .tokens = std::span(chat.tokens).subspan(static_cast<size_t>(slice.first_position)),
           .computed = computed,
           .covered = covered(slice.first_position + computed),
           .guesses = true});
      // What comes after a prompt's next chunk is not known to it.
      const bool whole = best_[static_cast<size_t>(slice.row_begin + certain - 1)] >= 0;
      if (!whole) slices.back().tokens = slices.back().tokens.first(static_cast<size_t>(certain));
      chat.drafts.clear();
    }
    Drafter* const drafter = model_.drafter();
    if (drafter == nullptr) return;
    drafter->keep_up(slices, team_);
    std::vector<DraftTask> tasks;
    for (const size_t member : members) {
      Chat& chat = chats_[member];
      const auto known = static_cast<int32_t>(chat.tokens.size());
      if (known != chat.computed + 1) continue;
      chat.drafts.resize(static_cast<size_t>(drafts));
      tasks.push_back({.sequence = static_cast<int32_t>(member),
                       .memory = {.tables = chat.pages.data()},
                       .position = known,
                       .tokens = chat.drafts});
    }
    drafter->draft(tasks, team_);
    for (size_t i = 0; i < tasks.size(); ++i)
      chats_[static_cast<size_t>(tasks[i].sequence)].drafts.resize(
          static_cast<size_t>(tasks[i].count));
  }

  // As an engine has it, which gives a sequence a page when a step needs it.
  static int32_t covered(int32_t computed) {
    return (computed + kernels::kPageTokens - 1) / kernels::kPageTokens * kernels::kPageTokens;
  }

  // Takes drafts as long as they are right, then the token after them; how many drafts.
  int32_t take(Chat& chat, int32_t row) const {
    int32_t taken = 0;
    const auto room = [&] {
      return chat.answer.empty() || chat.generated() < std::ssize(chat.answer);
    };
    for (;; ++taken) {
      const int32_t token = best_[static_cast<size_t>(row + taken)];
      if (!chat.answer.empty()) CHECK(token == chat.answer[static_cast<size_t>(chat.generated())]);
      chat.tokens.push_back(token);
      if (taken == std::ssize(chat.drafts) || chat.drafts[static_cast<size_t>(taken)] != token)
        return taken;
      if (!room()) return taken + 1;
    }
  }

  Model& model_;
  const kernels::Ops& ops_;
  ThreadTeam& team_;
  int32_t pages_;
  kernels::FloatType kv_type_;
  std::unique_ptr<kv::KvCache> cache_;
  std::vector<Chat> chats_;
  std::vector<int32_t> best_;
};

}  // namespace weir::model
