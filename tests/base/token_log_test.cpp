#include "base/token_log.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir {
namespace {

TEST(TokenLog, AReaderSeesEveryTokenInOrderAndThenTheEnd) {
  constexpr int32_t kTokens = 1'000'000;
  TokenLog log(kTokens, 1);
  std::thread writer([&log] {
    for (int32_t i = 0; i < kTokens; ++i) {
      const TokenLogprob top[] = {{i + 1, static_cast<float>(i)}};
      log.append({i, -static_cast<float>(i)}, top);
    }
    log.finish(FinishReason::kLength);
  });
  int32_t seen = 0;
  while (true) {
    const bool finished = log.finished();  // Before size(): what is there at the end is seen.
    const int32_t size = log.size();
    for (; seen < size; ++seen) {
      ASSERT_EQ(log[seen].token, seen);
      ASSERT_EQ(log.top(seen)[0].token, seen + 1);
    }
    if (finished) break;
    std::this_thread::yield();
  }
  EXPECT_EQ(seen, kTokens);
  EXPECT_EQ(log.finish_reason(), FinishReason::kLength);
  writer.join();
}

}  // namespace
}  // namespace weir
