// Keys and values as codes: rotations, what codes lose, the same bits on every ISA; attention to
// codes against the formula in double over what they are decoded to, and against itself.
#include "coded_sequence.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <numeric>
#include <span>

#include "isas.h"

namespace weir::kernels {
namespace {

std::vector<float> random_unit(std::mt19937& random, int32_t dim) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(static_cast<size_t>(dim));
  double squares = 0;
  for (float& v : x) {
    v = normal(random);
    squares += double{v} * v;
  }
  for (float& v : x) v = static_cast<float>(v / std::sqrt(squares));
  return x;
}

TEST(Rotation, PaleyMatricesAreOrthogonal) {
  for (const int32_t n : {12, 20, 28, 36, 44, 60}) {
    const std::vector<float> h = paley_matrix(n);
    for (int32_t i = 0; i < n; ++i)
      for (int32_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int32_t k = 0; k < n; ++k)
          sum += h[static_cast<size_t>(i * n + k)] * h[static_cast<size_t>(j * n + k)];
        ASSERT_EQ(sum, i == j ? static_cast<float>(n) : 0) << n << ": " << i << ", " << j;
      }
  }
}

class CodedTest : public testing::TestWithParam<const Ops*> {
 protected:
  static const CodedOps& codes() { return coded_ops_for(GetParam()->isa); }
};

TEST_P(CodedTest, RotationsAreScalarsAndTurnBack) {
  std::mt19937 random(1);
  for (const int32_t dim : {4, 16, 48, 64, 68, 72, 80, 92, 96, 112, 128, 160, 192, 256, 576}) {
    const HeadRotation rotation(dim);
    std::vector<float> x;
    for (int32_t h = 0; h < 3; ++h) {
      const std::vector<float> head = random_unit(random, dim);
      x.insert(x.end(), head.begin(), head.end());
    }
    std::vector<float> y = x, expected = x;
    codes().rotate(rotation.view(), false, 3, y.data());
    coded_ops_for(Isa::kScalar).rotate(rotation.view(), false, 3, expected.data());
    EXPECT_EQ(y, expected) << dim;
    double squares = 0;
    for (const float v : y) squares += double{v} * v;
    EXPECT_NEAR(squares, 3, 1e-5) << dim;
    codes().rotate(rotation.view(), true, 3, y.data());
    coded_ops_for(Isa::kScalar).rotate(rotation.view(), true, 3, expected.data());
    EXPECT_EQ(y, expected) << dim;
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], 1e-6) << dim;
  }
}

constexpr std::array<CodedShape, 10> kShapes = {{
    {.tokens = 100},
    {.kv_heads = 2, .group = 2, .k_dim = 128, .v_dim = 128, .tokens = 600},
    {.kv_heads = 2, .group = 3, .v_bits = 3, .tokens = 331},
    {.group = 4, .k_dim = 80, .v_dim = 96, .tokens = 290, .window = 70},
    {.group = 8, .k_dim = 128, .v_dim = 128, .tokens = 300, .softcap = 5, .sinks = true},
    {.group = 5, .k_dim = 68, .v_dim = 76, .v_bits = 3, .tokens = 200, .sinks = true},
    {.kv_heads = 2, .k_dim = 128, .v_dim = 128, .k_bits = 8, .v_bits = 8, .tokens = 300},
    {.group = 7, .k_dim = 100, .v_dim = 72, .k_bits = 8, .v_bits = 8, .tokens = 200, .window = 33},
    {.group = 2, .tokens = 300, .window = 100, .chunks = true},
    {.group = 2, .k_dim = 576, .v_dim = 256, .tokens = 150},
}};

TEST_P(CodedTest, PagesAreScalars) {
  for (const CodedShape& shape : kShapes) {
    CodedSequence mine(*GetParam(), shape, 3, 2), reference(ops_for(Isa::kScalar), shape, 3, 2);
    for (int32_t block = 0; block < std::ssize(mine.pages); ++block)
      for (int32_t head = 0; head < shape.kv_heads; ++head)
        ASSERT_EQ(std::memcmp(mine.head(block, head), reference.head(block, head),
                              static_cast<size_t>(mine.coded.head_bytes)),
                  0)
            << shape << " block " << block;
  }
}

