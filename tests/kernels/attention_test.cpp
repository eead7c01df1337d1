// Attention and store_kv of every ISA against the formula in double, and against themselves: what a
// row gets must not depend on the rows beside it, on page numbers, or on bytes it does not see.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "isas.h"
#include "kernels/isa.h"

namespace weir::kernels {
namespace {

struct Case {
  int32_t kv_heads = 1;
  int32_t group = 1;
  int32_t k_dim = 64;
  int32_t v_dim = 64;
  int32_t tokens = 100;
  int32_t window = 0;
  bool chunks = false;
  int32_t first_key = 0;
  float softcap = 0;
  bool sinks = false;
  FloatType type = FloatType::kF16;
  // Values are the first v_dim numbers of their keys, in pages of both, or of keys alone.
  bool same_values = false;
  bool values_in_keys = false;
  // Each key lies somewhere (AttendArgs::keys). REQUIRES: one KV head, values in keys.
  bool anywhere = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "kv_heads " << c.kv_heads << " group " << c.group << " k_dim " << c.k_dim
             << " v_dim " << c.v_dim << " tokens " << c.tokens
             << (c.chunks ? " chunks " : " window ") << c.window << " first key "
             << c.first_key << " softcap " << c.softcap
             << " sinks " << c.sinks << " f" << (c.type == FloatType::kF32 ? 32 : 16)
             << (c.values_in_keys ? " in keys" : "") << (c.anywhere ? " anywhere" : "");
}

uint8_t* aligned(std::vector<uint8_t>& bytes) {
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  return bytes.data() + (64 - at % 64) % 64;
}

// One sequence: its queries, its keys and values in pages (in random order, all other bytes NaN),
// and the same keys and values, as rounded, in double.
// One token's keys and values of all heads.
void store_kv(const Ops& ops, const KvPages& kv, int32_t page, int32_t slot, const float* k,
              const float* v) {
  ops.store_keys(kv, page, slot, 0, kv.kv_heads, k);
  if (!kv.values_in_keys) ops.store_values(kv, page, slot, 0, kv.kv_heads, v);
}

class Sequence {
 public:
  Sequence(const Ops& ops, const Case& c, uint32_t seed, bool prompt = false)
      : ops_(ops), c_(c), prompt_(prompt), random_(seed) {
    const int32_t page_count = (c.tokens + kPageTokens - 1) / kPageTokens;
    const int64_t element = c.type == FloatType::kF32 ? 4 : 2;
    kv_.values_in_keys = c.values_in_keys;
    kv_.head_bytes = (int64_t{c.k_dim} + (c.values_in_keys ? 0 : c.v_dim)) * kPageTokens * element;
    kv_.page_bytes = kv_.head_bytes * c.kv_heads;
    kv_.kv_heads = c.kv_heads;
    kv_.k_dim = c.k_dim;
    kv_.v_dim = c.v_dim;
    kv_.type = c.type;
    pages_.resize(static_cast<size_t>(page_count));
    std::iota(pages_.begin(), pages_.end(), 3);
    std::shuffle(pages_.begin(), pages_.end(), random_);
    memory_.assign(static_cast<size_t>(kv_.page_bytes * (page_count + 6)) + 64, 0xff);  // NaN.
    kv_.base = aligned(memory_);
    scratch_.assign(kScratchBytes + 64, 0xff);
    fill();
  }

