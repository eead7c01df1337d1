#include "model/session.h"

#include <algorithm>

#include "base/check.h"

namespace weir::model {

namespace {

class Collector final : public ForwardClient {
 public:
  struct Sample {
    size_t slice, token;
  };
  Collector(const std::vector<Sample>& samples, const Session::OnLogits& on_logits)
      : samples_(samples), on_logits_(on_logits) {}

  void on_logits(int32_t sample_index, std::span<float> logits, int) override {
    const Sample& sample = samples_[static_cast<size_t>(sample_index)];
    on_logits_(sample.slice, sample.token, logits);
  }

 private:
  const std::vector<Sample>& samples_;
  const Session::OnLogits& on_logits_;
};

}  // namespace

Result<Session> Session::create(Model& model, ThreadTeam& team, const Options& options) {
  const int32_t tokens = options.tokens_max > 0 ? options.tokens_max : model.context_max();
  const int32_t pages = (tokens + kernels::kPageTokens - 1) / kernels::kPageTokens;
  WEIR_ASSIGN(kv::KvCache cache,
              kv::KvCache::create(model.memory_needs(), options.kv_type, pages * options.sequences,
                                  {.running = options.sequences}));
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

void Session::forward(std::span<const Slice> slices, const OnLogits& on_logits) {
  std::vector<int32_t> tokens, sample_rows;
  std::vector<BatchSlice> batch_slices;
  std::vector<Collector::Sample> samples;
  // Tokens [begin, end) of slice i.
  const auto add = [&](size_t i, int32_t begin, int32_t end) {
    if (begin >= end) return;
    const Slice& slice = slices[i];
    const Sequence& sequence = sequences_[static_cast<size_t>(slice.sequence)];
    const auto row_begin = static_cast<int32_t>(tokens.size());
    batch_slices.push_back({.row_begin = row_begin,
                            .rows = end - begin,
                            .first_position = sequence.length + begin,
                            .prompt_length = sequence.prompt_length,
                            .memory = {.tables = sequence.pages.data(), .state = slice.sequence},
                            .sequence = slice.sequence});
    tokens.insert(tokens.end(), slice.tokens.begin() + begin, slice.tokens.begin() + end);
    const auto last = static_cast<int32_t>(slice.tokens.size()) - 1;
    for (int32_t r = slice.all_logits ? begin : std::max(begin, last); r < end; ++r) {
      sample_rows.push_back(row_begin + r - begin);
      samples.push_back({i, static_cast<size_t>(r)});
    }
  };
  // How many tokens of slice i belong to the prompt.
  const auto of_prompt = [&](size_t i) {
    const Sequence& sequence = sequences_.at(static_cast<size_t>(slices[i].sequence));
    return std::clamp(sequence.prompt_length - sequence.length, 0,
                      static_cast<int32_t>(slices[i].tokens.size()));
  };
  const auto run = [&] {
    const Batch batch = {.tokens = tokens, .slices = batch_slices, .sample_rows = sample_rows};
    Collector collector(samples, on_logits);
    team_->run([&](int member) { model_->forward(batch, cache_, collector, *team_, member); });
    tokens.clear(), batch_slices.clear(), sample_rows.clear(), samples.clear();
  };
  bool both = false;  // Some sequence goes from its prompt on to what comes after.
  for (size_t i = 0; i < slices.size(); ++i) {
    const auto count = static_cast<int32_t>(slices[i].tokens.size());
    const Sequence& sequence = sequences_.at(static_cast<size_t>(slices[i].sequence));
    CHECK(count > 0 &&
          sequence.length + count <= std::ssize(sequence.pages) * kernels::kPageTokens);
    both |= of_prompt(i) > 0 && of_prompt(i) < count;
  }
  const auto add_prompts = [&] {
    for (size_t i = 0; i < slices.size(); ++i) add(i, 0, of_prompt(i));
  };
  if (both) add_prompts(), run();
  // Generated tokens first, as Model::prompts_differ() wants it.
  for (size_t i = 0; i < slices.size(); ++i)
    add(i, of_prompt(i), static_cast<int32_t>(slices[i].tokens.size()));
  if (!both) add_prompts();
  run();
  for (const Slice& slice : slices)
    sequences_[static_cast<size_t>(slice.sequence)].length +=
        static_cast<int32_t>(slice.tokens.size());
}

}  // namespace weir::model
