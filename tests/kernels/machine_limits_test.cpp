#include "kernels/machine_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "kernels/cpu_ops.h"

namespace weir::kernels {
namespace {

// No figure is right on every machine, but nothing real is outside these bounds, and a loop that
// the compiler removed would be.
TEST(MachineLimits, AreFiguresOfARealMachine) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (!isa_available(isa)) continue;
    const auto measured = measure_limits(isa, 1);
    ASSERT_TRUE(measured) << measured.error().message;
    const MachineLimits& limits = *measured;
    std::printf("%s: read %.1f GB/s, int8 %.3f TOPS, f32 %.3f TFLOPS\n",
                std::string(isa_name(isa)).c_str(), limits.read_gb_s, limits.int8_tops,
                limits.f32_tflops);
    EXPECT_GT(limits.read_gb_s, 0.2);
    EXPECT_LT(limits.read_gb_s, 1000);
    EXPECT_GT(limits.int8_tops, 1e-4);
    EXPECT_LT(limits.int8_tops, 50);
    EXPECT_GT(limits.f32_tflops, 1e-4);
    EXPECT_LT(limits.f32_tflops, 5);
  }
}

// Sixteen threads share what one would have read; once it was as much for each.
TEST(MachineLimits, ThreadsShareTheMemoryThatTheyRead) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const int64_t before = int64_t{usage.ru_maxrss} << 10;
  const auto measured = measure_limits(Isa::kScalar, 16);
  ASSERT_TRUE(measured) << measured.error().message;
  ::getrusage(RUSAGE_SELF, &usage);
  EXPECT_GE(read_bytes(), int64_t{256} << 20);
  EXPECT_LT((int64_t{usage.ru_maxrss} << 10) - before, read_bytes() + (int64_t{128} << 20));
}

}  // namespace
}  // namespace weir::kernels