// Attention of one row's head in double, over what is decoded.
std::vector<double> decoded_attention(CodedSequence& s, const CodedShape& shape, int32_t position,
                                      int32_t kv_head, int32_t h) {
  std::vector<float> unused;
  const AttendArgs args = s.args(position, 1, kv_head, unused);
  const float* const q = args.q + int64_t{h} * shape.k_dim;
  const int32_t window = shape.chunks ? position % shape.window + 1 : shape.window;
  int32_t begin = window > 0 ? std::max(0, position + 1 - window) : 0, end = position + 1;
  if (position >= shape.span_begin && position < shape.span_end) {
    begin = std::min(begin, shape.span_begin);
    end = shape.span_end;
  }
  const int32_t own = position / kPageTokens;
  const CodedOps& scalar = coded_ops_for(Isa::kScalar);
  std::vector<float> turned(q, q + shape.k_dim);
  scalar.rotate(s.coded.k_rotation, /*back=*/false, 1, turned.data());
  // What is codes is summed as it is turned.
  std::vector<double> scores, out(static_cast<size_t>(shape.v_dim), 0.0), of_codes = out;
  double max = -1e300;
  // The first block, and the position's own, are not codes.
  const auto as_codes = [own](int32_t j) { return j >= kPageTokens && j / kPageTokens < own; };
  const auto hot_at = [&](int32_t j, int64_t index) {
    const uint8_t* const head =
        s.hot.base + s.hot_pages[static_cast<size_t>(j / kPageTokens)] * s.hot.page_bytes +
        kv_head * s.hot.head_bytes;
    return half_of(head, static_cast<int32_t>(index));
  };
  for (int32_t j = begin; j < end; ++j) {
    double dot = 0;
    for (int32_t i = 0; i < shape.k_dim; ++i)
      dot += as_codes(j)
                 ? turned[static_cast<size_t>(i)] *
                       key_of(s.coded, s.head(j / kPageTokens, kv_head), j % kPageTokens, i)
                 : q[i] * hot_at(j, int64_t{i} * kPageTokens + j % kPageTokens);
    dot *= args.scale;
    if (shape.softcap > 0) dot = shape.softcap * std::tanh(dot / shape.softcap);
    scores.push_back(dot);
    max = std::max(max, dot);
  }
  double sum = shape.sinks ? std::exp(args.sinks[h] - max) : 0;
  for (int32_t j = begin; j < end; ++j) {
    const double p = std::exp(scores[static_cast<size_t>(j - begin)] - max);
    sum += p;
    for (int32_t i = 0; i < shape.v_dim; ++i)
      if (as_codes(j))
        of_codes[static_cast<size_t>(i)] +=
            p * value_of(s.coded, s.head(j / kPageTokens, kv_head), j % kPageTokens, i);
      else
        out[static_cast<size_t>(i)] += p * hot_at(j, int64_t{shape.k_dim} * kPageTokens +
                                                         int64_t{j % kPageTokens} * shape.v_dim + i);
  }
  std::vector<float> back(of_codes.begin(), of_codes.end());
  scalar.rotate(s.coded.v_rotation, /*back=*/true, 1, back.data());
  for (size_t i = 0; i < out.size(); ++i) out[i] = (out[i] + back[i]) / sum;
  return out;
}

// How far attention of one row of a KV head is from that, by the root of the squares.
double distance(CodedSequence& s, const CodedShape& shape, decltype(CodedOps::attend) kernel,
                int32_t position, int32_t head) {
  const std::vector<float> out = s.attend(kernel, position, 1, head);
  double error = 0, size = 0;
  for (int32_t h = 0; h < shape.group; ++h) {
    const std::vector<double> exact = decoded_attention(s, shape, position, head, h);
    for (int32_t i = 0; i < shape.v_dim; ++i) {
      const double x = exact[static_cast<size_t>(i)];
      const double d = out[static_cast<size_t>(h * shape.v_dim + i)] - x;
      error += d * d;
      size += x * x;
    }
  }
  return std::sqrt(error / size);
}

