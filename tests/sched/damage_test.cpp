// What the engine does when the model is not any more what was loaded, or computes what are no
// numbers: whose requests end, and with what.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/mapping_guard.h"
#include "sched/engine_runner.h"
#include "sched/fake_model.h"

namespace weir::sched {
namespace {

std::unique_ptr<Request> make_request(std::vector<int32_t> prompt, int32_t max_tokens,
                                      int32_t top_logprobs = 0) {
  sample::SamplingParams params;
  params.temperature = 0;
  params.top_logprobs = params.prompt_top_logprobs = top_logprobs;
  auto request = std::make_unique<Request>(std::move(prompt), params, max_tokens, top_logprobs > 0);
  request->arrived = Clock::now();
  return request;
}

EngineRunner::Options small_steps() {
  EngineRunner::Options options;
  options.members = 2;
  options.engine.step_tokens_max = 16;
  options.engine.running_max = 4;
  options.engine.queue_max = 16;
  return options;
}

class WithoutNumbers : public testing::TestWithParam<int32_t> {
 protected:
  WithoutNumbers() : model_({.slab_rows = GetParam()}) {
    model_.without_numbers = [](const model::BatchSlice& slice) {
      return slice.prompt_length == 7;
    };
  }
  void expect_failed(Request& request) {
    ASSERT_TRUE(runner_.handle().submit(&request));
    runner_.wait(request);
    EXPECT_EQ(request.log.finish_reason(), FinishReason::kError);
    EXPECT_TRUE(request.no_numbers);
    EXPECT_EQ(request.failure, "");
    EXPECT_EQ(request.log.size(), 0);
  }

  FakeModel model_;
  EngineRunner runner_{model_, test_ops(), small_steps()};
};

INSTANTIATE_TEST_SUITE_P(Prompts, WithoutNumbers, testing::Values(0, 90), [](const auto& rows) {
  return std::string(rows.param == 0 ? "InSteps" : "InSlabs");
});

TEST_P(WithoutNumbers, ARequestEndsBeforeItsFirstTokenAndOthersGoOn) {
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5, 6, 7};
  auto right = make_request({1, 2, 3}, 300);
  ASSERT_TRUE(runner_.handle().submit(right.get()));
  for (const int32_t top_logprobs : {0, 3}) expect_failed(*make_request(prompt, 20, top_logprobs));
  auto scored = make_request(prompt, 1, 2);
  scored->prompt_log = std::make_unique<TokenLog>(6, 2);
  expect_failed(*scored);
  EXPECT_EQ(scored->prompt_log->size(), 0);
  for (const Pooling how : {Pooling::kLast, Pooling::kMean, Pooling::kCls}) {
    auto pooled = make_request(prompt, 0);
    pooled->pooling = how;
    pooled->pooled.assign(8, 0);
    expect_failed(*pooled);
  }
  runner_.wait(*right);
  runner_.stop();
  EXPECT_TRUE(has_answer(*right, reference_answer(model_, *right)));
}

// A file whose bytes the fake model reads in every step.
class Damage : public testing::TestWithParam<int32_t> {
 protected:
  Damage() : model_({.slab_rows = GetParam()}) {
    MappingGuard::install();
    std::ofstream(path_) << std::string(kBytes, 'a');
    view_ = std::move(*FileView::map(path_));
    model_.mapped = {&view_};
    model_.on_forward = [this](int) {
      for (size_t i = 0; i < kBytes; i += 512) sum_ += static_cast<uint64_t>(view_.bytes()[i]);
    };
    model_.without_numbers = [this](const model::BatchSlice&) {
      return view_.bytes()[kBytes - 1] == std::byte{0};
    };
  }
  ~Damage() override { std::filesystem::remove(path_); }

  // Some run, more wait; all of them have long to go.
  void submit_all() {
    for (int32_t i = 0; i < 12; ++i) {
      requests_.push_back(
          make_request(std::vector<int32_t>(static_cast<size_t>(10 + 5 * i), i), 2000));
      ASSERT_TRUE(runner_.handle().submit(requests_.back().get()));
    }
    while (requests_.front()->log.size() < 5) std::this_thread::yield();
  }
  void expect_all_failed(const std::string& why) {
    for (const auto& request : requests_) {
      runner_.wait(*request);
      EXPECT_EQ(request->log.finish_reason(), FinishReason::kError);
      EXPECT_NE(request->failure.find(why), std::string::npos) << request->failure;
    }
    auto late = make_request({1, 2, 3}, 5);
    const Result<void> refused = runner_.handle().submit(late.get());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(refused.error().message.find(why), std::string::npos) << refused.error().message;
    runner_.stop();  // Checks that nothing is held.
    EXPECT_EQ(runner_.handle().open(), 0);
  }

  static constexpr size_t kBytes = 16384;
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("weir_damage_" + std::to_string(::getpid())))
          .string();
  FileView view_;
  std::atomic<uint64_t> sum_{0};
  FakeModel model_;
  std::vector<std::unique_ptr<Request>> requests_;
  EngineRunner runner_{model_, test_ops(), small_steps()};
};

INSTANTIATE_TEST_SUITE_P(Prompts, Damage, testing::Values(0, 90), [](const auto& rows) {
  return std::string(rows.param == 0 ? "InSteps" : "InSlabs");
});

TEST_P(Damage, WhatIsOpenEndsWhenAFileOfWeightsIsCut) {
  submit_all();
  std::filesystem::resize_file(path_, 4096);
  expect_all_failed("that was truncated since");
  // Nothing that was computed with zeros was published.
  for (const auto& request : requests_) {
    EXPECT_FALSE(request->no_numbers);
    const Answer whole = reference_answer(model_, *request);
    for (int32_t i = 0; i < request->log.size(); ++i)
      EXPECT_TRUE(same_bits(request->log[i], whole.tokens[static_cast<size_t>(i)]));
  }
}

TEST_P(Damage, WhatIsOpenEndsWhenTheEngineIsToldToGiveUp) {
  submit_all();
  runner_.handle().give_up("somebody has written to it");
  runner_.handle().give_up("and once more");
  expect_all_failed("somebody has written to it");
}

TEST_P(Damage, AMappingThatIsNotTheModelsChangesNothing) {
  const std::string other = path_ + "_other";
  std::ofstream(other) << std::string(kBytes, 'b');
  const FileView view = std::move(*FileView::map(other));
  std::filesystem::resize_file(other, 0);
  EXPECT_EQ(view.bytes()[0], std::byte{0});
  std::filesystem::remove(other);
  auto request = make_request({1, 2, 3}, 50);
  ASSERT_TRUE(runner_.handle().submit(request.get()));
  runner_.wait(*request);
  runner_.stop();
  EXPECT_TRUE(has_answer(*request, reference_answer(model_, *request)));
}

}  // namespace
}  // namespace weir::sched