  // The outputs of rows [begin, end), [row][head][v_dim], each call with its own scratch garbage.
  std::vector<float> attend(int32_t begin, int32_t end) {
    const auto heads = static_cast<size_t>(c_.kv_heads * c_.group);
    const size_t row = heads * static_cast<size_t>(c_.v_dim);
    std::vector<float> out(static_cast<size_t>(end - begin) * row, 77.0f);
    std::fill(scratch_.begin(), scratch_.end(), static_cast<uint8_t>(random_()));
    for (int32_t h = 0; h < c_.kv_heads; ++h) {
      AttendArgs args;
      args.q_stride = static_cast<int64_t>(heads) * c_.k_dim;
      args.q = q_.data() + begin * args.q_stride + int64_t{h} * c_.group * c_.k_dim;
      args.out_stride = static_cast<int64_t>(row);
      args.out = out.data() + int64_t{h} * c_.group * c_.v_dim;
      args.rows = end - begin;
      args.first_position = begin;
      if (c_.anywhere) {
        args.keys = keys_.data();
      } else {
        args.pages = pages_.data();
      }
      args.kv_head = h;
      args.group = c_.group;
      args.scale = scale();
      args.softcap = c_.softcap;
      args.window = c_.window;
      args.chunks = c_.chunks;
      args.first_key = c_.first_key;
      args.sinks = c_.sinks ? sinks_.data() + h * c_.group : nullptr;
      args.scratch = aligned(scratch_);
      KvPages kv = kv_;
      if (c_.anywhere) kv.base = nullptr;
      (prompt_ ? ops_.attend_prompt : ops_.attend)(kv, args);
    }
    return out;
  }

  // The formula, for one row.
  std::vector<double> expected(int32_t position) const {
    std::vector<double> out;
    const int32_t begin = first_seen(position);
    for (int32_t h = 0; h < c_.kv_heads * c_.group; ++h) {
      std::vector<double> s;
      for (int32_t j = begin; j <= position; ++j) {
        double dot = 0;
        for (int32_t d = 0; d < c_.k_dim; ++d)
          dot += double{q_[index(position, c_.kv_heads * c_.group, h, c_.k_dim, d)]} *
                 k_[index(j, c_.kv_heads, h / c_.group, c_.k_dim, d)];
        dot *= scale();
        s.push_back(c_.softcap > 0 ? c_.softcap * std::tanh(dot / c_.softcap) : dot);
      }
      const double max = *std::max_element(s.begin(), s.end());
      double sum = c_.sinks ? std::exp(sinks_[static_cast<size_t>(h)] - max) : 0;
      for (double& v : s) sum += v = std::exp(v - max);
      for (int32_t d = 0; d < c_.v_dim; ++d) {
        double value = 0;
        for (int32_t j = begin; j <= position; ++j)
          value += s[static_cast<size_t>(j - begin)] *
                   v_[index(j, c_.kv_heads, h / c_.group, c_.v_dim, d)];
        out.push_back(value / sum);
      }
    }
    return out;
  }

  size_t row_floats() const { return static_cast<size_t>(c_.kv_heads * c_.group * c_.v_dim); }

  void scale_queries(float factor) {
    for (float& x : q_) x *= factor;
  }

  // Moves the sequence to other pages.
  void move_pages() {
    const std::vector<uint8_t> before = memory_;
    std::vector<int32_t> to = pages_;
    std::shuffle(to.begin(), to.end(), random_);
    const int64_t offset = kv_.base - memory_.data();
    for (size_t i = 0; i < to.size(); ++i)
      std::memcpy(kv_.base + to[i] * kv_.page_bytes,
                  before.data() + offset + pages_[i] * kv_.page_bytes,
                  static_cast<size_t>(kv_.page_bytes));
    pages_ = to;
  }

  // Pages that no row from `position` on sees have another number, where no memory is.
  void forget_pages(int32_t position) {
    std::fill_n(pages_.begin(), first_seen(position) / kPageTokens, 1 << 30);
  }

  // Overwrites what a row at `position` does not see with NaN.
  void forget_unseen(int32_t position) {
    const std::vector<float> k(static_cast<size_t>(c_.kv_heads * c_.k_dim), NAN);
    const std::vector<float> v(static_cast<size_t>(c_.kv_heads * c_.v_dim), NAN);
    for (int32_t j = 0; j < c_.tokens; ++j)
      if (j > position || j < first_seen(position)) store(j, k.data(), v.data());
  }

  // Of the row at `position`.
  int32_t first_seen(int32_t position) const {
    if (c_.window == 0) return c_.first_key;
    const int32_t windowed =
        c_.chunks ? position / c_.window * c_.window : std::max(0, position - c_.window + 1);
    return std::max(windowed, c_.first_key);
  }

 private:
  static size_t index(int32_t token, int32_t heads, int32_t head, int32_t dims, int32_t d) {
    return static_cast<size_t>((int64_t{token} * heads + head) * dims + d);
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(c_.k_dim)); }

