#include "kernels/requirements.h"

#include <algorithm>

#include "kernels/coded_layout.h"
#include "kernels/quant_layout.h"

namespace weir::kernels::requirements {

// The first of a list of conditions that does not hold, in its own words.
#define REQUIRE(condition) \
  if (!(condition)) return #condition

#define REQUIRE_ALL(broken_or_null) \
  if (const Broken broken = (broken_or_null); broken != nullptr) return broken

namespace {

constexpr int64_t kLine = 64;

bool aligned(const void* p, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}

bool is_group(int32_t group) { return group == 16 || group == 32 || group == 64 || group == 128; }

int64_t bytes_of(FloatType type) { return float_type_bytes(type); }

// Of two rows of n: the same one, or no element in common.
bool same_or_apart(const float* a, const float* b, int64_t n) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  const uintptr_t bytes = static_cast<uintptr_t>(n) * sizeof(float);
  return x == y || x + bytes <= y || y + bytes <= x;
}

bool apart(const float* a, int64_t a_count, const float* b, int64_t b_count) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x + static_cast<uintptr_t>(a_count) * sizeof(float) <= y ||
         y + static_cast<uintptr_t>(b_count) * sizeof(float) <= x;
}

// One row in, one row out.
Broken row_to_row(const float* x, int32_t n, const float* y) {
  REQUIRE(n >= 1);
  REQUIRE(x != nullptr && y != nullptr);
  REQUIRE(same_or_apart(x, y, n));
  return nullptr;
}

Broken float_rows(const float* x, const GemmRange& range) {
  REQUIRE(range.rows == 0 || x != nullptr);
  return nullptr;
}

Broken same_heads(const CodedPages& coded, const KvPages& hot) {
  REQUIRE_ALL(coded_pages(coded));
  REQUIRE_ALL(kv_pages(hot));
  REQUIRE(hot.type == FloatType::kF16 && !hot.values_in_keys);
  REQUIRE(hot.kv_heads == coded.kv_heads);
  REQUIRE(hot.k_dim == coded.k_dim && hot.v_dim == coded.v_dim);
  return nullptr;
}

Broken store(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
             const float* rows) {
  REQUIRE_ALL(kv_pages(kv));
  REQUIRE(page >= 0);
  REQUIRE(slot >= 0 && slot < kPageTokens);
  REQUIRE(first >= 0 && heads >= 0 && first + heads <= kv.kv_heads);
  REQUIRE(heads == 0 || rows != nullptr);
  return nullptr;
}

// DeltaRun or DecayRun.
template <class Run>
Broken tokens_of_head(const Run& run) {
  REQUIRE(run.tokens >= 1);
  REQUIRE(run.dk >= 1 && run.dv >= 1);
  REQUIRE(run.state != nullptr && run.out != nullptr);
  REQUIRE(run.q.x != nullptr && run.k.x != nullptr && run.v.x != nullptr);
  REQUIRE(run.decay.x != nullptr);
  REQUIRE(run.tokens == 1 || run.out_stride >= run.dv);
  // Of its own rows: those of inputs may lie between them.
  for (int64_t t = 0; t < run.tokens; ++t) {
    const float* const out = run.out + t * run.out_stride;
    REQUIRE(apart(out, run.dv, run.state, int64_t{run.dk} * run.dv));
    REQUIRE(apart(out, run.dv, run.q.of(t), run.dk));
    REQUIRE(apart(out, run.dv, run.k.of(t), run.dk));
    REQUIRE(apart(out, run.dv, run.v.of(t), run.dv));
  }
  return nullptr;
}

}  // namespace

Broken quant_matrix(const QuantMatrix& w) {
  REQUIRE(w.n >= 1);
  REQUIRE(w.k >= 1 && w.k <= kMaxLayerK);
  REQUIRE(is_group(w.group));
  REQUIRE(w.k % w.group == 0 && w.k % kPackStep == 0);
  REQUIRE((w.bits >= 2 && w.bits <= 6) || w.bits == 8);
  REQUIRE(w.grid == Grid::kUniform || w.bits == 4);
  REQUIRE(!w.mins || (w.form == ScaleForm::kTwoLevel && total_offset(w) == 0));
  REQUIRE(w.words != nullptr && aligned(w.words, kLine));
  REQUIRE(w.scales != nullptr && aligned(w.scales, kLine));
  return nullptr;
}

