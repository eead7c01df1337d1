// kernels_bench: checks the linear-layer kernels of each ISA against scalar, then times them and
// prints each rate beside what the machine can do, measured in the same run.
//
//   kernels_bench [--isa NAME] [--threads N] [--product int8|bf16|exact|float|float8]
//                 [--format NAME] [--rows N]... [--quick] [--json]
//
// Every thread divides its work by its own processor time (CLOCK_THREAD_CPUTIME_ID) and the rates
// are added, so that other processes on the same cores do not count; the bandwidth and the caches
// that they use still do.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/dtype.h"
#include "base/huge_pages.h"
#include "kernels/cpu_ops.h"
#include "kernels/machine_limits.h"
#include "kernels/quant_layout.h"
#include "kernels/repack.h"
#include "thread_bench.h"

namespace weir::kernels {
namespace {

enum class Product { kInt8, kBf16, kExact, kFloat, kFloat8 };

const char* product_name(Product product) {
  switch (product) {
    case Product::kInt8:
      return "int8";
    case Product::kBf16:
      return "bf16";
    case Product::kExact:
      return "exact";
    case Product::kFloat:
      return "float";
    case Product::kFloat8:
      return "float8";
  }
  return "?";
}

struct Case {
  Product product;
  int32_t k, n, group, bits;
  int32_t rows;
  const char* format = "mlx";
  QuantMatrix form{};  // Its grid and scales; its shape is above.
};

// Formats of other files, by the numbers and scales that they are held in.
struct Format {
  const char* name;
  int32_t group, bits;
  QuantMatrix form;
};
constexpr QuantMatrix two_levels(Grid grid, ByteScale scale, bool mins, int32_t offset) {
  return {.grid = grid,
          .form = ScaleForm::kTwoLevel,
          .byte_scale = scale,
          .mins = mins,
          .offset = offset};
}
constexpr Format kFormats[] = {
    {"GPTQ", 128, 4, {.form = ScaleForm::kZeros}},
    {"Q4_K", 32, 4, two_levels(Grid::kUniform, ByteScale::kUnsigned, true, 0)},
    {"Q5_K", 32, 5, two_levels(Grid::kUniform, ByteScale::kUnsigned, true, 0)},
    {"Q6_K", 16, 6, two_levels(Grid::kUniform, ByteScale::kSigned, false, 32)},
    {"Q3_K", 16, 3, two_levels(Grid::kUniform, ByteScale::kSigned, false, 4)},
    {"Q2_K", 16, 2, two_levels(Grid::kUniform, ByteScale::kUnsigned, true, 0)},
    {"Q4_0", 32, 4, {.form = ScaleForm::kScales, .offset = 8}},
    {"Q8_0", 32, 8, {.form = ScaleForm::kScales, .offset = 128}},
    {"IQ4_XS", 32, 4, two_levels(Grid::kIq4, ByteScale::kSigned, false, 0)},
    {"MXFP4", 32, 4, two_levels(Grid::kE2m1, ByteScale::kE8m0, false, 0)},
    {"NVFP4", 16, 4, two_levels(Grid::kE2m1, ByteScale::kE4m3, false, 0)}};

QuantMatrix matrix_of(const Case& c) {
  QuantMatrix w = c.form;
  w.n = c.n;
  w.k = c.k;
  w.group = c.group;
  w.bits = c.bits;
  return w;
}

// Both what a decode step reads and what a prefill computes.
struct Measured {
  double seconds = 0;  // Of one product, all columns, per thread.
  double gb_s = 0;     // Bytes of weights, scales included.
  double tops = 0;     // 2 n k operations a row.
};

void fill_random(const HugeBuffer& memory, uint32_t seed) {
  std::mt19937 random(seed);
  for (size_t i = 0; i + 4 <= memory.bytes(); i += 4) {
    const uint32_t word = random();
    std::memcpy(memory.data() + i, &word, 4);
  }
}

// Floats in [-1, 1) without infinities, in the bytes given.
void fill_floats(const HugeBuffer& memory, FloatType type, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const size_t step = type == FloatType::kF32 ? 4 : 2;
  for (size_t i = 0; i + step <= memory.bytes(); i += step) {
    const float value = uniform(random);
    const uint16_t half = float_to_half(value);
    std::memcpy(memory.data() + i, step == 4 ? static_cast<const void*>(&value) : &half, step);
  }
}

// Scales without infinities for a matrix.
void fill_scales(const HugeBuffer& memory, const QuantMatrix& w) {
  if (w.form != ScaleForm::kTwoLevel) return fill_floats(memory, w.scale_type, 2);
  fill_floats(memory, FloatType::kF32, 2);
  std::mt19937 random(5);
  auto* at = reinterpret_cast<uint8_t*>(memory.data());
  for (int32_t block = 0; block < (w.n + kBlockRows - 1) / kBlockRows; ++block) {
    for (int32_t g = 0; g < w.k / w.group; ++g)
      for (int32_t i = 0; i < group_scale_bytes(w); ++i)
        at[group_scales_at(w, g) + i] = static_cast<uint8_t>(100 + random() % 27);
    at += block_scale_bytes(w);
  }
}

// Copies of one layer, enough of them that a pass over all does not fit a cache.
class Layers {
 public:
  Layers(const Case& c, int64_t total_bytes) : case_(c) {
    const QuantMatrix w = matrix_of(c);
    int64_t words = packed_word_bytes(w), scales = packed_scale_bytes(w);
    if (c.product == Product::kFloat) {
      words = int64_t{c.n} * c.k * 2;
      scales = 0;
    } else if (c.product == Product::kFloat8) {
      words = packed_word_bytes(float8_shape());
      scales = packed_scale_bytes(float8_shape());
    }
    bytes_ = words + scales;
    const int64_t count = std::max<int64_t>(1, total_bytes / bytes_);
    for (int64_t i = 0; i < count; ++i) {
      words_.push_back(buffer(words));
      scales_.push_back(buffer(std::max<int64_t>(scales, 64)));
      fill(words_.back(), scales_.back(), w);
    }
  }
  size_t count() const { return words_.size(); }
  int64_t bytes() const { return bytes_; }