  // Key after key in any order, with other bytes between them.
  void place_keys() {
    const int64_t element = c_.type == FloatType::kF32 ? 4 : 2;
    const int64_t stride = (c_.k_dim + 3) * element;
    key_memory_.assign(static_cast<size_t>(stride * c_.tokens) + 64, 0xff);
    for (int32_t j = 0; j < c_.tokens; ++j) keys_.push_back(aligned(key_memory_) + j * stride);
    std::shuffle(keys_.begin(), keys_.end(), random_);
  }

  void store(int32_t j, const float* k, const float* v) {
    if (!c_.anywhere) {
      store_kv(ops_, kv_, pages_[static_cast<size_t>(j / kPageTokens)], j % kPageTokens, k, v);
      return;
    }
    auto* to = static_cast<uint8_t*>(const_cast<void*>(keys_[static_cast<size_t>(j)]));
    for (int32_t d = 0; d < c_.k_dim; ++d) {
      const uint16_t half = float_to_half(k[d]);
      if (c_.type == FloatType::kF32) {
        std::memcpy(to + d * 4, k + d, 4);
      } else {
        std::memcpy(to + d * 2, &half, 2);
      }
    }
  }

  void fill() {
    std::normal_distribution<float> value(0, 1);
    const auto draw = [&](std::vector<float>& x, int64_t n, float factor) {
      x.resize(static_cast<size_t>(n));
      for (float& v : x) v = factor * value(random_);
    };
    draw(q_, int64_t{c_.tokens} * c_.kv_heads * c_.group * c_.k_dim, 2);
    draw(k_, int64_t{c_.tokens} * c_.kv_heads * c_.k_dim, 1);
    draw(v_, int64_t{c_.tokens} * c_.kv_heads * c_.v_dim, 1);
    draw(sinks_, c_.kv_heads * c_.group, 2);
    if (c_.same_values || c_.values_in_keys)
      for (int32_t j = 0; j < c_.tokens; ++j)
        for (int32_t h = 0; h < c_.kv_heads; ++h)
          std::copy_n(k_.data() + index(j, c_.kv_heads, h, c_.k_dim, 0), c_.v_dim,
                      v_.data() + index(j, c_.kv_heads, h, c_.v_dim, 0));
    if (c_.anywhere) place_keys();
    for (int32_t j = 0; j < c_.tokens; ++j)
      store(j, k_.data() + index(j, c_.kv_heads, 0, c_.k_dim, 0),
            v_.data() + index(j, c_.kv_heads, 0, c_.v_dim, 0));
    if (c_.type == FloatType::kF32) return;
    for (std::vector<float>* x : {&k_, &v_})
      for (float& v : *x) v = half_to_float(float_to_half(v));
  }