// Queries and weights of so many bits: at most 2 % (1 % of the queries, 1 % of the weights), far
// below what codes themselves lose.
TEST_P(CodedTest, AttentionIsThatOfWhatCodesStandFor) {
  for (const CodedShape& shape : kShapes) {
    CodedSequence s(*GetParam(), shape, 5, 1);
    for (const int32_t position : {0, 31, 32, 63, 64, 70, shape.tokens - 1})
      for (int32_t head = 0; head < shape.kv_heads; ++head)
        EXPECT_LE(distance(s, shape, codes().attend, position, head), 0.02)
            << shape << " position " << position;
  }
}

TEST_P(CodedTest, AttentionIsScalarsButForExponentials) {
  for (const CodedShape& shape : kShapes) {
    CodedSequence s(ops_for(Isa::kScalar), shape, 7, 1);
    for (const int32_t position : {40, 64, 70, 96, shape.tokens - 1}) {
      const std::vector<float> out = s.attend(*GetParam(), position, 1, 0);
      const std::vector<float> reference = s.attend(ops_for(Isa::kScalar), position, 1, 0);
      // A weight on the edge between two bytes may fall on either side.
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], reference[i], 5e-3) << shape << " position " << position;
    }
  }
}

// Rows that see no codes are not turned, and cost what numbers cost.
TEST_P(CodedTest, RowsOfTheFirstTwoBlocksAreThoseOfNumbers) {
  for (const CodedShape& shape : kShapes) {
    CodedSequence s(*GetParam(), shape, 15, 1);
    const std::vector<float> out = s.attend(*GetParam(), 0, kFirstToSeeCodes, 0);
    std::vector<float> expected;
    AttendArgs args = s.args(0, kFirstToSeeCodes, 0, expected);
    args.pages = s.hot_pages.data();
    GetParam()->attend(s.hot, args);
    EXPECT_EQ(out, expected) << shape;
  }
}

// A row's bits, alone and among others of its slice.
TEST_P(CodedTest, RowsDoNotDependOnTheirNeighbours) {
  for (const CodedShape& shape : kShapes) {
    CodedSequence s(*GetParam(), shape, 9, 1);
    const int32_t width = shape.group * shape.v_dim;
    const auto row_of = [&](const std::vector<float>& out, int32_t row) {
      return std::vector<float>(out.begin() + row * width, out.begin() + (row + 1) * width);
    };
    for (const int32_t rows : {2, 5, 40, std::min(shape.tokens, 150)}) {
      const int32_t first = shape.tokens - rows;
      const std::vector<float> together = s.attend(*GetParam(), first, rows, 0);
      for (const int32_t row : {0, rows / 2, rows - 1})
        ASSERT_EQ(row_of(together, row), s.attend(*GetParam(), first + row, 1, 0))
            << shape << " row " << row << " of " << rows;
    }
  }
}

// What a row does not see: later tokens, pages that a window has left, codes of its own page.
TEST_P(CodedTest, WhatIsNotSeenIsNotRead) {
  const CodedShape shape = {.group = 2, .tokens = 200, .window = 50};
  CodedSequence s(*GetParam(), shape, 11);
  const std::vector<float> before = s.attend(*GetParam(), 170, 1, 0);
  const auto spoil = [&](int32_t block) {
    std::memset(const_cast<uint8_t*>(s.head(block, 0)), 0xff,
                static_cast<size_t>(s.coded.head_bytes));
  };
  for (const int32_t block : {0, 1, 2, 5, 6}) spoil(block);
  for (const int32_t block : {0, 1, 2, 3, 4, 6})
    std::memset(s.hot.base + s.hot_pages[static_cast<size_t>(block)] * s.hot.page_bytes, 0xff,
                static_cast<size_t>(s.hot.page_bytes));
  EXPECT_EQ(s.attend(*GetParam(), 170, 1, 0), before);
}

