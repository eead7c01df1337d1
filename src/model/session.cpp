#include "model/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace weir::model {

// Tells the caller of forward() which tokens the rows are of.
class Session::Collector final : public RowSink {
 public:
  struct Entry {
    size_t slice, token;  // Of the entry's first row.
  };
  Collector(const std::vector<Entry>& entries, const OnLogits& on_logits)
      : entries_(entries), on_logits_(on_logits) {}

  void on_rows(int32_t wanted, int32_t first, Rows rows, int) override {
    const Entry& entry = entries_[static_cast<size_t>(wanted)];
    for (int32_t i = 0; i < rows.count; ++i)
      on_logits_(entry.slice, entry.token + static_cast<size_t>(first + i), rows.row(i));
  }

 private:
  const std::vector<Entry>& entries_;
  const OnLogits& on_logits_;
};

Result<Session> Session::create(Model& model, ThreadTeam& team, const Options& options) {
  const int32_t tokens = options.tokens_max > 0 ? options.tokens_max : model.context_max();
  const int32_t pages = (tokens + kernels::kPageTokens - 1) / kernels::kPageTokens;
  WEIR_ASSIGN(kv::KvCache cache,
              kv::KvCache::create(model.memory_needs(), options.kv_format,
                                  pages * options.sequences,
                                  {.running = options.sequences, .cross = options.sequences}));
  Session session(model, team, std::move(cache));
  int32_t page = 0;
  for (int32_t s = 0; s < options.sequences; ++s) {
    Sequence& sequence = session.sequences_.emplace_back();
    for (int32_t i = 0; i < pages; ++i) sequence.pages.push_back(page++);
  }
  return session;
}

void Session::begin(int32_t sequence, int32_t prompt_length) {
  Sequence& s = sequences_.at(static_cast<size_t>(sequence));
  s.length = 0;
  s.prompt_length = prompt_length;
}

void Session::hear(int32_t sequence, std::span<const float> rows) {
  const int32_t all = model_->cross_rows(), width = model_->spec().hidden_size;
  CHECK(all > 0 && std::ssize(rows) == int64_t{all} * width);
  for (int32_t layer = 0; layer < model_->cross_layers(); ++layer)
    for (int32_t first = 0, count = 0; first < all; first += count) {
      count = std::min(all - first, model_->options().rows_max);
      const CrossFill fill = {.kv = cache_,
                              .team = *team_,
                              .slot = sequence,
                              .layer = layer,
                              .first = first,
                              .count = count,
                              .rows = rows.data() + int64_t{first} * width};
      team_->run([&](int member) { model_->fill_cross(fill, member); });
    }
}

// How many tokens of the slice belong to its sequence's prompt.
int32_t Session::of_prompt(const Slice& slice) const {
  const Sequence& sequence = sequences_.at(static_cast<size_t>(slice.sequence));
  return std::clamp(sequence.prompt_length - sequence.length, 0, slice.count());
}

// Tokens [begin, end) of a slice, and what is wanted of them; false if there are none.
bool Session::add(const Slice& slice, int32_t begin, int32_t end) {
  if (begin >= end) return false;
  const Sequence& sequence = sequences_[static_cast<size_t>(slice.sequence)];
  batch_.add_slice({.first_position = sequence.length + begin,
                    .prompt_length = sequence.prompt_length,
                    .memory = {.tables = sequence.pages.data(),
                               .state = slice.sequence,
                               .cross = slice.sequence},
                    .mask = slice.mask,
                    .rope_shift = slice.rope_shift,
                    .adapter = slice.adapter,
                    .sequence = slice.sequence});
  if (!slice.rows.empty()) {
    for (auto i = static_cast<size_t>(begin); std::cmp_less(i, end); ++i)
      if (slice.rows[i].vectors != nullptr)
        batch_.add_vectors(slice.rows[i], slice.tokens.subspan(i, 1));
      else
        batch_.add_token(slice.tokens[i]);
  } else if (slice.vectors.empty()) {
    batch_.add_tokens(
        slice.tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  } else {
    batch_.add_vectors(
        {.rows = end - begin,
         .vectors = slice.vectors.data() + int64_t{begin} * model_->spec().hidden_size});
  }
  if (!slice.rope_positions.empty())
    for (int32_t i = begin; i < end; ++i)
      batch_.set_rope_position(slice.rope_positions[static_cast<size_t>(i)]);
  return true;
}

void Session::forward(std::span<const Slice> slices, const OnLogits& on_logits) {
  std::vector<Collector::Entry> entries;
  const auto add_part = [&](size_t i, int32_t begin, int32_t end) {
    const Slice& slice = slices[i];
    if (!add(slice, begin, end)) return;
    const int32_t from = slice.all_logits ? begin : std::max(begin, slice.count() - 1);
    if (from >= end) return;
    batch_.want(Wanted::kScore, from - begin, end - from);
    entries.push_back({i, static_cast<size_t>(from)});
  };
  const auto run = [&] {
    Collector collector(entries, on_logits);
    const Batch batch = batch_.batch();
    team_->run([&](int member) { model_->forward(batch, cache_, collector, *team_, member); });
    batch_.clear();
    entries.clear();
  };
  bool both = false;  // Some sequence goes from its prompt on to what comes after.
  for (const Slice& slice : slices) {
    const Sequence& sequence = sequences_.at(static_cast<size_t>(slice.sequence));
    CHECK(slice.count() > 0 &&
          sequence.length + slice.count() <= std::ssize(sequence.pages) * kernels::kPageTokens);
    both |= of_prompt(slice) > 0 && of_prompt(slice) < slice.count();
  }
  const auto add_prompts = [&] {
    for (size_t i = 0; i < slices.size(); ++i) add_part(i, 0, of_prompt(slices[i]));
  };
  if (both) add_prompts(), run();
  // Generated tokens first, as Model::prompts_differ_from() wants it.
  for (size_t i = 0; i < slices.size(); ++i) add_part(i, of_prompt(slices[i]), slices[i].count());
  if (!both) add_prompts();
  run();
  for (const Slice& slice : slices)
    sequences_[static_cast<size_t>(slice.sequence)].length += slice.count();
}

}  // namespace weir::model