  QuantMatrix quant(size_t i) const {
    QuantMatrix w = matrix_of(case_);
    w.words = reinterpret_cast<const uint8_t*>(words_[i].data());
    w.scales = reinterpret_cast<const uint8_t*>(scales_[i].data());
    return w;
  }
  FloatMatrix floats(size_t i) const {
    FloatMatrix w;
    w.n = case_.n;
    w.k = case_.k;
    w.type = FloatType::kF16;
    w.rows = words_[i].data();
    return w;
  }
  Float8Matrix float8(size_t i) const {
    Float8Matrix w = float8_shape();
    w.numbers = reinterpret_cast<const uint8_t*>(words_[i].data());
    w.scales = reinterpret_cast<const float*>(scales_[i].data());
    return w;
  }

 private:
  Float8Matrix float8_shape() const {
    return {.n = case_.n, .k = case_.k, .scale_columns = case_.group};
  }
  void fill(const HugeBuffer& words, const HugeBuffer& scales, const QuantMatrix& w) const {
    if (case_.product == Product::kFloat) return fill_floats(words, FloatType::kF16, 1);
    fill_random(words, 1);
    if (case_.product != Product::kFloat8) return fill_scales(scales, w);
    auto* bytes = reinterpret_cast<uint8_t*>(words.data());
    for (size_t i = 0; i < words.bytes(); ++i)
      if ((bytes[i] & 0x7f) == 0x7f) bytes[i] ^= 1;  // A NaN.
    fill_floats(scales, FloatType::kF32, 7);
  }

  Case case_;
  int64_t bytes_ = 0;
  std::vector<HugeBuffer> words_, scales_;
};

class Activations {
 public:
  explicit Activations(const Case& c)
      : case_(c),
        x_(buffer(int64_t{c.rows} * c.k * 4)),
        bf16_(buffer(int64_t{c.rows} * (c.k + 32) * 2)),
        q_(buffer(int64_t{c.rows} * c.k + 64)),
        scale_(buffer(int64_t{c.rows} * (c.k / c.group) * 4)),
        sum_(buffer(int64_t{c.rows} * (c.k / c.group) * 4)) {
    fill_floats(x_, FloatType::kF32, 3);
  }
  const float* x() const { return reinterpret_cast<const float*>(x_.data()); }
  Bf16Rows bf16() const {
    return {.k = case_.k,
            .stride = int64_t{case_.k} + 32,
            .x = reinterpret_cast<uint16_t*>(bf16_.data())};
  }
  QuantRows rows() const {
    QuantRows rows;
    rows.k = case_.k;
    rows.group = case_.group;
    rows.q = reinterpret_cast<int8_t*>(q_.data());
    rows.scale = reinterpret_cast<float*>(scale_.data());
    rows.sum = reinterpret_cast<float*>(sum_.data());
    return rows;
  }