Broken float_matrix(const FloatMatrix& w) {
  REQUIRE(w.n >= 1);
  REQUIRE(w.k >= 1 && w.k <= kMaxLayerK);
  REQUIRE(w.rows != nullptr && aligned(w.rows, bytes_of(w.type)));
  return nullptr;
}

Broken float8_matrix(const Float8Matrix& w) {
  REQUIRE(w.n >= 1);
  REQUIRE(w.k >= 1 && w.k <= kMaxLayerK && w.k % kPackStep == 0);
  REQUIRE(w.scale_columns >= 1 && w.scale_columns <= w.k);
  REQUIRE(w.scale_columns % kPackStep == 0);
  REQUIRE(w.numbers != nullptr && aligned(w.numbers, kLine));
  REQUIRE(w.scales != nullptr && aligned(w.scales, kLine));
  return nullptr;
}

Broken quant_rows(const QuantRows& x) {
  REQUIRE(x.k >= 1);
  REQUIRE(is_group(x.group));
  REQUIRE(x.k % x.group == 0);
  REQUIRE(x.q != nullptr && aligned(x.q, std::min(x.group, 32)));
  REQUIRE(x.scale != nullptr && x.sum != nullptr);
  return nullptr;
}

Broken bf16_rows(const Bf16Rows& x) {
  REQUIRE(x.k >= 1);
  REQUIRE(x.stride >= x.k && x.stride % kBf16Step == 0);
  REQUIRE(x.x != nullptr && aligned(x.x, kLine));
  return nullptr;
}

Broken gemm_range(const GemmRange& range, int32_t n) {
  REQUIRE(range.rows >= 0);
  REQUIRE(range.begin >= 0 && range.begin <= range.end && range.end <= n);
  REQUIRE(range.begin % kBlockRows == 0);
  REQUIRE(range.end % kBlockRows == 0 || range.end == n);
  REQUIRE(range.rows == 0 || range.begin == range.end || range.y != nullptr);
  REQUIRE(range.rows <= 1 || range.y_stride >= range.end - range.begin);
  for (int32_t m = 0; range.index != nullptr && m < range.rows; ++m) REQUIRE(range.index[m] >= 0);
  return nullptr;
}

Broken scratch(const void* memory) {
  REQUIRE(memory != nullptr && aligned(memory, kLine));
  return nullptr;
}

Broken kv_numbers(const KvPages& kv) {
  REQUIRE(kv.type == FloatType::kF16 || kv.type == FloatType::kF32);
  REQUIRE(kv.kv_heads >= 1 && kv.k_dim >= 1 && kv.v_dim >= 1);
  REQUIRE(kv.k_dim <= kMaxLayerK && kv.v_dim <= kMaxLayerK);
  REQUIRE(!kv.values_in_keys || (kv.v_dim <= kv.k_dim && kv.k_dim <= kValuesInKeysMax));
  return nullptr;
}

Broken kv_pages(const KvPages& kv) {
  REQUIRE_ALL(kv_numbers(kv));
  REQUIRE(kv.base != nullptr && aligned(kv.base, bytes_of(kv.type)));
  const int64_t dims = int64_t{kv.k_dim} + (kv.values_in_keys ? 0 : kv.v_dim);
  REQUIRE(kv.head_bytes >= dims * kPageTokens * bytes_of(kv.type));
  REQUIRE(kv.head_bytes % bytes_of(kv.type) == 0 && kv.page_bytes % bytes_of(kv.type) == 0);
  REQUIRE(kv.page_bytes >= kv.kv_heads * kv.head_bytes);
  return nullptr;
}