TEST_P(CodedTest, WhatIsNotFiniteSpoilsWhoSeesIt) {
  const CodedShape shape = {.group = 2, .tokens = 100};
  for (const bool value : {false, true}) {
    CodedSequence s(*GetParam(), shape, 13);
    const uint16_t nan = 0x7e00;
    const int64_t at = value ? int64_t{shape.k_dim} * kPageTokens + 5 * shape.v_dim + 7
                             : int64_t{7} * kPageTokens + 5;
    std::memcpy(s.hot.base + s.hot_pages[1] * s.hot.page_bytes + 2 * at, &nan, 2);
    s.encode(*GetParam(), 1);
    for (const float x : s.attend(*GetParam(), 99, 1, 0)) EXPECT_TRUE(std::isnan(x));
    for (const float x : s.attend(*GetParam(), 31, 1, 0)) EXPECT_FALSE(std::isnan(x));
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, CodedTest, testing::ValuesIn(available_ops()), name_of);

// --- attend_prompt where it is another function, and over tiles that are emulated in memory.

struct PromptWay {
  const char* name;
  const Ops* ops;
  decltype(CodedOps::attend) kernel;
};

std::vector<PromptWay> prompt_ways() {
  std::vector<PromptWay> all;
  for (const Isa isa : {Isa::kAvx512, Isa::kAmx}) {
    if (!isa_available(isa)) continue;
    const Ops& ops = ops_for(isa);
    if (ops.attend_prompt != ops.attend)
      all.push_back({isa == Isa::kAmx ? "amx" : "avx512", &ops, coded_ops_for(isa).attend_prompt});
  }
  if (!all.empty()) {  // The processor has products of bf16.
    CodedOps emulated;
    amx::fill_coded_attention_emulated(emulated);
    all.push_back({"emulated", &ops_for(Isa::kAvx512), emulated.attend_prompt});
  }
  return all;
}

class CodedPrompt : public testing::TestWithParam<PromptWay> {};
INSTANTIATE_TEST_SUITE_P(Ways, CodedPrompt, testing::ValuesIn(prompt_ways()),
                         [](const auto& way) { return std::string(way.param.name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CodedPrompt);

// All have tiles but the last two.
constexpr std::array<CodedShape, 12> kPromptShapes = {{
    {.tokens = 100},
    {.kv_heads = 2, .group = 2, .k_dim = 128, .v_dim = 128, .tokens = 600},
    {.kv_heads = 2, .group = 3, .v_bits = 3, .tokens = 331},
    {.group = 4, .k_dim = 96, .v_dim = 160, .v_bits = 3, .tokens = 290, .window = 70},
    {.group = 8, .k_dim = 128, .v_dim = 128, .tokens = 300, .sinks = true},
    {.group = 5, .k_dim = 32, .v_dim = 256, .k_bits = 8, .v_bits = 8, .tokens = 200},
    {.kv_heads = 2, .k_dim = 128, .v_dim = 64, .k_bits = 8, .v_bits = 8, .tokens = 300},
    {.group = 7, .k_dim = 224, .v_dim = 192, .tokens = 200, .window = 33},
    {.group = 2, .tokens = 400, .window = 100, .chunks = true},
    {.group = 3, .tokens = 700, .span_begin = 240, .span_end = 540},
    {.group = 5, .k_dim = 68, .v_dim = 76, .v_bits = 3, .tokens = 200, .sinks = true},
    {.group = 2, .tokens = 150, .softcap = 5},
}};

// Queries, keys, weights and values are rounded to 8 bits: a half of 2^-8 each at most, a third of
// that by the root of the squares. Where there are no tiles, 2 % as above.
TEST_P(CodedPrompt, IsThatOfWhatCodesStandFor) {
  for (const CodedShape& shape : kPromptShapes) {
    const bool tiles = shape.k_dim % 32 == 0 && shape.softcap == 0;
    CodedSequence s(*GetParam().ops, shape, 5, 1);
    for (const int32_t position : {64, 70, 95, 96, shape.tokens / 2 + 14, shape.tokens - 1})
      for (int32_t head = 0; head < shape.kv_heads; ++head)
        EXPECT_LE(distance(s, shape, GetParam().kernel, position, head), tiles ? 0.008 : 0.02)
            << shape << " position " << position;
  }
}

TEST_P(CodedPrompt, GivesARowTheSameBitsInAnyChunk) {
  std::mt19937 random(3);
  for (const CodedShape& shape : kPromptShapes) {
    CodedSequence s(*GetParam().ops, shape, 9, 1);
    const int32_t first = kFirstToSeeCodes, width = shape.group * shape.v_dim;
    const std::vector<float> whole = s.attend(GetParam().kernel, first, shape.tokens - first, 0);
    for (int32_t begin = first; begin < shape.tokens;) {
      const int32_t rows =
          std::min(shape.tokens - begin, 1 + static_cast<int32_t>(random() % 90));
      const std::vector<float> part = s.attend(GetParam().kernel, begin, rows, 0);
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + (begin - first) * width,
                            part.size() * sizeof(float)),
                0)
          << shape << " rows " << begin << " to " << begin + rows;
      begin += rows;
    }
  }
}

// More queries than the scratch memory holds.
TEST_P(CodedPrompt, GivesARowTheSameBitsInAVeryLongChunk) {
  const CodedShape shape = {.group = 20, .k_dim = 32, .v_dim = 256, .tokens = 400};
  CodedSequence s(*GetParam().ops, shape, 9, 1);
  const int32_t first = 70, width = shape.group * shape.v_dim;
  const std::vector<float> whole = s.attend(GetParam().kernel, first, 330, 0);
  for (int32_t row = first; row < shape.tokens; row += 11) {
    const std::vector<float> alone = s.attend(GetParam().kernel, row, 1, 0);
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), whole.begin() + (row - first) * width))
        << "row " << row;
  }
}