 private:
  Case case_;
  HugeBuffer x_, bf16_, q_, scale_, sum_;
};

void run_range(const Ops& ops, const Case& c, const Layers& layers, size_t layer,
               const Activations& x, int32_t begin, int32_t end, float* y, void* scratch,
               const NextWeights& next = {}) {
  GemmRange range;
  range.next = next;
  range.rows = c.rows;
  range.begin = begin;
  range.end = end;
  range.y = y;
  range.y_stride = c.n;
  switch (c.product) {
    case Product::kInt8:
      ops.gemm_quant_int8(layers.quant(layer), x.rows(), range, scratch);
      break;
    case Product::kBf16:
      ops.gemm_quant_bf16(layers.quant(layer), x.bf16(), range, scratch);
      break;
    case Product::kExact:
      ops.gemm_quant_f32(layers.quant(layer), x.x(), c.k, range, scratch);
      break;
    case Product::kFloat:
      ops.gemm_float_f32(layers.floats(layer), x.x(), c.k, range, scratch);
      break;
    case Product::kFloat8:
      ops.gemm_float8_f32(layers.float8(layer), x.x(), c.k, range, scratch);
      break;
  }
}

// The first 48 columns against scalar: bits, or rounding for the float product.
bool agrees_with_scalar(const Ops& ops, const Case& c, const Layers& layers, const Activations& x,
                        void* scratch) {
  const int32_t end = std::min(c.n, 48);
  std::vector<float> found(static_cast<size_t>(c.rows) * static_cast<size_t>(c.n));
  std::vector<float> expected(found.size());
  Case few = c;
  few.rows = std::min(c.rows, 20);
  run_range(ops, c, layers, 0, x, 0, end, found.data(), scratch);
  run_range(ops_for(Isa::kScalar), few, layers, 0, x, 0, end, expected.data(), scratch);
  for (int32_t m = 0; m < few.rows; ++m) {
    for (int32_t column = 0; column < end; ++column) {
      const auto at =
          static_cast<size_t>(m) * static_cast<size_t>(c.n) + static_cast<size_t>(column);
      const bool same = c.product == Product::kFloat
                            ? std::abs(found[at] - expected[at]) <= 1e-5f * static_cast<float>(c.k)
                            : std::memcmp(&found[at], &expected[at], 4) == 0;
      if (!same) {
        std::fprintf(stderr, "%s %s k %d n %d rows %d: row %d column %d is %g, scalar says %g\n",
                     std::string(isa_name(ops.isa)).c_str(), product_name(c.product), c.k, c.n,
                     c.rows, m, column, static_cast<double>(found[at]),
                     static_cast<double>(expected[at]));
        return false;
      }
    }
  }
  return true;
}

// Threads take blocks of columns in turn, of a size as a team does: the work of each and its
// processor time.
Measured time_case(const Ops& ops, const Case& c, const Layers& layers, const Activations& x,
                   int threads, double seconds) {
  const int32_t few = std::max(16, (64 << 10) * 8 / (c.k * c.bits) / 16 * 16);
  const int32_t chunk = c.rows <= 16 ? few : std::max(32, c.n / (8 * threads) / 16 * 16);
  const auto chunks = static_cast<int64_t>((c.n + chunk - 1) / chunk);
  HugeBuffer y = buffer(int64_t{c.rows} * c.n * 4);
  std::vector<Measured> best(static_cast<size_t>(threads));
  const auto work = [&](size_t member) {
    HugeBuffer scratch = buffer(kScratchBytes);
    // A slice takes 5 ms at least; the best slice counts. To ask for the time
    // takes a tenth of a claim.
    constexpr int kClaimsATime = 16;
    double total = 0, begin = thread_seconds();
    double columns = 0;
    int claims = 0;
    bool warm = false;
    const auto layer_of = [&](int64_t i) {
      return static_cast<size_t>(i / chunks) % layers.count();
    };
    const auto begin_of = [&](int64_t i) { return static_cast<int32_t>(i % chunks) * chunk; };
    const auto end_of = [&](int64_t i) { return std::min(c.n, begin_of(i) + chunk); };
    for (auto i = static_cast<int64_t>(member); total < seconds; i += threads) {
      NextWeights next;
      const int64_t then = i + threads;
      if (c.product == Product::kInt8)
        next = next_weights(layers.quant(layer_of(then)), begin_of(then), end_of(then));
      if (c.product == Product::kFloat8)
        next = next_weights(layers.float8(layer_of(then)), begin_of(then), end_of(then));
      const int32_t first = begin_of(i), end = end_of(i);
      run_range(ops, c, layers, layer_of(i), x, first, end, reinterpret_cast<float*>(y.data()),
                scratch.data(), next);
      columns += end - first;
      if (++claims % kClaimsATime != 0 && c.rows <= 16) continue;
      const double elapsed = thread_seconds() - begin;
      if (elapsed < 5e-3) continue;
      const double rate = columns / elapsed;
      Measured& mine = best[member];
      if (warm && rate > mine.tops) mine.tops = rate;
      warm = true;
      total += elapsed;
      begin = thread_seconds();
      columns = 0;
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, static_cast<size_t>(i));
  work(0);
  for (std::thread& other : others) other.join();
  double rate = 0;  // Columns a second.
  for (const Measured& one : best) rate += one.tops;
  Measured sum;
  sum.seconds = c.n / rate;
  sum.gb_s = 1e-9 * rate * static_cast<double>(layers.bytes()) / c.n;
  sum.tops = 1e-12 * rate * 2.0 * c.k * c.rows;
  return sum;
}

struct Options {
  std::vector<Isa> isas;
  std::vector<int> threads = {1, 2};
  std::string product;        // The only one to time; empty: all.
  std::vector<int32_t> rows;  // The only ones to time; empty: all.
  std::string format;         // Likewise.
  bool quick = false;
  bool json = false;
};

std::vector<Case> cases(const Ops& ops, bool quick) {
  std::vector<Case> list;
  const std::vector<int32_t> rows = quick ? std::vector<int32_t>{1, 16, 64}
                                          : std::vector<int32_t>{1, 2, 4, 8, 12, 16, 32, 128, 512};
  for (const int32_t group : {32, 64, 128})
    for (const int32_t m : rows) list.push_back({Product::kInt8, 2048, 2048, group, 4, m});
  for (const int32_t m : rows) list.push_back({Product::kInt8, 2048, 2048, 64, 8, m});
  if (!quick)
    for (const int32_t m : rows) {
      list.push_back({Product::kInt8, 576, 1536, 32, 4, m});
      list.push_back({Product::kInt8, 1536, 576, 32, 4, m});
      list.push_back({Product::kInt8, 576, 576, 32, 4, m});
    }
  if (ops.prompts_in_bf16) {
    for (const int32_t m : {16, 32, 128, 512}) {
      list.push_back({Product::kBf16, 2048, 2048, 64, 4, m});
      list.push_back({Product::kBf16, 2048, 2048, 64, 8, m});
      list.push_back({Product::kBf16, 576, 1536, 32, 4, m});
      list.push_back({Product::kBf16, 1536, 576, 32, 4, m});
    }
  }
  for (const int32_t m : {1, 4, 32}) list.push_back({Product::kExact, 2048, 2048, 64, 4, m});
  for (const int32_t m : {1, 4, 32}) list.push_back({Product::kFloat, 2048, 2048, 64, 16, m});
  // A scale for each 128 x 128 numbers.
  for (const int32_t m : rows) list.push_back({Product::kFloat8, 4096, 2048, 128, 8, m, "FP8"});
  for (const Format& format : kFormats)
    for (const int32_t m :
         quick ? std::vector<int32_t>{1, 16, 64} : std::vector<int32_t>{1, 2, 4, 8, 16, 64}) {
      list.push_back(
          {Product::kInt8, 4096, 2048, format.group, format.bits, m, format.name, format.form});
      if (ops.prompts_in_bf16 && m >= 16)
        list.push_back(
            {Product::kBf16, 4096, 2048, format.group, format.bits, m, format.name, format.form});
    }
  return list;
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {
    if (json_) std::printf("[");
  }
  ~Report() {
    if (json_) std::printf("\n]\n");
  }
  void limits(Isa isa, int threads, const MachineLimits& l) {
    if (json_) return;
    std::printf("\n%s, %d thread%s: read %.1f GB/s, int8 %.2f TOPS, f32 %.3f TFLOPS\n",
                std::string(isa_name(isa)).c_str(), threads, threads == 1 ? "" : "s", l.read_gb_s,
                l.int8_tops, l.f32_tflops);
    std::printf("%-6s %-6s %5s %5s %5s %4s %4s %10s %8s %7s %8s %7s\n", "kernel", "format", "k",
                "n", "group", "bits", "rows", "us", "GB/s", "% read", "TOPS", "% peak");
  }
  void add(Isa isa, int threads, const MachineLimits& l, const Case& c, const Measured& m) {
    const double peak = c.product == Product::kInt8   ? l.int8_tops
                        : c.product == Product::kBf16 ? l.bf16_tflops
                                                      : l.f32_tflops;
    if (!json_) {
      std::printf("%-6s %-6s %5d %5d %5d %4d %4d %10.1f %8.2f %7.1f %8.4f %7.1f\n",
                  product_name(c.product), c.format, c.k, c.n, c.group, c.bits, c.rows,
                  1e6 * m.seconds, m.gb_s, 100 * m.gb_s / l.read_gb_s, m.tops, 100 * m.tops / peak);
      std::fflush(stdout);
      return;
    }
    std::printf(
        "%s\n {\"isa\":\"%s\",\"threads\":%d,\"kernel\":\"%s\",\"format\":\"%s\",\"k\":%d,\"n\":%d,"
        "\"group\":%d,"
        "\"bits\":%d,\"rows\":%d,\"us\":%.2f,\"gb_s\":%.3f,\"read_gb_s\":%.3f,\"tops\":%.5f,"
        "\"peak_tops\":%.5f}",
        first_ ? "" : ",", std::string(isa_name(isa)).c_str(), threads, product_name(c.product),
        c.format, c.k, c.n, c.group, c.bits, c.rows, 1e6 * m.seconds, m.gb_s, l.read_gb_s, m.tops,
        peak);
    first_ = false;
  }

 private:
  bool json_;
  bool first_ = true;
};

int run(const Options& options) {
  Report report(options.json);
  HugeBuffer scratch = buffer(kScratchBytes);
  for (const Isa isa : options.isas) {
    const Ops& ops = ops_for(isa);
    for (const int threads : options.threads) {
      const auto measured = measure_limits(isa, threads);
      if (!measured) {
        std::fprintf(stderr, "%s\n", measured.error().message.c_str());
        return 1;
      }
      const MachineLimits& limits = *measured;
      report.limits(isa, threads, limits);
      for (const Case& c : cases(ops, options.quick)) {
        if (!options.product.empty() && options.product != product_name(c.product)) continue;
        if (!options.format.empty() && options.format != c.format) continue;
        if (!options.rows.empty() && std::ranges::count(options.rows, c.rows) == 0) continue;
        // Few rows: from memory, as in decoding. Many: the arithmetic is what is timed.
        const Layers layers(c, c.rows <= 8 ? int64_t{192} << 20 : int64_t{8} << 20);
        const Activations x(c);
        ops_for(Isa::kScalar).quantise_rows(x.x(), c.k, c.rows, c.k, x.rows());
        ops_for(Isa::kScalar).round_rows(x.x(), c.k, c.rows, c.k, x.bf16());
        if (!agrees_with_scalar(ops, c, layers, x, scratch.data())) return 1;
        const double seconds = options.quick ? 0.05 : 0.2;
        report.add(isa, threads, limits, c, time_case(ops, c, layers, x, threads, seconds));
      }
    }
  }
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: kernels_bench [--isa NAME] [--threads N] "
               "[--product int8|bf16|exact|float|float8] [--format NAME] [--rows N]... [--quick] "
               "[--json]\n");
  return 2;
}

int parse_and_run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--json") {
      options.json = true;
    } else if (argument == "--product" && i + 1 < argc) {
      options.product = argv[++i];
    } else if (argument == "--format" && i + 1 < argc) {
      options.format = argv[++i];
    } else if (argument == "--rows" && i + 1 < argc) {
      options.rows.push_back(std::atoi(argv[++i]));
    } else if (argument == "--isa" && i + 1 < argc) {
      const auto isa = parse_isa(argv[++i]);
      if (!isa || !isa_available(*isa)) return usage();
      options.isas.push_back(*isa);
    } else if (argument == "--threads" && i + 1 < argc) {
      const int threads = std::atoi(argv[++i]);
      if (threads < 1 || threads > 1024) return usage();
      options.threads = {threads};
    } else {
      return usage();
    }
  }
  if (options.isas.empty())
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAmx})
      if (isa_available(isa)) options.isas.push_back(isa);
  return run(options);
}

}  // namespace
}  // namespace weir::kernels

int main(int argc, char** argv) { return weir::kernels::parse_and_run(argc, argv); }