Broken coded_pages(const CodedPages& coded) {
  REQUIRE(coded.base != nullptr && aligned(coded.base, kLine));
  REQUIRE(coded.kv_heads >= 1 && coded.k_dim >= 4 && coded.v_dim >= 4);
  REQUIRE(coded.k_dim % 4 == 0 && coded.v_dim % 4 == 0);
  REQUIRE(coded.k_dim <= kCodedDimMax && coded.v_dim <= kCodedDimMax);
  REQUIRE((coded.k_bits == 8 && coded.v_bits == 8) ||
          (coded.k_bits == 4 && (coded.v_bits == 4 || coded.v_bits == 3)));
  REQUIRE(coded.head_bytes == coded_head_bytes(coded));
  REQUIRE(coded.page_bytes >= coded.kv_heads * coded.head_bytes);
  REQUIRE(coded.page_bytes % kLine == 0);
  REQUIRE(coded.k_rotation.dim == coded.k_dim && coded.v_rotation.dim == coded.v_dim);
  return nullptr;
}

Broken quantise_rows(const float* x, int64_t, int32_t rows, int32_t columns, QuantRows out) {
  REQUIRE_ALL(quant_rows(out));
  REQUIRE(rows >= 0);
  REQUIRE(columns >= 0 && columns <= out.k);
  REQUIRE(columns % out.group == 0);
  REQUIRE(rows == 0 || x != nullptr);
  return nullptr;
}

Broken gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                       void* memory) {
  REQUIRE_ALL(quant_matrix(w));
  REQUIRE_ALL(quant_rows(x));
  REQUIRE(x.group == w.group);
  REQUIRE(x.k == w.k);
  REQUIRE_ALL(gemm_range(range, w.n));
  return scratch(memory);
}

Broken round_rows(const float* x, int64_t, int32_t rows, int32_t columns, Bf16Rows out) {
  REQUIRE_ALL(bf16_rows(out));
  REQUIRE(rows >= 0);
  REQUIRE(columns >= 0 && columns <= out.k);
  REQUIRE(rows == 0 || x != nullptr);
  return nullptr;
}

Broken gemm_quant_bf16(const QuantMatrix& w, const Bf16Rows& x, const GemmRange& range,
                       void* memory) {
  REQUIRE_ALL(quant_matrix(w));
  REQUIRE_ALL(bf16_rows(x));
  REQUIRE(x.k == w.k);
  REQUIRE_ALL(gemm_range(range, w.n));
  return scratch(memory);
}

Broken gemm_float_bf16(const FloatMatrix& w, const Bf16Rows& x, const GemmRange& range,
                       void* memory) {
  REQUIRE_ALL(float_matrix(w));
  REQUIRE(w.type != FloatType::kF32);
  REQUIRE_ALL(bf16_rows(x));
  REQUIRE(x.k == w.k);
  REQUIRE_ALL(gemm_range(range, w.n));
  return scratch(memory);
}

Broken gemm_float8_bf16(const Float8Matrix& w, const Bf16Rows& x, const GemmRange& range,
                        void* memory) {
  REQUIRE_ALL(float8_matrix(w));
  REQUIRE_ALL(bf16_rows(x));
  REQUIRE(x.k == w.k);
  REQUIRE_ALL(gemm_range(range, w.n));
  return scratch(memory);
}

Broken gemm_quant_f32(const QuantMatrix& w, const float* x, int64_t, const GemmRange& range,
                      void* memory) {
  REQUIRE_ALL(quant_matrix(w));
  REQUIRE_ALL(float_rows(x, range));
  REQUIRE_ALL(gemm_range(range, w.n));
  return scratch(memory);
}

Broken gemm_float_f32(const FloatMatrix& w, const float* x, int64_t, const GemmRange& range,
                      void* memory) {
  REQUIRE_ALL(float_matrix(w));
  REQUIRE_ALL(float_rows(x, range));
  REQUIRE_ALL(gemm_range(range, w.n));
  return scratch(memory);
}