  const Ops& ops_;
  Case c_;
  bool prompt_;  // attend_prompt
  std::mt19937 random_;
  KvPages kv_;
  std::vector<uint8_t> memory_, scratch_, key_memory_;
  std::vector<const void*> keys_;
  std::vector<int32_t> pages_;
  std::vector<float> q_, k_, v_, sinks_;
};

// Rows [begin, end), as one call, against the formula.
void expect_formula(Sequence& sequence, int32_t begin, int32_t end, double tolerance) {
  const std::vector<float> got = sequence.attend(begin, end);
  const size_t row = sequence.row_floats();
  for (int32_t p = begin; p < end; ++p) {
    const std::vector<double> want = sequence.expected(p);
    for (size_t i = 0; i < row; ++i)
      ASSERT_NEAR(got[static_cast<size_t>(p - begin) * row + i], want[i],
                  tolerance * (1 + std::abs(want[i])))
          << "position " << p << " element " << i;
  }
}

bool same_bits(const float* a, const float* b, size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

const std::vector<Case> kCases = {
    {.tokens = 1},
    {.tokens = 31},
    {.kv_heads = 3, .group = 3, .tokens = 300},
    {.kv_heads = 2, .group = 2, .k_dim = 20, .v_dim = 24, .tokens = 270},
    {.group = 4, .k_dim = 80, .v_dim = 80, .tokens = 130},
    {.group = 5, .k_dim = 96, .v_dim = 96, .tokens = 70, .window = 16},
    {.group = 6, .k_dim = 24, .v_dim = 20, .tokens = 600, .window = 100},
    {.group = 7, .k_dim = 128, .v_dim = 128, .tokens = 290, .softcap = 5},
    {.kv_heads = 2, .group = 8, .tokens = 310, .sinks = true},
    {.group = 8, .k_dim = 128, .v_dim = 128, .tokens = 520, .window = 300, .type = FloatType::kF32},
    {.group = 2, .k_dim = 33, .v_dim = 7, .tokens = 290, .softcap = 30, .type = FloatType::kF32},
    {.kv_heads = 2, .group = 1, .k_dim = 1, .v_dim = 1, .tokens = 257, .sinks = true},
    {.group = 3, .tokens = 700, .window = 1},
    {.group = 3, .tokens = 700, .window = 257, .softcap = 20, .sinks = true},
    {.group = 3, .tokens = 700, .window = 128, .chunks = true},
    {.kv_heads = 2, .group = 5, .k_dim = 40, .tokens = 330, .window = 90, .chunks = true},
    {.tokens = 40, .window = 7, .chunks = true, .type = FloatType::kF32},
    {.group = 12, .k_dim = 40, .v_dim = 48, .tokens = 260},
    {.group = 17, .k_dim = 192, .v_dim = 128, .tokens = 261, .window = 130, .sinks = true},
    {.kv_heads = 2, .group = 3, .k_dim = 64, .v_dim = 96, .tokens = 530, .type = FloatType::kF32},
    {.group = 4, .k_dim = 40, .v_dim = 32, .tokens = 300, .values_in_keys = true},
    {.k_dim = 64, .v_dim = 64, .tokens = 70, .sinks = true, .values_in_keys = true},
    {.kv_heads = 2,
     .group = 5,
     .k_dim = 33,
     .v_dim = 19,
     .tokens = 280,
     .window = 100,
     .type = FloatType::kF32,
     .values_in_keys = true},
    {.group = 9, .k_dim = 576, .v_dim = 512, .tokens = 45, .values_in_keys = true},
    {.group = 4, .k_dim = 40, .v_dim = 32, .tokens = 300, .values_in_keys = true, .anywhere = true},
    {.group = 5,
     .k_dim = 33,
     .v_dim = 19,
     .tokens = 280,
     .window = 100,
     .sinks = true,
     .type = FloatType::kF32,
     .values_in_keys = true,
     .anywhere = true},
    {.group = 9,
     .k_dim = 576,
     .v_dim = 512,
     .tokens = 45,
     .values_in_keys = true,
     .anywhere = true},
};

// `attend`, or `attend_prompt` where it is another function.
struct Way {
  const Ops* ops;
  bool prompt;
  bool emulated = false;  // Tiles in memory.

  // Rounding to bf16 dwarfs the rest.
  double tolerance(double rest) const { return prompt ? 2e-2 : rest; }
};

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const Ops* ops : available_ops()) all.push_back({ops, false});
  std::vector<const Ops*> tables = available_ops();
  if (isa_available(Isa::kAmx)) tables.push_back(&ops_for(Isa::kAmx));
  for (const Ops* ops : tables)
    if (ops->attend_prompt != ops->attend) all.push_back({ops, true});
  if (all.back().prompt) {  // The processor has products of bf16.
    static const Ops emulated = [] {
      Ops ops = ops_for(Isa::kAvx512);
      amx::fill_attention_emulated(ops);
      return ops;
    }();
    all.push_back({&emulated, true, true});
  }
  return all;
}

class Attention : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Isas, Attention, testing::ValuesIn(ways()), [](const auto& way) {
  return std::string(way.param.emulated ? "emulated" : isa_name(way.param.ops->isa)) +
         (way.param.prompt ? "_prompt" : "");
});

TEST_P(Attention, IsItsFormulaForEachRowAlone) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c);
    Sequence sequence(*GetParam().ops, c, 1, GetParam().prompt);
    for (int32_t p = 0; p < c.tokens; p += std::max(1, c.tokens / 9))
      expect_formula(sequence, p, p + 1, GetParam().tolerance(4e-6));
    expect_formula(sequence, c.tokens - 1, c.tokens, GetParam().tolerance(4e-6));
  }
}

