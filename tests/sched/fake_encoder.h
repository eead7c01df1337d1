// FakeEncoder: an Encoder whose features are a hash of the medium's numbers; and prompts with made
// up pictures and sounds, with what each of their rows must begin with.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "exec/encoder.h"
#include "sched/fake_model.h"

namespace weir::sched {

class FakeEncoder final : public exec::Encoder {
 public:
  // `together`: pictures of one go; `sublayers`: that each go has.
  explicit FakeEncoder(int32_t levels = 0, int32_t together = 4, int32_t sublayers = 3)
      : levels_(levels), together_(together), sublayers_(sublayers) {}

  bool sees_pictures() const override { return true; }
  bool hears_sounds() const override { return true; }
  int32_t levels() const override { return levels_; }
  Result<bool> place_weights(const std::function<void(int64_t, int64_t)>&,
                             Clock::time_point) override {
    return true;
  }
  std::string lost_weights() const override { return {}; }
  void rest() override {}

  // One whose first number is below 0 cannot be computed.
  Result<int32_t> begin(std::span<const exec::EncodeTask> tasks) override {
    CHECK(tasks_.empty() && !tasks.empty());
    for (const exec::EncodeTask& task : tasks)
      if (numbers_of(task)[0] < 0) return fail(ErrorCode::kInvalid, "too dark");
    tasks = tasks.first(std::min(tasks.size(), static_cast<size_t>(together_)));
    tasks_.assign(tasks.begin(), tasks.end());
    done_ = 0;
    pictures_ += tasks.size();
    most_ = std::max(most_, tasks.size());
    return static_cast<int32_t>(tasks.size());
  }
  bool advance(int32_t sublayers) override {
    CHECK(!tasks_.empty() && sublayers == 1);
    if (on_advance) on_advance();
    if (++done_ < sublayers_) return false;
    for (const exec::EncodeTask& task : tasks_) fill(numbers_of(task), task.features);
    tasks_.clear();
    return true;
  }

  static std::span<const float> numbers_of(const exec::EncodeTask& task) {
    CHECK((task.pixels == nullptr) != (task.sound == nullptr));
    return task.sound != nullptr ? task.sound->numbers : task.pixels->numbers;
  }
  static void fill(std::span<const float> numbers, std::span<float> features) {
    uint64_t hash = 7;
    for (const float number : numbers) hash = mix(hash, std::bit_cast<uint32_t>(number));
    for (size_t i = 0; i < features.size(); ++i)
      features[i] = static_cast<float>(mix(hash, i) % 4096) / 512.0f;
  }

  size_t pictures() const { return pictures_; }  // That were begun.
  size_t most() const { return most_; }          // In one go.
  std::function<void()> on_advance;              // On the engine's thread.

 private:
  const int32_t levels_;
  const int32_t together_;
  const int32_t sublayers_;
  std::vector<exec::EncodeTask> tasks_;
  int32_t done_ = 0;
  size_t pictures_ = 0;
  size_t most_ = 0;
};

// The id of all placeholders.
inline constexpr int32_t kPlaceholder = 1;

// A picture of so many rows and columns of tokens. `marks`: a mark after each row but the last one.
inline Medium made_up_picture(int32_t number, int32_t rows, int32_t columns, bool marks) {
  auto input = std::make_shared<PictureInput>();
  input->pixels.numbers = {static_cast<float>(number), static_cast<float>(rows * 100 + columns)};
  input->pixels.views = {{columns, rows}};
  Medium picture = {.grid_rows = rows, .grid_columns = columns, .hash = hash_of(*input)};
  picture.input.picture = std::move(input);
  if (!marks) picture.runs = {{0, rows * columns}};
  for (int32_t r = 0; marks && r < rows; ++r) picture.runs.push_back({r * (columns + 1), columns});
  picture.tokens = picture.runs.back().first + picture.runs.back().count;
  return picture;
}

// A sound of so many tokens.
inline Medium made_up_sound(int32_t number, int32_t tokens) {
  auto input = std::make_shared<SoundInput>();
  *input = {.frames = 1, .heard = 1, .numbers = {static_cast<float>(number), 0.5f}};
  Medium sound = {.tokens = tokens, .runs = {{0, tokens}}, .hash = hash_of(*input)};
  sound.input.sound = std::move(input);
  return sound;
}

// A prompt that is put together of text and media.
struct PicturePrompt {
  Prompt tokens;
  PromptMedia media;

  void add_text(std::span<const int32_t> text) { tokens.insert(tokens.end(), text.begin(), text.end()); }
  void add(Medium picture) {
    const auto first = static_cast<int32_t>(tokens.size());
    picture.first = first;
    tokens.resize(tokens.size() + static_cast<size_t>(picture.tokens), 2);  // Marks.
    for (FeatureRun& run : picture.runs) {
      run.first += first;
      std::fill_n(tokens.begin() + run.first, run.count, kPlaceholder);
    }
    media.items.push_back(std::move(picture));
  }
  std::unique_ptr<Request> request(const sample::SamplingParams& params, int32_t max_tokens) const {
    auto request = std::make_unique<Request>(tokens, params, max_tokens, /*logprobs=*/true);
    if (!media.items.empty()) request->media = std::make_shared<PromptMedia>(media);
    request->arrived = Clock::now();
    return request;
  }
};

// What each row of the prompt begins with, computed in the plain way.
inline std::vector<RowContents> rows_of(const Request& request, const FakeModelOptions& model,
                                        int32_t levels) {
  std::vector<RowContents> rows;
  const auto tokens = static_cast<int32_t>(request.prompt.size());
  int32_t next = 0;  // The position of a token of text.
  for (const int32_t token : request.prompt) {
    const auto at = static_cast<int32_t>(rows.size());
    rows.push_back({.token = token, .turned = {next, next, next}});
    ++next;
    const Medium* picture = nullptr;
    if (request.media)
      for (const Medium& each : request.media->items)
        if (at >= each.first && at < each.end()) picture = &each;
    RowContents& row = rows.back();
    if (request.media && model.both_ways == model::BothWays::kPrompt) row.mask = {0, tokens};
    if (picture == nullptr) continue;
    const int32_t within = at - picture->first, features = picture->features();
    if (model.three_positions && !picture->is_sound()) {
      next = at == picture->first ? next - 1 : next;
      const int32_t begin = within == 0 ? next : rows[static_cast<size_t>(picture->first)].turned[0];
      row.turned = {begin, begin + within / picture->grid_columns,
                    begin + within % picture->grid_columns};
      next = begin + std::max(picture->grid_rows, picture->grid_columns);
    }
    std::vector<float> numbers(static_cast<size_t>(features * (1 + levels) * model.hidden_size));
    FakeEncoder::fill(picture->is_sound() ? picture->input.sound->numbers
                                           : picture->input.picture->pixels.numbers,
                      numbers);
    int32_t feature = 0;
    for (const FeatureRun& run : picture->runs) {
      if (at >= run.first && at < run.first + run.count) {
        if (model.both_ways == model::BothWays::kRuns && !picture->is_sound())
          row.mask = {run.first, run.first + run.count};
        for (int32_t level = 0; level <= levels; ++level) {
          const auto from = numbers.begin() + int64_t{level * features + feature + at - run.first} *
                                                  model.hidden_size;
          row.numbers.insert(row.numbers.end(), from, from + model.hidden_size);
        }
      }
      feature += run.count;
    }
  }
  return rows;
}

}  // namespace weir::sched