TEST_P(CodedPrompt, ReadsNothingThatNoRowSees) {
  const CodedShape shape = {.group = 2, .tokens = 200, .window = 50};
  CodedSequence s(*GetParam().ops, shape, 11);
  const std::vector<float> before = s.attend(GetParam().kernel, 150, 31, 0);
  // 101 to 180: of blocks 3 and 4 codes, of 4 and 5 numbers.
  for (const int32_t block : {0, 1, 2, 5, 6})
    std::memset(const_cast<uint8_t*>(s.head(block, 0)), 0xff,
                static_cast<size_t>(s.coded.head_bytes));
  for (const int32_t block : {0, 1, 2, 3, 6})
    std::memset(s.hot.base + s.hot_pages[static_cast<size_t>(block)] * s.hot.page_bytes, 0xff,
                static_cast<size_t>(s.hot.page_bytes));
  for (const size_t block : {0, 1, 2, 6}) s.pages[block] = s.hot_pages[block] = -1;
  EXPECT_EQ(s.attend(GetParam().kernel, 150, 31, 0), before);
}

TEST_P(CodedPrompt, WhatIsNotFiniteSpoilsWhoSeesIt) {
  const CodedShape shape = {.group = 2, .tokens = 100};
  for (const bool value : {false, true}) {
    CodedSequence s(*GetParam().ops, shape, 13);
    const uint16_t nan = 0x7e00;
    const int64_t at = value ? int64_t{shape.k_dim} * kPageTokens + 5 * shape.v_dim + 7
                             : int64_t{7} * kPageTokens + 5;
    std::memcpy(s.hot.base + s.hot_pages[1] * s.hot.page_bytes + 2 * at, &nan, 2);
    s.encode(*GetParam().ops, 1);
    for (const float x : s.attend(GetParam().kernel, 99, 1, 0)) EXPECT_TRUE(std::isnan(x));
  }
}