TEST_P(Attention, GivesARowTheSameBitsInAnyChunk) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c);
    Sequence sequence(*GetParam().ops, c, 2, GetParam().prompt);
    const size_t row = sequence.row_floats();
    const std::vector<float> whole = sequence.attend(0, c.tokens);
    const auto of = [&](int32_t p) { return whole.data() + static_cast<size_t>(p) * row; };
    for (int32_t p = 0; p < c.tokens; p += std::max(1, c.tokens / 40))
      ASSERT_TRUE(same_bits(sequence.attend(p, p + 1).data(), of(p), row)) << "row " << p;
    std::mt19937 random(7);
    for (int32_t begin = 0; begin < c.tokens;) {
      const int32_t end = std::min(c.tokens, begin + 1 + static_cast<int32_t>(random() % 90));
      const std::vector<float> part = sequence.attend(begin, end);
      ASSERT_TRUE(same_bits(part.data(), of(begin), part.size())) << begin << " to " << end;
      begin = end;
    }
  }
}

TEST_P(Attention, IgnoresWhereThePagesAre) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c);
    Sequence sequence(*GetParam().ops, c, 3, GetParam().prompt);
    const std::vector<float> whole = sequence.attend(0, c.tokens);
    const std::vector<float> last = sequence.attend(c.tokens - 1, c.tokens);
    sequence.move_pages();
    const std::vector<float> moved = sequence.attend(0, c.tokens);
    EXPECT_TRUE(same_bits(whole.data(), moved.data(), whole.size()));
    const std::vector<float> moved_last = sequence.attend(c.tokens - 1, c.tokens);
    EXPECT_TRUE(same_bits(last.data(), moved_last.data(), last.size()));
  }
}

TEST_P(Attention, NeverTouchesWhatARowDoesNotSee) {
  for (const Case& c : kCases) {
    if (GetParam().prompt && c.window > 0) continue;  // ops.h: a token that is not finite.
    SCOPED_TRACE(testing::Message() << c);
    Sequence sequence(*GetParam().ops, c, 4, GetParam().prompt);
    const size_t row = sequence.row_floats();
    const int32_t p = c.tokens * 2 / 3;
    const int32_t from = std::max(0, p - 5);
    const std::vector<float> before = sequence.attend(from, p + 1);
    sequence.forget_unseen(p);
    const std::vector<float> alone = sequence.attend(p, p + 1);
    const std::vector<float> chunk = sequence.attend(from, p + 1);
    const float* want = before.data() + static_cast<size_t>(p - from) * row;
    EXPECT_TRUE(same_bits(alone.data(), want, row));
    EXPECT_TRUE(same_bits(chunk.data() + static_cast<size_t>(p - from) * row, want, row));
    for (const float v : alone) ASSERT_FALSE(std::isnan(v));
  }
}

// What windows have left may be another's by now, or nothing.
TEST_P(Attention, LooksUpNoPageBeforeTheFirstOneSeen) {
  for (const Case& c : kCases) {
    if (c.window == 0) continue;
    SCOPED_TRACE(testing::Message() << c);
    for (const int32_t rows : {1, 3, 40}) {
      Sequence sequence(*GetParam().ops, c, 10, GetParam().prompt);
      const int32_t begin = std::max(0, c.tokens - rows);
      const std::vector<float> before = sequence.attend(begin, c.tokens);
      sequence.forget_pages(begin);
      const std::vector<float> after = sequence.attend(begin, c.tokens);
      EXPECT_TRUE(same_bits(before.data(), after.data(), before.size())) << rows << " rows";
    }
  }
}