Broken add_low_rank(const LowRank& b, const float* t, int64_t, const GemmRange& range) {
  REQUIRE(b.n >= 0 && b.rank >= 1);
  REQUIRE(b.type == FloatType::kF32 || b.type == FloatType::kBF16);
  REQUIRE(b.n == 0 || (b.blocks != nullptr && aligned(b.blocks, 64)));
  REQUIRE(range.index == nullptr);
  REQUIRE(range.rows == 0 || t != nullptr);
  return gemm_range(range, b.n);
}

Broken gemm_float8_f32(const Float8Matrix& w, const float* x, int64_t, const GemmRange& range,
                       void* memory) {
  REQUIRE_ALL(float8_matrix(w));
  REQUIRE_ALL(float_rows(x, range));
  REQUIRE_ALL(gemm_range(range, w.n));
  return scratch(memory);
}

Broken dequantise_row(const QuantMatrix& w, int32_t row, float* out) {
  REQUIRE_ALL(quant_matrix(w));
  REQUIRE(row >= 0 && row < w.n);
  REQUIRE(out != nullptr);
  return nullptr;
}

Broken widen_row(const FloatMatrix& w, int32_t row, float* out) {
  REQUIRE_ALL(float_matrix(w));
  REQUIRE(row >= 0 && row < w.n);
  REQUIRE(out != nullptr);
  return nullptr;
}

Broken widen_float8_row(const Float8Matrix& w, int32_t row, float* out) {
  REQUIRE_ALL(float8_matrix(w));
  REQUIRE(row >= 0 && row < w.n);
  REQUIRE(out != nullptr);
  return nullptr;
}

Broken rms_norm(const float* x, const float*, float eps, int32_t n, float* y) {
  REQUIRE(eps >= 0);
  return row_to_row(x, n, y);
}

Broken layer_norm(const float* x, const float*, const float*, float eps, int32_t n, float* y) {
  REQUIRE(eps >= 0);
  return row_to_row(x, n, y);
}

Broken add_scaled(const float* x, float, int32_t n, float* y) { return row_to_row(x, n, y); }

Broken scale(float, int32_t n, float* y) { return row_to_row(y, n, y); }

Broken product(const float* x, int32_t n, float* y) { return row_to_row(x, n, y); }

Broken softcap(float cap, int32_t n, float* y) {
  REQUIRE(cap > 0);
  return row_to_row(y, n, y);
}

Broken gated_act(const float* gate, const float* up, const GatedAct& act, int32_t n, float* y) {
  REQUIRE(act.limit >= 0);
  REQUIRE_ALL(row_to_row(gate, n, y));
  return row_to_row(up, n, y);
}

Broken act(Act, int32_t n, float* y) { return row_to_row(y, n, y); }

Broken xielu(const Xielu& act, int32_t n, float* y) {
  REQUIRE(act.least <= 0);
  return row_to_row(y, n, y);
}

Broken rope(float* x, int32_t heads, int32_t head_dim, int32_t dims, const float* cos,
            const float* sin, bool) {
  REQUIRE(heads >= 0);
  REQUIRE(dims >= 0 && dims % 2 == 0);
  REQUIRE(dims <= head_dim);
  REQUIRE(dims == 0 || heads == 0 || (x != nullptr && cos != nullptr && sin != nullptr));
  return nullptr;
}

Broken store_keys(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                  const float* k) {
  return store(kv, page, slot, first, heads, k);
}

Broken store_values(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                    const float* v) {
  REQUIRE(!kv.values_in_keys);
  return store(kv, page, slot, first, heads, v);
}