TEST(CodedPrompts, RowsOfTheFirstTwoBlocksAreThoseOfNumbers) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (!isa_available(isa)) continue;
    const CodedShape shape = {.group = 2, .tokens = 100};
    CodedSequence s(ops_for(isa), shape, 15, 1);
    const std::vector<float> out =
        s.attend(coded_ops_for(isa).attend_prompt, 0, kFirstToSeeCodes, 0);
    std::vector<float> expected;
    AttendArgs args = s.args(0, kFirstToSeeCodes, 0, expected);
    args.pages = s.hot_pages.data();
    ops_for(isa).attend_prompt(s.hot, args);
    EXPECT_EQ(out, expected) << isa_name(isa);
  }
}

// --- What codes lose, of the kernels of this machine: they give the same bits on every ISA.

struct Loss {
  double error = 0;    // Mean of |x - x^|^2, of unit vectors.
  double gain = 0;     // Mean of <x, x^>.
  double product = 0;  // Dimension times the mean of <y, x - x^>^2 of unit vectors y.
};

// Coded and read again: of keys, whose page mean is taken off, or of values.
Loss loss_of(int32_t dim, int32_t k_bits, int32_t v_bits, bool keys, int32_t pages,
             const std::function<std::vector<float>(std::mt19937&)>& draw) {
  const Ops& ops = ops_for(detect_isa());
  const CodedShape shape = {
      .k_dim = dim, .v_dim = dim, .k_bits = k_bits, .v_bits = v_bits, .tokens = kPageTokens};
  CodedSequence s(ops, shape, 1);
  std::mt19937 random(17);
  Loss loss;
  for (int32_t page = 0; page < pages; ++page) {
    std::vector<std::vector<float>> turned;
    for (int32_t t = 0; t < kPageTokens; ++t) {
      std::vector<float> x = draw(random);
      double squares = 0;
      for (const float v : x) squares += double{v} * v;
      for (float& v : x) v = static_cast<float>(v / std::sqrt(squares));
      ops.store_keys(s.hot, 0, t, 0, 1, x.data());
      ops.store_values(s.hot, 0, t, 0, 1, x.data());
      coded_ops_for(ops.isa).rotate(s.coded.k_rotation, /*back=*/false, 1, x.data());
      turned.push_back(std::move(x));
    }
    s.encode(ops, 0);
    for (int32_t t = 0; t < kPageTokens; ++t) {
      const std::vector<float> y = random_unit(random, dim);
      double error = 0, gain = 0, product = 0;
      for (int32_t i = 0; i < dim; ++i) {
        const double x = turned[static_cast<size_t>(t)][static_cast<size_t>(i)];
        const double read =
            keys ? key_of(s.coded, s.head(0, 0), t, i) : value_of(s.coded, s.head(0, 0), t, i);
        error += (x - read) * (x - read);
        gain += x * read;
        product += (x - read) * y[static_cast<size_t>(i)];
      }
      loss.error += error;
      loss.gain += gain;
      loss.product += product * product * dim;
    }
  }
  const double count = pages * kPageTokens;
  return {loss.error / count, loss.gain / count, loss.product / count};
}

// The quantiser alone, at the scale of the vector's own norm, beside what another program measured
// of Lloyd-Max quantisers on turned unit vectors: each within 2 %.
TEST(Codes, RotationAndQuantiserLoseWhatOthersMeasured) {
  struct Row {
    int32_t dim;
    double three, four;
  };
  constexpr std::array<Row, 7> kRows = {{{64, .03347, .00913},
                                         {80, .03367, .00927},
                                         {96, .03380, .00924},
                                         {128, .03406, .00938},
                                         {192, .03420, .00938},
                                         {256, .03430, .00942},
                                         {576, .03447, .00948}}};
  const Ops& ops = ops_for(detect_isa());
  std::mt19937 random(3);
  for (const Row& row : kRows) {
    const HeadRotation rotation(row.dim);
    double error[2] = {};
    const int32_t count = 400'000 / row.dim;
    for (int32_t n = 0; n < count; ++n) {
      std::vector<float> x = random_unit(random, row.dim);
      coded_ops_for(ops.isa).rotate(rotation.view(), false, 1, x.data());
      for (const int32_t bits : {3, 4})
        for (const float v : x) {
          const double u = v * std::sqrt(static_cast<double>(row.dim));
          const std::span<const float> thresholds = bits == 4
                                                        ? std::span<const float>(kThresholds4)
                                                        : std::span<const float>(kThresholds3);
          const auto level =
              std::ranges::count_if(thresholds, [u](float t) { return std::abs(u) > t; });
          const auto levels = std::ssize(thresholds) + 1;
          const auto code = static_cast<int32_t>(u < 0 ? levels - 1 - level : levels + level);
          const double d = u - code_value(bits, code);
          error[bits - 3] += d * d / row.dim;
        }
    }
    EXPECT_NEAR(error[0] / count / row.three, 1, 0.02) << row.dim;
    EXPECT_NEAR(error[1] / count / row.four, 1, 0.02) << row.dim;
  }
}