// The same rows by themselves and together, of keys that begin anywhere; what lies before them may be
// anything, and its pages nowhere.
TEST_P(Attention, SeesNoKeyBeforeTheFirstOne) {
  for (Case c : kCases) {
    if (c.tokens < 40) continue;
    for (const int32_t first : {1, c.tokens / 3, c.tokens - 20}) {
      c.first_key = first;
      SCOPED_TRACE(testing::Message() << c);
      Sequence sequence(*GetParam().ops, c, 14, GetParam().prompt);
      const int32_t begin = c.tokens - 20;
      // Twice as much: the first rows see a few keys only, whose roundings do not cancel out.
      expect_formula(sequence, begin, c.tokens, 2 * GetParam().tolerance(1e-5));
      const std::vector<float> together = sequence.attend(begin, c.tokens);
      if (!c.anywhere) sequence.forget_pages(begin);
      const std::vector<float> last = sequence.attend(c.tokens - 1, c.tokens);
      EXPECT_TRUE(same_bits(together.data() + 19 * sequence.row_floats(), last.data(), last.size()));
    }
  }
}

// Rows before and behind the NaN ones of a chunk stay clean.
TEST_P(Attention, KeepsABrokenTokenFromRowsThatDoNotSeeIt) {
  if (GetParam().prompt) GTEST_SKIP() << "attend_prompt does not promise it";
  const Case c{.group = 3, .tokens = 40};
  Sequence sequence(*GetParam().ops, c, 5, GetParam().prompt);
  const size_t row = sequence.row_floats();
  const std::vector<float> before = sequence.attend(0, 40);
  sequence.forget_unseen(19);
  const std::vector<float> after = sequence.attend(0, 40);
  EXPECT_TRUE(same_bits(before.data(), after.data(), row * 20));
  EXPECT_TRUE(std::isnan(after[row * 20]));
}

TEST_P(Attention, IsItsFormulaOverFiveThousandTokens) {
  const Case c{.kv_heads = 1, .group = 3, .tokens = 5000};
  Sequence sequence(*GetParam().ops, c, 6, GetParam().prompt);
  expect_formula(sequence, 4999, 5000, GetParam().tolerance(4e-6));
  if (GetParam().ops->isa == Isa::kScalar) return;  // It takes its time, and has no second way.
  const std::vector<float> chunk = sequence.attend(4900, 5000);
  const std::vector<float> last = sequence.attend(4999, 5000);
  EXPECT_TRUE(same_bits(chunk.data() + 99 * sequence.row_floats(), last.data(), last.size()));
}

TEST_P(Attention, HasTheSameBitsWhetherValuesAreInKeysOrBesideThemAndWhereverKeysLie) {
  std::mt19937 random(13);
  const auto up_to = [&](uint32_t n) { return static_cast<int32_t>(1 + random() % n); };
  for (int round = 0; round < 24; ++round) {
    Case beside{.kv_heads = up_to(2), .group = up_to(20), .k_dim = up_to(90), .tokens = up_to(300)};
    beside.v_dim = up_to(static_cast<uint32_t>(beside.k_dim));
    beside.sinks = round % 3 == 0;
    beside.window = round % 4 == 0 ? up_to(200) : 0;
    beside.type = round % 2 == 0 ? FloatType::kF16 : FloatType::kF32;
    beside.same_values = true;
    Case inside = beside;
    inside.values_in_keys = true;
    inside.anywhere = beside.kv_heads == 1 && round % 3 != 1;
    SCOPED_TRACE(testing::Message() << inside);
    // Where values are in keys, prompts have no other arithmetic.
    const auto seed = static_cast<uint32_t>(round);
    Sequence a(*GetParam().ops, beside, seed), b(*GetParam().ops, inside, seed, GetParam().prompt);
    const int32_t begin = std::max(0, beside.tokens - up_to(50));
    const std::vector<float> want = a.attend(begin, beside.tokens);
    const std::vector<float> got = b.attend(begin, beside.tokens);
    ASSERT_TRUE(same_bits(got.data(), want.data(), want.size()));
  }
}

// The most heads that share one latent, and the longest key that may hold its value.
TEST_P(Attention, HandlesTheLargestKeysWithValues) {
  const Case c{.group = 128, .k_dim = 576, .v_dim = 512, .tokens = 40, .values_in_keys = true};
  Sequence latent(*GetParam().ops, c, 11, GetParam().prompt);
  expect_formula(latent, 38, 40, 1e-5);
  const Case largest{.group = 3,
                     .k_dim = kValuesInKeysMax,
                     .v_dim = kValuesInKeysMax,
                     .tokens = 290,
                     .values_in_keys = true};
  Sequence sequence(*GetParam().ops, largest, 12, GetParam().prompt);
  expect_formula(sequence, 289, 290, 1e-5);
}

