// How requests and tokens pass between threads, in millions: TokenLog and the rings, as the engine
// and its clients use them.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>

#include "base/ring.h"
#include "base/token_log.h"

namespace weir {
namespace {

// What the reader sees below size() is whole, at every moment, over millions of entries; and a log
// may be freed by its reader as soon as it is finished.
TEST(Handover, AReaderSeesOnlyWholeEntries) {
  constexpr int32_t kLogs = 300;
  constexpr int32_t kTokens = 5000;
  SpscRing<TokenLog*> ring(4);
  std::thread writer([&ring] {
    for (int32_t i = 0; i < kLogs; ++i) {
      std::optional<TokenLog*> log;
      while (!(log = ring.try_pop())) std::this_thread::yield();
      for (int32_t t = 0; t < kTokens; ++t) {
        const auto logprob = static_cast<float>(-t);
        const std::array<TokenLogprob, 1> top = {TokenLogprob{t + 1, logprob}};
        (*log)->append({.token = t ^ i, .logprob = logprob}, top);
      }
      (*log)->finish(FinishReason::kLength);
    }
  });
  int64_t wrong = 0;
  for (int32_t i = 0; i < kLogs; ++i) {
    auto log = std::make_unique<TokenLog>(kTokens, 1);
    while (!ring.try_push(log.get())) std::this_thread::yield();
    int32_t read = 0;
    while (true) {
      const bool finished = log->finished();  // Before size(): nothing comes after it.
      for (const int32_t size = log->size(); read < size; ++read) {
        wrong += (*log)[read].token != (read ^ i);
        wrong += (*log)[read].logprob != static_cast<float>(-read);
        wrong += log->top(read)[0].token != read + 1;
      }
      if (finished) break;
      std::this_thread::yield();
    }
    wrong += read != kTokens;
  }
  writer.join();
  EXPECT_EQ(wrong, 0);
}

// Several producers, one consumer, through a ring far too small: every message arrives once, and
// those of one producer in their order.
TEST(Handover, TheRingDeliversMillionsOfMessagesInOrder) {
  constexpr int kProducers = 3;
  constexpr uint64_t kMessages = 400000;
  MpscRing<uint64_t> ring(64);
  std::vector<std::thread> producers;
  for (uint64_t id = 0; id < kProducers; ++id) {
    producers.emplace_back([&ring, id] {
      for (uint64_t i = 0; i < kMessages; ++i)
        while (!ring.try_push(id << 32 | i)) std::this_thread::yield();
    });
  }
  std::array<uint64_t, kProducers> next{};
  uint64_t wrong = 0;
  for (uint64_t received = 0; received < kProducers * kMessages;) {
    const std::optional<uint64_t> message = ring.try_pop();
    if (!message) {
      std::this_thread::yield();
      continue;
    }
    wrong += next[*message >> 32]++ != (*message & 0xffffffffu);
    ++received;
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_FALSE(ring.try_pop());
}

}  // namespace
}  // namespace weir
