// What ops.h REQUIRES: arguments that keep it pass, and each single one that breaks it is named;
// the checked table calls through, and aborts before a kernel sees what it must not see.
#include "kernels/requirements.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/checked_ops.h"
#include "kernels/cpu_ops.h"

namespace weir::kernels {
namespace {

using requirements::Broken;

alignas(64) std::array<uint8_t, 4096> memory;
alignas(64) std::array<float, 1024> floats;

QuantMatrix quant_matrix() {
  return {.n = 40,
          .k = 128,
          .group = 64,
          .bits = 4,
          .words = memory.data(),
          .scales = memory.data() + 64};
}
FloatMatrix float_matrix() {
  return {.n = 40, .k = 64, .type = FloatType::kBF16, .rows = memory.data() + 2};
}
Float8Matrix float8_matrix() {
  return {.n = 40, .k = 64, .scale_columns = 32, .numbers = memory.data(), .scales = floats.data()};
}
QuantRows quant_rows() {
  return {.k = 128,
          .group = 64,
          .q = reinterpret_cast<int8_t*>(memory.data()) + 32,
          .scale = floats.data(),
          .sum = floats.data() + 1};
}
Bf16Rows bf16_rows(int32_t k) {
  return {.k = k, .stride = k + 32, .x = reinterpret_cast<uint16_t*>(memory.data())};
}
GemmRange gemm_range() {
  return {.rows = 3, .begin = 16, .end = 40, .y = floats.data(), .y_stride = 24};
}
KvPages kv_pages() {
  return {.base = memory.data() + 2,
          .page_bytes = 2 * 32 * 20 * 2,
          .head_bytes = 32 * 20 * 2,
          .kv_heads = 2,
          .k_dim = 12,
          .v_dim = 8,
          .type = FloatType::kF16};
}
// Two rows, at positions 70 and 71, that see the keys from 39 on: pages 1 and 2.
AttendArgs attend_args() {
  static const int32_t pages[3] = {-1, 5, 0};
  return {.q = floats.data(),
          .q_stride = 36,
          .out = floats.data(),
          .out_stride = 24,
          .rows = 2,
          .first_position = 70,
          .pages = pages,
          .kv_head = 1,
          .group = 3,
          .window = 32,
          .scratch = memory.data()};
}
ConvStep conv_step() {
  return {.weights = floats.data(),
          .weight_stride = 8,
          .history = floats.data() + 100,
          .history_stride = 9,
          .taps = 2};
}
DeltaRun delta_run() {
  return {.state = floats.data(),
          .tokens = 2,
          .dk = 8,
          .dv = 4,
          .q = {floats.data() + 100, 8},
          .k = {floats.data() + 200, 8},
          .v = {floats.data() + 300, 8},
          .decay = {floats.data() + 320, 1},
          .beta = {floats.data() + 330, 1},
          .out = floats.data() + 340,
          .out_stride = 4};
}

DecayRun decay_run() {
  return {.state = floats.data(),
          .tokens = 2,
          .dk = 8,
          .dv = 4,
          .q = {floats.data() + 100, 8},
          .k = {floats.data() + 200, 8},
          .v = {floats.data() + 300, 8},
          .decay = {floats.data() + 320, 1},
          .gain = {floats.data() + 330, 1},
          .out = floats.data() + 340,
          .out_stride = 4};
}

SelectiveScan selective_scan() {
  return {.state = floats.data(),
          .rate = floats.data() + 100,
          .skip = floats.data() + 200,
          .tokens = 2,
          .channels = 20,
          .states = 3,
          .x = {floats.data() + 300, 20},
          .step = {floats.data() + 400, 20},
          .b = {floats.data() + 500, 6},
          .c = {floats.data() + 503, 6},
          .out = floats.data() + 600,
          .out_stride = 20};
}

// The requirement that holds no more after `change`; "" if all do.
template <class T, class Change>
std::string broken_by(Broken (*requirement)(const T&), T value, Change change) {
  EXPECT_EQ(requirement(value), nullptr);
  change(value);
  const Broken broken = requirement(value);
  return broken != nullptr ? broken : "";
}

// `change` breaks a requirement that names `word`.
#define EXPECT_BREAKS(requirement, valid, change, word)                          \
  EXPECT_NE(broken_by(requirement, valid, [](auto& v) { v.change; }).find(word), \
            std::string::npos)                                                   \
      << #change << " breaks: " << broken_by(requirement, valid, [](auto& v) { v.change; })

TEST(Requirements, NameWhatIsWrongWithAMatrix) {
  const auto quant = requirements::quant_matrix;
  EXPECT_BREAKS(quant, quant_matrix(), n = 0, "n >= 1");
  EXPECT_BREAKS(quant, quant_matrix(), k = 2 * kMaxLayerK, "kMaxLayerK");
  EXPECT_BREAKS(quant, quant_matrix(), group = 48, "is_group");
  EXPECT_BREAKS(quant, quant_matrix(), k = 96, "% w.group");
  EXPECT_BREAKS(quant, quant_matrix(), bits = 7, "bits");
  EXPECT_BREAKS(quant, quant_matrix(), mins = true, "mins");
  QuantMatrix of_table = quant_matrix(), sixteen = quant_matrix();
  of_table.grid = Grid::kIq4;
  EXPECT_BREAKS(quant, of_table, bits = 8, "grid");
  sixteen.group = 16;
  EXPECT_BREAKS(quant, sixteen, k = 48, "kPackStep");
  EXPECT_BREAKS(quant, quant_matrix(), words += 32, "words");
  EXPECT_BREAKS(quant, quant_matrix(), words = nullptr, "words");
  EXPECT_BREAKS(quant, quant_matrix(), scales += 32, "scales");
  const auto plain = requirements::float_matrix;
  EXPECT_BREAKS(plain, float_matrix(), k = kMaxLayerK + 1, "kMaxLayerK");
  EXPECT_BREAKS(plain, float_matrix(), rows = memory.data() + 1, "aligned");
  EXPECT_BREAKS(plain, float_matrix(), type = FloatType::kF32, "aligned");
  EXPECT_BREAKS(plain, float_matrix(), rows = nullptr, "rows");
  const auto eight = requirements::float8_matrix;
  EXPECT_EQ(eight(float8_matrix()), nullptr);
  EXPECT_BREAKS(eight, float8_matrix(), k = 80, "kPackStep");
  EXPECT_BREAKS(eight, float8_matrix(), scale_columns = 48, "kPackStep");
  EXPECT_BREAKS(eight, float8_matrix(), scale_columns = 128, "scale_columns <= ");
  EXPECT_BREAKS(eight, float8_matrix(), scale_columns = 0, "scale_columns");
  EXPECT_BREAKS(eight, float8_matrix(), numbers += 16, "numbers");
  EXPECT_BREAKS(eight, float8_matrix(), scales = nullptr, "scales");
}

TEST(Requirements, NameWhatIsWrongWithActivations) {
  const auto quant = requirements::quant_rows;
  EXPECT_BREAKS(quant, quant_rows(), k = 96, "% x.group");
  EXPECT_BREAKS(quant, quant_rows(), group = 48, "is_group");
  EXPECT_BREAKS(quant, quant_rows(), q += 16, "aligned");
  EXPECT_BREAKS(quant, quant_rows(), sum = nullptr, "sum");
  const auto bf16 = requirements::bf16_rows;
  EXPECT_BREAKS(bf16, bf16_rows(64), k = 0, "k >= ");
  EXPECT_BREAKS(bf16, bf16_rows(64), stride = 32, "stride >= ");
  EXPECT_BREAKS(bf16, bf16_rows(64), stride = 72, "stride % ");
  EXPECT_BREAKS(bf16, bf16_rows(64), x += 16, "aligned");
}

TEST(Requirements, NameWhatIsWrongWithARange) {
  const auto broken = [](auto change) {
    GemmRange range = gemm_range();
    change(range);
    const Broken found = requirements::gemm_range(range, 40);
    return std::string(found != nullptr ? found : "");
  };
  static const int32_t good[] = {7, 0, 7}, bad[] = {7, 0, -1};
  EXPECT_EQ(broken([](GemmRange&) {}), "");
  EXPECT_EQ(broken([](GemmRange& r) { r.index = good; }), "");
  EXPECT_EQ(broken([](GemmRange& r) { r.end = 32; }), "");
  EXPECT_EQ(broken([](GemmRange& r) { r.rows = 0, r.y = nullptr; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.index = bad; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.rows = -1; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.begin = 8; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.begin = -16; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.end = 39; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.end = 48; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.end = 0; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.y = nullptr; }), "");
  EXPECT_NE(broken([](GemmRange& r) { r.y_stride = 23; }), "");
}

TEST(Requirements, OfProductsSeeThatBothSidesFit) {
  const GemmRange range = gemm_range();
  void* const scratch = memory.data();
  const QuantMatrix q4 = quant_matrix();
  const FloatMatrix bf16 = float_matrix();
  FloatMatrix f32 = bf16, odd = bf16;
  f32.rows = memory.data();
  f32.type = FloatType::kF32;
  odd.k = 72;
  const Bf16Rows odd_rows = {.k = 72, .stride = 96, .x = bf16_rows(64).x};
  QuantRows longer = quant_rows(), finer = quant_rows();
  longer.k = 192;
  finer.group = 32;
  using namespace requirements;
  EXPECT_EQ(gemm_quant_int8(q4, quant_rows(), range, scratch), nullptr);
  EXPECT_STREQ(gemm_quant_int8(q4, longer, range, scratch), "x.k == w.k");
  EXPECT_STREQ(gemm_quant_int8(q4, finer, range, scratch), "x.group == w.group");
  EXPECT_NE(gemm_quant_int8(q4, quant_rows(), range, nullptr), nullptr);
  EXPECT_NE(gemm_quant_int8(q4, quant_rows(), range, memory.data() + 8), nullptr);
  EXPECT_EQ(gemm_quant_bf16(q4, bf16_rows(128), range, scratch), nullptr);
  EXPECT_STREQ(gemm_quant_bf16(q4, bf16_rows(64), range, scratch), "x.k == w.k");
  EXPECT_EQ(gemm_float_bf16(bf16, bf16_rows(64), range, scratch), nullptr);
  EXPECT_STREQ(gemm_float_bf16(bf16, bf16_rows(96), range, scratch), "x.k == w.k");
  EXPECT_NE(gemm_float_bf16(f32, bf16_rows(64), range, scratch), nullptr);
  EXPECT_EQ(gemm_float_bf16(odd, odd_rows, range, scratch), nullptr);
  const Float8Matrix f8 = float8_matrix();
  EXPECT_EQ(gemm_float8_bf16(f8, bf16_rows(64), range, scratch), nullptr);
  EXPECT_STREQ(gemm_float8_bf16(f8, bf16_rows(96), range, scratch), "x.k == w.k");
  EXPECT_EQ(gemm_float8_f32(f8, floats.data(), 64, range, scratch), nullptr);
  EXPECT_NE(gemm_float8_f32(f8, nullptr, 64, range, scratch), nullptr);
  EXPECT_NE(gemm_float8_f32(f8, floats.data(), 64, range, nullptr), nullptr);
  EXPECT_EQ(widen_float8_row(f8, 39, floats.data()), nullptr);
  EXPECT_NE(widen_float8_row(f8, 40, floats.data()), nullptr);
  EXPECT_EQ(gemm_quant_f32(q4, floats.data(), 128, range, scratch), nullptr);
  EXPECT_NE(gemm_quant_f32(q4, nullptr, 128, range, scratch), nullptr);
  EXPECT_EQ(gemm_float_f32(odd, floats.data(), 72, range, scratch), nullptr);
  EXPECT_NE(gemm_float_f32(odd, floats.data(), 72, range, nullptr), nullptr);
  const LowRank low = {.n = 40, .rank = 4, .blocks = memory.data()};
  EXPECT_EQ(add_low_rank(low, floats.data(), 4, range), nullptr);
  EXPECT_NE(add_low_rank(low, nullptr, 4, range), nullptr);
  EXPECT_NE(add_low_rank({.n = 40, .rank = 0, .blocks = memory.data()}, floats.data(), 4, range),
            nullptr);
  EXPECT_NE(add_low_rank({.n = 40, .rank = 4, .blocks = memory.data() + 8}, floats.data(), 4, range),
            nullptr);
  EXPECT_EQ(dequantise_row(q4, 39, floats.data()), nullptr);
  EXPECT_NE(dequantise_row(q4, 40, floats.data()), nullptr);
  EXPECT_NE(widen_row(bf16, -1, floats.data()), nullptr);
}

TEST(Requirements, OfConversionsSeeThatColumnsAreWholeGroupsWithinTheRow) {
  const float* const x = floats.data();
  using namespace requirements;
  EXPECT_EQ(quantise_rows(x, 128, 2, 64, quant_rows()), nullptr);
  EXPECT_STREQ(quantise_rows(x, 128, 2, 32, quant_rows()), "columns % out.group == 0");
  EXPECT_NE(quantise_rows(x, 128, 2, 192, quant_rows()), nullptr);
  EXPECT_NE(quantise_rows(nullptr, 128, 2, 64, quant_rows()), nullptr);
  EXPECT_EQ(round_rows(x, 128, 2, 32, bf16_rows(64)), nullptr);
  EXPECT_EQ(round_rows(x, 128, 2, 16, bf16_rows(64)), nullptr);
  EXPECT_NE(round_rows(x, 128, 2, 96, bf16_rows(64)), nullptr);
}

TEST(Requirements, OfRowsSeeThatTheyAreTheSameOrApart) {
  float* const x = floats.data();
  using namespace requirements;
  EXPECT_EQ(rms_norm(x, nullptr, 0, 8, x), nullptr);
  EXPECT_EQ(rms_norm(x, nullptr, 0, 8, x + 8), nullptr);
  EXPECT_NE(rms_norm(x, nullptr, 0, 8, x + 7), nullptr);
  EXPECT_NE(rms_norm(x + 7, nullptr, 0, 8, x), nullptr);
  EXPECT_NE(rms_norm(x, nullptr, 0, 0, x), nullptr);
  EXPECT_NE(layer_norm(x, nullptr, nullptr, -1, 8, x), nullptr);
  EXPECT_NE(add_scaled(x, 1, 8, x + 1), nullptr);
  EXPECT_NE(scale(1, 0, x), nullptr);
  EXPECT_NE(product(x, 8, x + 1), nullptr);
  EXPECT_NE(softcap(0, 8, x), nullptr);
  EXPECT_EQ(gated_act(x, x + 8, {}, 8, x), nullptr);
  EXPECT_NE(gated_act(x, x + 8, {}, 8, x + 9), nullptr);
  EXPECT_NE(act(Act::kSilu, -1, x), nullptr);
  EXPECT_NE(argmax(x, 0), nullptr);
  EXPECT_NE(log_sum_exp(nullptr, 8), nullptr);
  EXPECT_NE(softmax(x, 8, x + 4), nullptr);
  EXPECT_EQ(rope(x, 2, 8, 6, x, x, false), nullptr);
  EXPECT_NE(rope(x, 2, 8, 5, x, x, false), nullptr);
  EXPECT_NE(rope(x, 2, 8, 10, x, x, false), nullptr);
}

TEST(Requirements, NameWhatIsWrongWithPages) {
  const auto pages = requirements::kv_pages;
  EXPECT_BREAKS(pages, kv_pages(), type = FloatType::kBF16, "type");
  EXPECT_BREAKS(pages, kv_pages(), k_dim = 0, "k_dim");
  EXPECT_BREAKS(pages, kv_pages(), v_dim = 9, "head_bytes");
  EXPECT_BREAKS(pages, kv_pages(), kv_heads = 3, "page_bytes");
  EXPECT_BREAKS(pages, kv_pages(), base += 1, "aligned");
  KvPages latent = kv_pages();
  latent.values_in_keys = true;
  latent.k_dim = 20;
  EXPECT_BREAKS(pages, latent, v_dim = 21, "v_dim <= kv.k_dim");
  EXPECT_BREAKS(pages, latent, k_dim = kValuesInKeysMax + 1, "kValuesInKeysMax");
  using namespace requirements;
  const float* const x = floats.data();
  EXPECT_EQ(store_keys(kv_pages(), 0, 31, 1, 1, x), nullptr);
  EXPECT_NE(store_keys(kv_pages(), -1, 0, 0, 2, x), nullptr);
  EXPECT_NE(store_keys(kv_pages(), 0, 32, 0, 2, x), nullptr);
  EXPECT_NE(store_keys(kv_pages(), 0, 0, 1, 2, x), nullptr);
  EXPECT_EQ(store_values(kv_pages(), 0, 0, 0, 2, x), nullptr);
  EXPECT_STREQ(store_values(latent, 0, 0, 0, 2, x), "!kv.values_in_keys");
}

TEST(Requirements, OfAttentionLookAtThePagesThatAreSeenOnly) {
  const auto broken = [](auto change) {
    AttendArgs args = attend_args();
    change(args);
    const Broken found = requirements::attend(kv_pages(), args);
    return std::string(found != nullptr ? found : "");
  };
  EXPECT_EQ(broken([](AttendArgs&) {}), "");
  EXPECT_NE(broken([](AttendArgs& a) { a.window = 0; }), "");  // Page 0 is seen.
  EXPECT_NE(broken([](AttendArgs& a) { a.window = 40; }), "");
  EXPECT_NE(broken([](AttendArgs& a) { a.window = -1; }), "");
  EXPECT_NE(broken([](AttendArgs& a) { a.kv_head = 2; }), "");
  EXPECT_NE(broken([](AttendArgs& a) { a.group = 0; }), "");
  EXPECT_NE(broken([](AttendArgs& a) { a.group = 4; }), "");  // More heads than a row has room for.
  EXPECT_NE(broken([](AttendArgs& a) { a.first_position = -1; }), "");
  EXPECT_NE(broken([](AttendArgs& a) { a.softcap = -1; }), "");
  EXPECT_NE(broken([](AttendArgs& a) { a.scratch = nullptr; }), "");
  EXPECT_NE(broken([](AttendArgs& a) { a.pages = nullptr; }), "");
  EXPECT_EQ(broken([](AttendArgs& a) { a.rows = 0, a.pages = nullptr; }), "");
  const std::vector<const void*> keys(200, floats.data());
  EXPECT_NE(broken([&](AttendArgs& a) { a.keys = keys.data(); }), "");  // Values are not in them.
}

TEST(Requirements, NameWhatIsWrongWithAStateAndItsStep) {
  const auto conv = [](const ConvStep& step) {
    return requirements::conv_step(step, 8, floats.data() + 200);
  };
  EXPECT_BREAKS(+conv, conv_step(), taps = 1, "taps");
  EXPECT_BREAKS(+conv, conv_step(), history = nullptr, "history");
  EXPECT_BREAKS(+conv, conv_step(), weight_stride = 7, "stride");
  EXPECT_BREAKS(+conv, conv_step(), history_stride = 7, "stride");
  const auto delta = requirements::delta_run;
  EXPECT_BREAKS(delta, delta_run(), tokens = 0, "tokens");
  EXPECT_BREAKS(delta, delta_run(), dk = 0, "dk");
  EXPECT_BREAKS(delta, delta_run(), v.x = nullptr, "run.v");
  EXPECT_BREAKS(delta, delta_run(), beta.x = nullptr, "run.beta");
  EXPECT_BREAKS(delta, delta_run(), out_stride = 3, "out_stride");
  EXPECT_BREAKS(delta, delta_run(), out = floats.data() + 31, "run.state");
  EXPECT_BREAKS(delta, delta_run(), out = floats.data() + 107, "run.q");
  EXPECT_BREAKS(delta, delta_run(), out = floats.data() + 197, "run.k");
  EXPECT_BREAKS(delta, delta_run(), out = floats.data() + 297, "run.v");
  const auto decay = requirements::decay_run;
  EXPECT_BREAKS(decay, decay_run(), tokens = 0, "tokens");
  EXPECT_BREAKS(decay, decay_run(), dv = 0, "dv");
  EXPECT_BREAKS(decay, decay_run(), q.x = nullptr, "run.q");
  EXPECT_BREAKS(decay, decay_run(), gain.x = nullptr, "run.gain");
  EXPECT_BREAKS(decay, decay_run(), out = floats.data() + 31, "run.state");
  EXPECT_BREAKS(decay, decay_run(), out = floats.data() + 301, "run.v");
  const auto scan = requirements::selective_scan;
  EXPECT_BREAKS(scan, selective_scan(), tokens = 0, "tokens");
  EXPECT_BREAKS(scan, selective_scan(), states = 0, "states");
  EXPECT_BREAKS(scan, selective_scan(), rate = nullptr, "rate");
  EXPECT_BREAKS(scan, selective_scan(), c.x = nullptr, "scan.c");
  EXPECT_BREAKS(scan, selective_scan(), out_stride = 19, "out_stride");
  EXPECT_BREAKS(scan, selective_scan(), out = floats.data() + 90, "scan.state");
  EXPECT_BREAKS(scan, selective_scan(), out = floats.data() + 310, "scan.x");
  EXPECT_BREAKS(scan, selective_scan(), out = floats.data() + 410, "scan.step");
  EXPECT_BREAKS(scan, selective_scan(), out = floats.data() + 505, "scan.c");
}

#undef EXPECT_BREAKS

int called = 0;

// A table of one kernel that counts its calls.
const Ops& counting() {
  static const Ops ops = [] {
    Ops table{};
    table.isa = Isa::kAvx2;
    table.prompts_in_bf16 = true;
    table.argmax = [](const float*, int32_t n) {
      ++called;
      return n - 1;
    };
    return table;
  }();
  return ops;
}

TEST(CheckedOps, CallTheTableThatTheyCheck) {
  const Ops ops = checked_ops<counting>();
  EXPECT_EQ(ops.isa, Isa::kAvx2);
  EXPECT_TRUE(ops.prompts_in_bf16);
  called = 0;
  EXPECT_EQ(ops.argmax(floats.data(), 5), 4);
  EXPECT_EQ(called, 1);
}

TEST(CheckedOps, HaveEveryEntry) {
  const Ops ops = checked_ops<counting>();
  // From the first entry to the end of the structure there is nothing but entries.
  constexpr size_t kFirst = offsetof(Ops, quantise_rows);
  constexpr size_t kEntries = (sizeof(Ops) - kFirst) / sizeof(void*);
  EXPECT_GE(kEntries, 26u);
  for (size_t i = 0; i < kEntries; ++i) {
    void* entry = nullptr;
    std::memcpy(&entry, reinterpret_cast<const char*>(&ops) + kFirst + i * sizeof(void*),
                sizeof entry);
    EXPECT_NE(entry, nullptr) << "entry " << i;
  }
}

TEST(CheckedOpsDeathTest, AbortBeforeTheCallAndSayWhichEntryItWas) {
  const Ops ops = checked_ops<counting>();
  EXPECT_DEATH(ops.argmax(floats.data(), 0), "argmax.*n >= 1");
}

// Debug builds run with the checked table, release builds do not pay for it.
TEST(CheckedOpsDeathTest, AreWhatDebugBuildsRunWith) {
#ifdef NDEBUG
  ops_for(Isa::kScalar).scale(2, 0, floats.data());
#else
  EXPECT_DEATH(ops_for(Isa::kScalar).scale(2, 0, floats.data()), "scale.*n >= 1");
#endif
}

}  // namespace
}  // namespace weir::kernels