// Sizes for which no tile of queries fits the scratch memory.
TEST_P(Attention, HandlesHeadsTooLargeForTiles) {
  const Case c{.group = 9, .k_dim = 2048, .v_dim = 2080, .tokens = 40};
  Sequence sequence(*GetParam().ops, c, 7, GetParam().prompt);
  expect_formula(sequence, 37, 40, 2e-5);  // Sums of 2,048 products.
}

TEST_P(Attention, SurvivesScoresThousandsApart) {
  const Case c{.group = 2, .tokens = 300};
  Sequence sequence(*GetParam().ops, c, 8, GetParam().prompt);
  sequence.scale_queries(300);
  const std::vector<float> got = sequence.attend(0, c.tokens);
  const size_t row = sequence.row_floats();
  for (int32_t p = 0; p < c.tokens; p += 13) {
    const std::vector<double> want = sequence.expected(p);
    for (size_t i = 0; i < row && GetParam().prompt; ++i)  // To 10: any key may win.
      ASSERT_LT(std::abs(got[static_cast<size_t>(p) * row + i]), 6);
    for (size_t i = 0; i < row && !GetParam().prompt; ++i)  // A score of 3,000 is known to 2e-4.
      ASSERT_NEAR(got[static_cast<size_t>(p) * row + i], want[i], 2e-3) << "position " << p;
  }
}

TEST_P(Attention, StoresAsRoundedAndOnlyItsSlot) {
  std::mt19937 random(9);
  for (const FloatType type : {FloatType::kF16, FloatType::kF32})
    for (const int32_t dims : {1, 7, 20, 64, 100}) {
      KvPages kv;
      const int32_t v_dim = dims + 3;
      const int64_t element = type == FloatType::kF32 ? 4 : 2;
      kv.kv_heads = 2;
      kv.k_dim = dims;
      kv.v_dim = v_dim;
      kv.type = type;
      kv.head_bytes = (int64_t{dims} + v_dim) * kPageTokens * element;
      kv.page_bytes = 2 * kv.head_bytes;
      std::vector<uint8_t> memory(static_cast<size_t>(kv.page_bytes * 3), 0xab);
      std::vector<uint8_t> want = memory;
      kv.base = memory.data();
      std::normal_distribution<float> value(0, 3);
      std::vector<float> k(static_cast<size_t>(2 * dims)), v(static_cast<size_t>(2 * v_dim));
      for (float& x : k) x = value(random);
      for (float& x : v) x = value(random) * 1e-5f;  // Halves that are not normal among them.
      const int32_t slot = static_cast<int32_t>(random() % kPageTokens);
      // Head by head, the second first.
      for (const int32_t h : {1, 0}) {
        GetParam().ops->store_keys(kv, 1, slot, h, 1, k.data() + h * dims);
        GetParam().ops->store_values(kv, 1, slot, h, 1, v.data() + h * v_dim);
      }
      const auto put = [&](int64_t at, float x) {
        const uint16_t half = float_to_half(x);
        uint8_t* to = want.data() + kv.page_bytes + at;
        if (type == FloatType::kF32) {
          std::memcpy(to, &x, 4);
        } else {
          std::memcpy(to, &half, 2);
        }
      };
      for (int32_t h = 0; h < 2; ++h) {
        for (int32_t d = 0; d < dims; ++d)
          put(h * kv.head_bytes + (d * kPageTokens + slot) * element,
              k[static_cast<size_t>(h * dims + d)]);
        for (int32_t d = 0; d < v_dim; ++d)
          put(h * kv.head_bytes + (dims * kPageTokens + slot * v_dim + d) * element,
              v[static_cast<size_t>(h * v_dim + d)]);
      }
      EXPECT_EQ(memory, want) << "dims " << dims;
    }
}

}  // namespace
}  // namespace weir::kernels