TEST(Codes, SearchLosesLessAndKeysAreUnbiased) {
  const auto normal = [](std::mt19937& random) { return random_unit(random, 128); };
  const Loss four = loss_of(128, 4, 4, false, 100, normal);
  EXPECT_NEAR(four.error, .00784, .00784 * .02);
  const Loss three = loss_of(128, 4, 3, false, 100, normal);
  EXPECT_NEAR(three.error, .0316, .0316 * .02);
  // Of random keys a page's mean takes 1/32 of the energy, and its own bytes cost little.
  const Loss key = loss_of(128, 4, 4, true, 100, normal);
  EXPECT_LE(key.error, .0080);
  EXPECT_NEAR(key.gain, 1, .0005);
  EXPECT_LE(key.product, .0080 * 1.03);
  EXPECT_LE(loss_of(128, 8, 8, true, 30, normal).error, 1e-4);
  EXPECT_LE(loss_of(128, 8, 8, false, 30, normal).error, 1e-4);
}

// Vectors that are anything but normally distributed.
TEST(Codes, StructureIsTurnedAway) {
  const int32_t dim = 128;
  const auto at = [](std::mt19937& random) { return static_cast<size_t>(random() % 128); };
  const auto sparse = [&](int32_t count) {
    return [&at, count](std::mt19937& random) {
      std::vector<float> x(128, 0.0f);
      for (int32_t i = 0; i < count; ++i)
        x[at(random)] += (random() % 2 == 0 ? -1.0f : 1.0f) * static_cast<float>(random() % 97 + 1);
      x[0] += 1e-3f;
      return x;
    };
  };
  const auto constant = [](std::mt19937&) { return std::vector<float>(128, 1.0f); };
  const auto outliers = [](std::mt19937& random) {
    std::vector<float> x = random_unit(random, 128);
    for (size_t i = 0; i < 4; ++i) x[i * 31] *= 20;
    return x;
  };
  EXPECT_LE(loss_of(dim, 4, 4, false, 1, constant).error, .0102);
  for (const int32_t count : {1, 2, 4, 8})
    EXPECT_LE(loss_of(dim, 4, 4, false, 20, sparse(count)).error, .0102) << count;
  EXPECT_LE(loss_of(dim, 4, 4, false, 20, outliers).error, .0102);
}

// Keys that have much in common, as those of layers with large biases: what is lost does not grow
// with it, because a page's mean is kept apart.
TEST(Codes, WhatKeysHaveInCommonCostsNothing) {
  std::mt19937 seed(5);
  std::vector<float> common = random_unit(seed, 128);
  const auto draw = [&common](std::mt19937& random) {
    std::vector<float> x = random_unit(random, 128);
    for (size_t i = 0; i < x.size(); ++i) x[i] += 20 * common[i];
    return x;
  };
  // Of vectors of length 20, of which 1 is their own.
  const Loss loss = loss_of(128, 4, 4, true, 50, draw);
  EXPECT_LE(loss.error * 20 * 20, .0085);
}

// Keys among which each query has a needle, that draws as much attention as all others together.
class Haystack {
 public:
  static constexpr int32_t kDim = 128, kTokens = 32'768, kQueries = 100;