Broken attend(const KvPages& kv, const AttendArgs& args) {
  if (args.keys != nullptr) {
    REQUIRE_ALL(kv_numbers(kv));
    REQUIRE(kv.values_in_keys && args.kv_head == 0 && args.span_end == 0);
  } else {
    REQUIRE_ALL(kv_pages(kv));
  }
  REQUIRE(args.rows >= 0 && args.first_position >= 0 && args.window >= 0);
  REQUIRE(!args.chunks || args.window > 0);
  REQUIRE(args.first_key >= 0 && args.first_key <= args.first_position);
  REQUIRE(args.kv_head >= 0 && args.kv_head < kv.kv_heads);
  REQUIRE(args.group >= 1);
  REQUIRE(args.softcap >= 0);
  REQUIRE_ALL(scratch(args.scratch));
  if (args.rows == 0) return nullptr;
  REQUIRE(args.q != nullptr && args.out != nullptr);
  REQUIRE(args.keys != nullptr || args.pages != nullptr);
  REQUIRE(args.rows == 1 || args.q_stride >= int64_t{args.group} * kv.k_dim);
  REQUIRE(args.rows == 1 || args.out_stride >= int64_t{args.group} * kv.v_dim);
  const int32_t last = args.first_position + args.rows - 1;
  if (args.keys != nullptr) {
    for (int32_t j = 0; j <= last; ++j)
      REQUIRE(args.keys[j] != nullptr && aligned(args.keys[j], bytes_of(kv.type)));
    return nullptr;
  }
  const int32_t window = args.chunks ? args.first_position % args.window + 1 : args.window;
  const int32_t first =
      std::max(window > 0 ? std::max(args.first_position + 1 - window, 0) : 0, args.first_key);
  for (int32_t page = first / kPageTokens; page <= last / kPageTokens; ++page)
    REQUIRE(args.pages[page] >= 0);
  return nullptr;
}

Broken index_scores(const IndexScores& index) {
  REQUIRE(index.heads >= 1 && index.dim >= 1 && index.dim <= kIndexDimMax);
  REQUIRE(int64_t{index.heads} * index.dim <= kIndexNumbersMax);
  REQUIRE(index.slots >= 1 && index.slots <= kPageTokens && kPageTokens % index.slots == 0);
  REQUIRE(index.type == FloatType::kF16 || index.type == FloatType::kF32);
  REQUIRE(index.begin >= 0 && index.begin % kPageTokens == 0 && index.end >= index.begin);
  REQUIRE_ALL(scratch(index.scratch));
  if (index.begin == index.end) return nullptr;
  REQUIRE(index.q != nullptr && index.weights != nullptr && index.scores != nullptr);
  REQUIRE(index.keys != nullptr && index.pages != nullptr);
  REQUIRE(aligned(index.keys, bytes_of(index.type)) &&
          index.page_bytes % bytes_of(index.type) == 0);
  for (int32_t page = index.begin / index.slots; page <= (index.end - 1) / index.slots; ++page)
    REQUIRE(index.pages[page] >= 0);
  return nullptr;
}

Broken rotate(const Rotation& rotation, bool, int32_t heads, float* x) {
  REQUIRE(rotation.dim >= 1 && rotation.dim <= kCodedDimMax);
  REQUIRE(rotation.order >= 1 && rotation.width >= 1);
  REQUIRE((rotation.width & (rotation.width - 1)) == 0);
  REQUIRE(
      rotation.order * rotation.width == rotation.dim ||
      (rotation.order == 1 && rotation.width < rotation.dim && 2 * rotation.width >= rotation.dim));
  REQUIRE(rotation.signs != nullptr && (rotation.order == 1 || rotation.matrix != nullptr));
  REQUIRE(heads >= 0);
  REQUIRE(heads == 0 || x != nullptr);
  return nullptr;
}

Broken encode_page(const CodedPages& to, int32_t page, const KvPages& hot, int32_t hot_page,
                   int32_t head, void* memory) {
  REQUIRE_ALL(same_heads(to, hot));
  REQUIRE(page >= 0 && hot_page >= 0);
  REQUIRE(head >= 0 && head < to.kv_heads);
  return scratch(memory);
}

