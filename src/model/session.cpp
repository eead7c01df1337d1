#include "model/session.h"

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
              kv::KvCache::create(model.kv_shapes(), options.kv_type, pages * options.sequences));
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
  for (size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    Sequence& sequence = sequences_.at(static_cast<size_t>(slice.sequence));
    const auto rows = static_cast<int32_t>(slice.tokens.size());
    const auto row_begin = static_cast<int32_t>(tokens.size());
    const auto capacity = static_cast<int32_t>(sequence.pages.size()) * kernels::kPageTokens;
    CHECK(rows > 0 && sequence.length + rows <= capacity);
    batch_slices.push_back({.row_begin = row_begin,
                            .rows = rows,
                            .first_position = sequence.length,
                            .prompt_length = sequence.prompt_length,
                            .pages = sequence.pages.data()});
    tokens.insert(tokens.end(), slice.tokens.begin(), slice.tokens.end());
    for (int32_t r = slice.all_logits ? 0 : rows - 1; r < rows; ++r) {
      sample_rows.push_back(row_begin + r);
      samples.push_back({i, static_cast<size_t>(r)});
    }
    sequence.length += rows;
  }
  const Batch batch = {.tokens = tokens, .slices = batch_slices, .sample_rows = sample_rows};
  Collector collector(samples, on_logits);
  team_->run([&](int member) { model_->forward(batch, cache_, collector, *team_, member); });
}

}  // namespace weir::model