  Haystack() : ops_(ops_for(detect_isa())), s_(ops_, kShape, 19) {
    const std::vector<float> zeros(kDim, 0.0f);
    for (int32_t j = 0; j < kTokens; ++j) store_value(j, zeros);
    std::mt19937 random(23);
    for (int32_t n = 0; n < kQueries; ++n) {
      std::vector<float> q = random_unit(random, kDim), key = random_unit(random, kDim);
      const float root = std::sqrt(static_cast<float>(kDim));
      const float score = std::log(static_cast<float>(kTokens)) + kSpread * kSpread / 2;
      for (size_t i = 0; i < key.size(); ++i) key[i] = key[i] * root + q[i] * score / kSpread;
      for (float& x : q) x *= kSpread * root;
      places_.push_back(static_cast<int32_t>(random()) & (kTokens - 1));
      ops_.store_keys(s_.hot, hot_page(places_.back()), places_.back() % kPageTokens, 0, 1,
                      key.data());
      queries_.push_back(std::move(q));
    }
    for (int32_t block = 0; block < kTokens / kPageTokens; ++block) s_.encode(ops_, block);
  }

  // How many needles still have the highest score.
  int32_t found() {
    std::vector<float> keys(size_t{kTokens} * kDim);
    for (int32_t j = 0; j < kTokens; ++j)
      for (int32_t i = 0; i < kDim; ++i)
        keys[static_cast<size_t>(j * kDim + i)] =
            static_cast<float>(key_of(s_.coded, s_.head(j / kPageTokens, 0), j % kPageTokens, i));
    int32_t found = 0;
    for (size_t n = 0; n < queries_.size(); ++n) {
      std::vector<float> q = queries_[n];
      coded_ops_for(ops_.isa).rotate(s_.coded.k_rotation, /*back=*/false, 1, q.data());
      const auto score = [&](int32_t j) {
        const auto key = keys.begin() + int64_t{j} * kDim;
        return std::inner_product(key, key + kDim, q.begin(), 0.0f);
      };
      const float needle = score(places_[n]);
      int32_t j = 0;
      while (j < kTokens && (j == places_[n] || score(j) < needle)) ++j;
      found += j == kTokens ? 1 : 0;
    }
    return found;
  }

  // What a query's needle draws of all attention: its value is 1, all others are 0.
  float weight(size_t n) {
    store_value(places_[n], std::vector<float>(kDim, 1.0f));
    s_.encode(ops_, places_[n] / kPageTokens);
    std::ranges::copy(queries_[n], s_.q.end() - kDim);
    const std::vector<float> out = s_.attend(ops_, kTokens, 1, 0);
    const float seen = std::accumulate(out.begin(), out.end(), 0.0f) / kDim;
    store_value(places_[n], std::vector<float>(kDim, 0.0f));
    s_.encode(ops_, places_[n] / kPageTokens);
    return seen;
  }

 private:
  // One token more, whose own block is not codes.
  static constexpr CodedShape kShape = {.k_dim = kDim, .v_dim = kDim, .tokens = kTokens + 1};
  static constexpr float kSpread = 1.5f;  // Standard deviation of scores.

  int32_t hot_page(int32_t j) const { return s_.hot_pages[static_cast<size_t>(j / kPageTokens)]; }
  void store_value(int32_t j, const std::vector<float>& value) {
    ops_.store_values(s_.hot, hot_page(j), j % kPageTokens, 0, 1, value.data());
  }

  const Ops& ops_;
  CodedSequence s_;
  std::vector<std::vector<float>> queries_;
  std::vector<int32_t> places_;
};

TEST(Codes, ANeedleIsFoundAmongManyKeys) {
  Haystack haystack;
  EXPECT_GE(haystack.found(), Haystack::kQueries - 1);
  double sum = 0;
  for (size_t n = 0; n < 20; ++n) sum += haystack.weight(n);
  EXPECT_NEAR(sum / 20, 0.5, 0.05);
}

}  // namespace
}  // namespace weir::kernels