Broken attend_coded(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
                    const AttendArgs& args) {
  REQUIRE_ALL(same_heads(coded, hot));
  REQUIRE(args.keys == nullptr);
  REQUIRE(args.rows >= 0 && args.first_position >= 0 && args.window >= 0);
  REQUIRE(!args.chunks || args.window > 0);
  REQUIRE(args.kv_head >= 0 && args.kv_head < coded.kv_heads);
  REQUIRE(args.group >= 1);
  REQUIRE(args.softcap >= 0);
  REQUIRE_ALL(scratch(args.scratch));
  if (args.rows == 0) return nullptr;
  REQUIRE(args.q != nullptr && args.out != nullptr);
  REQUIRE(args.pages != nullptr && hot_pages != nullptr);
  REQUIRE(args.rows == 1 || args.q_stride >= int64_t{args.group} * coded.k_dim);
  REQUIRE(args.rows == 1 || args.out_stride >= int64_t{args.group} * coded.v_dim);
  const int32_t last = args.first_position + args.rows - 1;
  const int32_t window = args.chunks ? args.first_position % args.window + 1 : args.window;
  const int32_t first = window > 0 ? std::max(args.first_position + 1 - window, 0) : 0;
  for (int32_t page = first / kPageTokens; page < last / kPageTokens; ++page)
    REQUIRE(args.pages[page] >= 0);
  for (int32_t page = args.first_position / kPageTokens; page <= last / kPageTokens; ++page)
    REQUIRE(hot_pages[page] >= 0);
  return nullptr;
}

Broken conv_step(const ConvStep& conv, int32_t n, float* x) {
  REQUIRE(n >= 1);
  REQUIRE(conv.taps >= 2);
  REQUIRE(conv.weights != nullptr && conv.history != nullptr && x != nullptr);
  REQUIRE(conv.weight_stride >= n && conv.history_stride >= n);
  return nullptr;
}

Broken delta_run(const DeltaRun& run) {
  REQUIRE_ALL(tokens_of_head(run));
  REQUIRE(run.beta.x != nullptr);
  return nullptr;
}

Broken delta_decays(const float* rate, const float* bias, int32_t n, float* x) {
  REQUIRE_ALL(row_to_row(x, n, x));
  REQUIRE(rate != nullptr && bias != nullptr);
  return nullptr;
}

Broken decay_run(const DecayRun& run) {
  REQUIRE_ALL(tokens_of_head(run));
  REQUIRE(run.gain.x != nullptr);
  return nullptr;
}

Broken selective_scan(const SelectiveScan& scan) {
  REQUIRE(scan.tokens >= 1);
  REQUIRE(scan.channels >= 1 && scan.states >= 1);
  REQUIRE(scan.state != nullptr && scan.rate != nullptr && scan.skip != nullptr);
  REQUIRE(scan.x.x != nullptr && scan.step.x != nullptr);
  REQUIRE(scan.b.x != nullptr && scan.c.x != nullptr);
  REQUIRE(scan.out != nullptr);
  REQUIRE(scan.tokens == 1 || scan.out_stride >= scan.channels);
  const int64_t strips = (scan.channels + kScanStrip - 1) / kScanStrip;
  for (int64_t t = 0; t < scan.tokens; ++t) {
    const float* const out = scan.out + t * scan.out_stride;
    REQUIRE(apart(out, scan.channels, scan.state, strips * kScanStrip * scan.states));
    REQUIRE(apart(out, scan.channels, scan.x.of(t), scan.channels));
    REQUIRE(apart(out, scan.channels, scan.step.of(t), scan.channels));
    REQUIRE(apart(out, scan.channels, scan.b.of(t), scan.states));
    REQUIRE(apart(out, scan.channels, scan.c.of(t), scan.states));
  }
  return nullptr;
}

Broken argmax(const float* x, int32_t n) {
  REQUIRE(n >= 1);
  REQUIRE(x != nullptr);
  return nullptr;
}

Broken log_sum_exp(const float* x, int32_t n) { return argmax(x, n); }

Broken softmax(const float* x, int32_t n, float* y) { return row_to_row(x, n, y); }

#undef REQUIRE
#undef REQUIRE_ALL

}  // namespace weir::kernels::requirements
