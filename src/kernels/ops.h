// The table of kernels: numbers in, numbers out. For each entry: equation, shapes, order of
// reduction. One implementation per ISA folder; scalar/ is the reference, "what the kernel means";
// cpu_ops.cpp fills the table with the best this machine has, or a lower level if forced.
//
// Threads: every function may be called by any thread; it touches only its arguments.
//
// What an entry REQUIRES of its arguments is checked in debug builds (checked_ops.h), by the
// functions of requirements.h. No pointer is null where an element is read or written, and no count
// is negative, unless a comment says otherwise.
//
// Batch invariance (decision 18): what a kernel computes for a row depends on that row alone, to
// the last bit: not on how many rows are passed, nor on where a range of columns begins. So each
// output element has one order of reduction, given below, that all paths of one ISA keep (GEMV,
// small batch, GEMM, AMX tiles). Different ISAs may differ in the last bits of float sums; integer
// dot products are exact everywhere.
//
// This file is included by files with ISA flags: it must stay free of the standard library beyond
// <cstdint>, or inline functions compiled for AVX-512 could reach every processor.
#pragma once

#include <cstdint>

namespace weir::kernels {

enum class Isa : uint8_t { kScalar, kAvx2, kAvx512, kAmx };
enum class FloatType : uint8_t { kF32, kF16, kBF16 };
enum class Act : uint8_t { kSilu, kGeluTanh, kGelu, kRelu2, kRelu, kQuickGelu, kSigmoid };

// How a gate acts on what it gates.
struct GatedAct {
  Act act = Act::kSilu;
  float limit = 0;      // Above 0: the gate is at most this, and `up` between it and its negative.
  float up_offset = 0;  // Added to `up` where there is a limit.
};

// xIELU, an activation with numbers that are learned:
//   x > 0: positive x^2 + beta x;  else negative (e^min(x, least) - 1 - x) + beta x
struct Xielu {
  float positive = 1;
  float negative = 1;
  float beta = 0.5f;
  float least = -1e-6f;  // The least step below 0. REQUIRES: at most 0.
};

// Rows of weights that lie side by side in a packed matrix.
inline constexpr int32_t kBlockRows = 16;
// KV page length in tokens (decision 13).
inline constexpr int32_t kPageTokens = 32;
// A group of activations whose magnitudes all lie below 2^-100 counts as zeros: 127 / absmax must
// not overflow.
inline constexpr float kTinyGroup = 0x1p-100f;
// Scratch memory that a caller hands to kernels that ask for it, one per team member, 64-byte
// aligned.
inline constexpr int64_t kScratchBytes = 4 << 20;

// The longest key whose first numbers are its value: a block of tokens, widened, leaves room in the
// scratch for the queries that share it (simd/attend_latents.h).
inline constexpr int32_t kValuesInKeysMax = 1024;

// The longest row of a linear layer; what kernels keep in the scratch is sized by it.
inline constexpr int32_t kMaxLayerK = 65536;

// A bf16 weight is cut, not rounded, which costs two instructions less; its magnitude loses half a
// unit in the last place on average. This factor gives it back: 1 + 2^-8 E(m) / E(m^2) minimises
// the squared error for a mantissa m spread evenly over [1, 2).
inline constexpr float kUnbias = 1 + 0x1p-8f * 9 / 14;

// What a code stands for before its group's scale: itself; IQ4_NL's table (kIq4Values); twice an
// e2m1 (kE2m1Values). Those with a table have 4 bits.
enum class Grid : uint8_t { kUniform, kIq4, kE2m1 };
// How the scale and the bias of a group are stored (QuantMatrix).
enum class ScaleForm : uint8_t { kPairs, kScales, kZeros, kTwoLevel };
// What a byte of kTwoLevel's group scales is: the number itself, unsigned or signed; 2^(b - 127); a
// float8 e4m3 "fn".
enum class ByteScale : uint8_t { kUnsigned, kSigned, kE8m0, kE4m3 };

inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int8_t kE2m1Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
// Kernels multiply by bytes without a sign: the values of a grid plus this.
inline constexpr int32_t kIq4Shift = 128;
inline constexpr int32_t kE2m1Shift = 12;
// Numbers of a row that share a `d` in kTwoLevel.
inline constexpr int32_t kSuperGroup = 256;

// A linear layer's weight [n, k] with affine groups along k:
//   w[r][c] = scale[r][g] * u[r][c] + bias[r][g],  g = c / group,  u = value(code) + shift
// where value and shift are those of the grid. Each form of scales gives them, in float32, with
// off = offset + shift:
//   kPairs     scale and bias stored, less off * scale where off is not 0
//   kScales    bias = -off * scale, only the scale stored
//   kZeros     bias = -(zero + off) * scale, the zero a byte
//   kTwoLevel  scale = d * S, S the group's byte; bias = -(dmin * min), the min a byte, or
//              without mins -off * scale; `d` and `dmin` are one float each for kSuperGroup numbers
//              of a row
// Packed at load (repack.h) as blocks of 16 rows. Words: for each 32 elements of k, 64 * bits bytes
// (kernels/quant_layout.h). With 4 and 8 bits, for word index w ascending, the 16 rows' 32-bit word
// w side by side, 64 bytes a line. A word holds 8 elements of a row at 4 bits, 4 at 8 bits. Within
// each 8 elements the activations' order is 0 2 4 6 1 3 5 7: a 4-bit word w gives elements 0 2 4 6
// as w & 0x0f0f0f0f and 1 3 5 7 as (w >> 4) & 0x0f0f0f0f; 8-bit words are permuted alike (first
// word of a pair holds elements 0 2 4 6, second 1 3 5 7), so one quantised activation row serves
// all. n not a multiple of 16: the last block is padded with zero words, scales and biases.
// REQUIRES: k % group == 0, k % 32 == 0, group in {16, 32, 64, 128}, bits in {2, 3, 4, 5, 6, 8},
// k <= kMaxLayerK, 64-byte alignment of both pointers; mins only with kTwoLevel and the uniform
// grid, and then no offset.
struct QuantMatrix {
  int32_t n = 0;
  int32_t k = 0;
  int32_t group = 0;
  int32_t bits = 0;                        // Of a stored number.
  FloatType scale_type = FloatType::kF16;  // Of all forms but kTwoLevel.
  Grid grid = Grid::kUniform;
  ScaleForm form = ScaleForm::kPairs;
  ByteScale byte_scale = ByteScale::kUnsigned;  // Of kTwoLevel.
  bool mins = false;                            // Of kTwoLevel.
  int32_t offset = 0;
  const uint8_t* words = nullptr;
  // Blocks one after the other. For each group of a block 16 scales, then 16 biases, in scale_type
  // (kPairs); 16 scales in scale_type (kScales), then 16 zeros (kZeros); 16 bytes of scales, then of
  // mins if there are any (kTwoLevel, where 16 floats of d, then of dmin if there are mins, come
  // before the groups of each kSuperGroup numbers).
  const uint8_t* scales = nullptr;
};

// A float weight [n, k], row-major as stored in the checkpoint (often mapped from the file).
// REQUIRES: k <= kMaxLayerK.
struct FloatMatrix {
  int32_t n = 0;
  int32_t k = 0;
  FloatType type = FloatType::kF32;
  const void* rows = nullptr;  // Aligned to its element only.
};

// A float8 weight [n, k]: numbers in E4M3 "fn" (bias 7, no infinities), each times a scale that
// neighbours in its row share. Packed at load (repack.h) as blocks of 16 rows: column after column,
// the 16 rows' bytes side by side, so that a block is one stream; n not a multiple of 16: the last
// block is padded with zeros. REQUIRES: k % 32 == 0, k <= kMaxLayerK, scale_columns % 32 == 0,
// scale_columns <= k, no byte a NaN (0x7f, 0xff), 64-byte alignment of both pointers.
struct Float8Matrix {
  int32_t n = 0;
  int32_t k = 0;
  int32_t scale_columns = 0;  // Neighbours that share a scale.
  bool row_scales = false;    // Each row of a block has scales of its own; else all 16 share them.
  const uint8_t* numbers = nullptr;
  const float* scales = nullptr;  // [blocks][ceil(k / scale_columns)][16 or 1]
};

// Kernels read a float8's bits as a half, which is the number divided by this.
inline constexpr float kFloat8Unit = 256;
// gemm_float8_f32 scales the sums of so many columns at a time.
inline constexpr int32_t kFloat8Stretch = 128;

// The outer half B [n, rank] of a low-rank product B A, in blocks of 16 rows of it, each [rank][16];
// n not a multiple of 16: the last block is padded with zeros. REQUIRES: rank >= 1; the type is kF32
// or kBF16; 64-byte alignment.
struct LowRank {
  int32_t n = 0;
  int32_t rank = 0;
  FloatType type = FloatType::kF32;
  const void* blocks = nullptr;
};

// Activations quantised to int8 per group: x[c] ~ scale[g] * q[c]; symmetric, scale = absmax / 127
// (0 for a group of zeros), q = round to nearest even of x * (127 / absmax), the quotient rounded
// first: the same bits on every ISA. `sum[g]` = scale[g] * sum of q. A group with a NaN or infinity
// gets such a scale and sum, so that it spoils every output of its row and nothing hides it.
// Rows are k (q) and k / group (scale, sum) apart; q is in the permuted order of QuantMatrix.
// Buffers are 64-byte aligned, and the q buffer has at least 64 bytes after its last row; rows may
// begin at any multiple of a group within them. REQUIRES: k % group == 0, group in {16, 32, 64,
// 128}.
struct QuantRows {
  int32_t k = 0;
  int32_t group = 0;
  int8_t* q = nullptr;
  float* scale = nullptr;
  float* sum = nullptr;
};

// Activations rounded to bf16 (nearest, ties to even; denormals to 0), `stride` numbers from a row
// to the next, and zeros after the k-th up to a multiple of kBf16Step. Within each 8 elements of k
// the order is 0 4 1 5 2 6 3 7: the pairs that a packed word gives without a permutation. Rows are
// 64-byte aligned.
inline constexpr int32_t kBf16Step = 32;
struct Bf16Rows {
  int32_t k = 0;
  int64_t stride = 0;
  uint16_t* x = nullptr;
};

// Packed weights that the caller will multiply by next, as the parts of QuantMatrix's two arrays. A
// kernel fetches them into L2 meanwhile, evenly over its first pass over its own weights. (Memory
// gives more to a core that reads several pages at a time than the processor's own prefetchers,
// which follow one stream, ask of it.)
struct NextWeights {
  const uint8_t* words = nullptr;
  const uint8_t* scales = nullptr;
  int64_t word_bytes = 0;
  int64_t scale_bytes = 0;
};

// Which rows of the activations, and where the result goes.
// Row m of the result is computed from activation row `index[m]`, or m where index is null, and
// written to y + m * y_stride + column. Columns [begin, end) are computed; nothing outside them is
// written. REQUIRES: 0 <= begin <= end <= n; begin is a multiple of 16, and so is end unless it
// equals n; rows of y do not overlap.
struct GemmRange {
  const int32_t* index = nullptr;
  int32_t rows = 0;
  int32_t begin = 0;
  int32_t end = 0;
  float* y = nullptr;
  int64_t y_stride = 0;  // In floats.
  NextWeights next{};    // Only gemm_quant_int8 and gemm_float8_f32 fetch.
};

// Memory of one layer's keys and values, in pages of 32 tokens. A page of one KV head holds
// K transposed, [k_dim][32] (lane = token), then V, [32][v_dim] (lane = dimension). Where values
// are in keys there is only K, as it comes, [32][k_dim]: a value is the first v_dim numbers of its
// key. REQUIRES: a head fits head_bytes, all heads fit page_bytes, and elements are aligned; where
// values are in keys, v_dim <= k_dim <= kValuesInKeysMax.
struct KvPages {
  uint8_t* base = nullptr;
  int64_t page_bytes = 0;  // From a page to the next, all heads of this layer.
  int64_t head_bytes =
      0;  // From a KV head to the next within a page; V starts at k_dim * 32 elements.
  int32_t kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  FloatType type = FloatType::kF16;  // kF16 or kF32.
  bool values_in_keys = false;
};

// Attention of `rows` consecutive positions of one sequence over its pages, for the `group` query
// heads that share one KV head. Row r has position p = first_position + r and sees key j iff
// j <= p and (window == 0 or j > p - window, or, with chunks, j / window == p / window), or both p
// and j lie in [span_begin, span_end); and j >= first_key.
//   s_j = softcap(scale * (q . k_j)), softcap(s) = c * tanh(s / c) if c > 0
//   out = sum_j exp(s_j - m) v_j / (sum_j exp(s_j - m) [+ exp(sink - m)])
// Order: q . k ascending in the dimension (one accumulator a token); keys in blocks of 256 tokens
// that begin at multiples of 256, online softmax (running maximum, sum and output rescaled) from
// block to block; within a block the output accumulates ascending in the token, and the sum of
// exponentials over 16 lanes (token % 16) ascending, then a fixed tree. A key that a row does not
// see contributes nothing (its page bytes may be garbage, even NaN). The result for a row must not
// depend on `rows`. REQUIRES: kv_head < kv_heads; pages that hold a key which some row sees have
// numbers >= 0 (the others may be anything); window >= 0; softcap >= 0; first_key <= first_position.
struct AttendArgs {
  const float* q = nullptr;  // [rows][...]: head h of row r at q + r * q_stride + h * k_dim.
  int64_t q_stride = 0;
  float* out = nullptr;  // Head h of row r at out + r * out_stride + h * v_dim.
  int64_t out_stride = 0;
  int32_t rows = 0;
  int32_t first_position = 0;
  const int32_t* pages = nullptr;  // Page numbers of the sequence from position 0.
  // Where not null, key j lies at keys[j] instead, its k_dim numbers side by side, of which the
  // first v_dim are its value; pages are not read. REQUIRES then: values are in keys, span_end is
  // 0, and keys[0, first_position + rows) are all there.
  const void* const* keys = nullptr;
  int32_t kv_head = 0;
  int32_t group = 1;  // Query heads per KV head; q and out point at the first of them.
  float scale = 1;
  float softcap = 0;
  int32_t window = 0;
  bool chunks = false;
  int32_t span_begin = 0, span_end = 0;  // Positions that see each other; equal: none.
  int32_t first_key = 0;                 // No row sees a key before it.
  const float* sinks = nullptr;          // [group] or null.
  void* scratch = nullptr;               // kScratchBytes.
};

// Scores by which a token chooses what it attends to (DeepSeek-V3.2-Exp, equation 1):
//   scores[j] = sum over heads h of weights[h] * max(q_h . k_j, 0)
// for keys [begin, end), which lie in pages of `slots` keys, transposed: [dim][slots] of `type`, at
// keys + page * page_bytes. Sums ascend in the dimension and in the head, in float32. A score does
// not depend on the range. REQUIRES: slots is a power of two, at most kPageTokens; begin is a
// multiple of kPageTokens; dim <= kIndexDimMax, heads * dim <= kIndexNumbersMax.
inline constexpr int32_t kIndexDimMax = 1024;
inline constexpr int32_t kIndexNumbersMax = 1 << 18;
struct IndexScores {
  const float* q = nullptr;        // [heads][dim]
  const float* weights = nullptr;  // [heads]
  int32_t heads = 0;
  int32_t dim = 0;
  const uint8_t* keys = nullptr;
  int64_t page_bytes = 0;
  int32_t slots = kPageTokens;
  FloatType type = FloatType::kF16;  // kF16 or kF32.
  const int32_t* pages = nullptr;    // Page numbers, from key 0.
  int32_t begin = 0, end = 0;
  float* scores = nullptr;  // [end - begin]: of key `begin` first.
  void* scratch = nullptr;  // kScratchBytes.
};

// One token of a depthwise causal convolution of n channels with `taps` weights each, taps >= 2.
// weights: [taps][...], tap t of channel c at weights + t * weight_stride + c, the last one for the
// token itself; history: the inputs of the taps - 1 tokens before it, oldest first. REQUIRES: both
// strides >= n.
struct ConvStep {
  const float* weights = nullptr;
  int64_t weight_stride = 0;
  float* history = nullptr;
  int64_t history_stride = 0;
  int32_t taps = 0;
};

// Columns of a strip of a delta net's state: the columns [64 i, 64 i + 64) of S, or those that are
// left, lie together as [dk][columns], strip after strip.
inline constexpr int32_t kDeltaStrip = 64;

// Some numbers of each token of a run, `stride` apart.
struct TokenRows {
  const float* x = nullptr;
  int64_t stride = 0;

  const float* of(int64_t token) const { return x + token * stride; }
};

// Tokens of one head of a gated delta net, each of which reads and changes its state S [dk][dv]
// (kDeltaStrip):
//   S[i] = decay[i] S[i];  change = beta (v - S^T k);  S = S + k (x) change;  out = S^T q
// REQUIRES: tokens, dk, dv >= 1; `out` overlaps neither S nor any of the inputs.
struct DeltaRun {
  float* state = nullptr;
  int32_t tokens = 0;
  int32_t dk = 0;
  int32_t dv = 0;
  TokenRows q, k;           // [dk]
  TokenRows v;              // [dv]
  TokenRows decay;          // [dk], or one number for all
  bool key_decays = false;  // Each element of the key has its own.
  TokenRows beta;           // One number.
  float* out = nullptr;     // [dv]
  int64_t out_stride = 0;
};

// Tokens of one head of a linear attention whose state S [dk][dv] decays as a whole, each of which
// reads and changes it:
//   S = decay S;  S = S + k (x) (gain v);  out = S^T q
// REQUIRES: tokens, dk, dv >= 1; `out` overlaps neither S nor q nor k nor v.
struct DecayRun {
  float* state = nullptr;
  int32_t tokens = 0;
  int32_t dk = 0;
  int32_t dv = 0;
  TokenRows q, k;         // [dk]
  TokenRows v;            // [dv]
  TokenRows decay, gain;  // One number each.
  float* out = nullptr;   // [dv]
  int64_t out_stride = 0;
};

// Channels of a selective scan: their states lie together as [states][kScanStrip], strip after
// strip. Where the last strip has fewer channels, nothing reads what is in the others' place.
inline constexpr int32_t kScanStrip = 16;

// Tokens of some channels of a selective scan, each of which reads and changes the channel's states
// h [states] (Gu and Dao 2023, equation 2 and section 3.6):
//   step = ln(1 + exp(step));  h[i] = 2^(step rate[i]) h[i] + b[i] (step x)
//   out = sum over i of c[i] h[i] + skip x
// REQUIRES: tokens, channels, states >= 1; no rate is above 0; `state` and `rate` are as long as
// whole strips; `out` overlaps neither the state nor any of the inputs.
struct SelectiveScan {
  float* state = nullptr;
  const float* rate = nullptr;  // As the states.
  const float* skip = nullptr;  // [channels]
  int32_t tokens = 0;
  int32_t channels = 0;
  int32_t states = 0;
  TokenRows x, step;     // [channels]
  TokenRows b, c;        // [states]
  float* out = nullptr;  // [channels]
  int64_t out_stride = 0;
};

struct Ops {
  Isa isa = Isa::kScalar;
  // In fast mode weights meet the tokens of prompts in bf16 (gemm_quant_bf16, gemm_float_bf16):
  // where many rows share the widening of a weight, tiles are several times faster than int8.
  // Generated tokens, which come a few at a time, stay in int8.
  bool prompts_in_bf16 = false;
  // attend_prompt is for rows of prompts at this position or a later one. Where the tokens of
  // prompts leave other keys than generated ones, the answers of a chat are computed again in its
  // next turn, which costs more than faster attention to a few tokens saves (decision 17).
  int32_t attend_prompt_from = 0;

  // --- Linear layers. y[m][c] = sum_k x[m][k] * w[c][k]. `scratch`: kScratchBytes, 64-byte
  // aligned.

  // Quantises `columns` floats of each of `rows` rows (x_stride apart) into the first columns of
  // out's rows 0... REQUIRES: columns % out.group == 0, columns <= out.k.
  void (*quantise_rows)(const float* x, int64_t x_stride, int32_t rows, int32_t columns,
                        QuantRows out);
  // Per output, groups ascending:
  //   c = fma(float(dot) * w_scale, x_scale, c);  c = fma(w_bias, x_sum, c)
  // with dot the exact int32 dot product of the group; at the end c + 0, so that no sum is -0. The
  // same bits on every ISA. REQUIRES: x.group == w.group, x.k == w.k.
  void (*gemm_quant_int8)(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                          void* scratch);
  // Rounds `columns` floats of each of `rows` rows (x_stride apart) into the first columns of out's
  // rows 0..., and zeros after them up to a multiple of kBf16Step. REQUIRES: columns <= out.k.
  void (*round_rows)(const float* x, int64_t x_stride, int32_t rows, int32_t columns, Bf16Rows out);
  // Weights widened to bf16, products of pairs as tdpbf16ps defines them. Per output, blocks of 32
  // elements ascending:
  //   c += e + o;  e = sum of w[i] x[i], one fma after the other over i = 0 1 2 3 8 9 10 11 16 ...;
  //   o likewise over i = 4 5 6 7 12 13 14 15 20 ...
  // with w[i] = the upper 16 bits of the float32 fma(magic, s, b - magic s), where s and b are
  // scale and bias times kUnbias, and magic = 256 + u. But where numbers have 4 bits and no table,
  // in groups of 32 or more, magic = 128 + q for the i of e, and 128 + q + (0x4300 + q') / 2^16 for
  // the i of o, q' being the number at i - 4, whose bits lie below (0x4300 / 2^16 goes into the
  // bias as well; what is left is below 2^-12 of a step). The same bits on every ISA, denormals
  // aside. REQUIRES: x.k == w.k.
  void (*gemm_quant_bf16)(const QuantMatrix& w, const Bf16Rows& x, const GemmRange& range,
                          void* scratch);
  // The same for bf16 weights, or f16 ones rounded to bf16 (nearest, ties to even). The last block
  // ends with zeros where k is no multiple of 32. REQUIRES: w.type is one of these, x.k == w.k.
  void (*gemm_float_bf16)(const FloatMatrix& w, const Bf16Rows& x, const GemmRange& range,
                          void* scratch);
  // The same for float8 numbers times their scales, rounded to float32, then to bf16. REQUIRES:
  // x.k == w.k.
  void (*gemm_float8_bf16)(const Float8Matrix& w, const Bf16Rows& x, const GemmRange& range,
                           void* scratch);
  // Exact float32 activations: weight v = fma(scale, u, bias) in float32, then c = fma(v, x, c),
  // k ascending in one accumulator. The same bits on every ISA.
  void (*gemm_quant_f32)(const QuantMatrix& w, const float* x, int64_t x_stride,
                         const GemmRange& range, void* scratch);
  // Float weights widened to float32 exactly; L partial sums over k (lane = k % L, L the ISA's
  // vector length, 1 for scalar), ascending with fma, then a fixed tree.
  void (*gemm_float_f32)(const FloatMatrix& w, const float* x, int64_t x_stride,
                         const GemmRange& range, void* scratch);
  // Float8 numbers meet float32 activations, and sums meet scales. Per output, stretches of
  // kFloat8Stretch columns, or as many as are left of those that share a scale, ascending:
  //   c = fma(((s[0] + s[1]) + s[2]) + s[3], scale * kFloat8Unit, c)
  // where s[p] is the sum over the stretch's elements p, p + 4, p + 8, ..., one fma after the other
  // from 0, of the number / kFloat8Unit times x. The same bits on every ISA.
  void (*gemm_float8_f32)(const Float8Matrix& w, const float* x, int64_t x_stride,
                          const GemmRange& range, void* scratch);
  // y[m][c] += (s[0] + s[1]) + (s[2] + s[3]), s[p] the sum of t[m][r] * B[c][r] over r = p, p + 4,
  // ..., one fma after the other from 0, for rows t of rank numbers, t_stride apart; the range has
  // no index. The same bits on every ISA.
  void (*add_low_rank)(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range);
  // Row r of a matrix, widened: the embedding lookup. REQUIRES: row < n.
  void (*dequantise_row)(const QuantMatrix& w, int32_t row, float* out);
  void (*widen_row)(const FloatMatrix& w, int32_t row, float* out);
  // The numbers times their scales, rounded.
  void (*widen_float8_row)(const Float8Matrix& w, int32_t row, float* out);

  // --- Row-wise. REQUIRES: n >= 1 elements; y is x where that is allowed, else they do not
  // overlap.

  // y = w * x / sqrt(mean(x^2) + eps); w null means 1. y may be x.
  void (*rms_norm)(const float* x, const float* w, float eps, int32_t n, float* y);
  // y = w * (x - mean) / sqrt(var + eps) + b; w and b may be null. y may be x.
  void (*layer_norm)(const float* x, const float* w, const float* b, float eps, int32_t n,
                     float* y);
  // y += s * x.
  void (*add_scaled)(const float* x, float s, int32_t n, float* y);
  void (*scale)(float s, int32_t n, float* y);
  // y = x * y, element by element.
  void (*product)(const float* x, int32_t n, float* y);
  // y = cap * tanh(y / cap). REQUIRES: cap > 0.
  void (*softcap)(float cap, int32_t n, float* y);
  // y = act(gate) * up, or, with a limit,
  //   y = act(min(gate, limit)) * (max(-limit, min(up, limit)) + up_offset);
  // y may be gate or up.
  void (*gated_act)(const float* gate, const float* up, const GatedAct& act, int32_t n, float* y);
  // y = act(y).
  void (*act)(Act act, int32_t n, float* y);
  // y = xielu(y).
  void (*xielu)(const Xielu& act, int32_t n, float* y);
  // Rotates the first `dims` of each of `heads` heads (head_dim apart) by the row's angles:
  // pair i is (i, i + dims / 2), or (2i, 2i + 1) if interleaved; cos, sin [dims / 2].
  //   (a, b) -> (a cos - b sin, b cos + a sin)
  // REQUIRES: dims is even and at most head_dim.
  void (*rope)(float* x, int32_t heads, int32_t head_dim, int32_t dims, const float* cos,
               const float* sin, bool interleaved);

  // --- Attention.

  // Writes one token's keys [heads][k_dim], or values [heads][v_dim], of KV heads `first` and on
  // into slot `position % 32` of a page, rounded to the page's type. REQUIRES: page >= 0;
  // first + heads <= kv_heads; for store_values, values are not in keys.
  void (*store_keys)(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                     const float* k);
  void (*store_values)(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                       const float* v);
  void (*attend)(const KvPages& kv, const AttendArgs& args);
  // Attention for rows of a prompt. Where it is not `attend`, queries, keys, values and the
  // exponentials (of at most 1 each, whose sum takes them unrounded) are rounded to bf16 before
  // they are multiplied; else, and where values are in keys, it is `attend`. A value that is not
  // finite may spoil rows of the call that do not see it.
  void (*attend_prompt)(const KvPages& kv, const AttendArgs& args);
  void (*index_scores)(const IndexScores& index);

  // --- States: a call takes its sequence on by a token, or by a run of them. The same bits on
  // every ISA, but for delta_decays and selective_scan, which have exponentials.

  // x[c] = sum over the taps of weight times input, ascending from 0, one fma after the other; the
  // history moves on by a token.
  void (*conv_step)(const ConvStep& conv, int32_t n, float* x);
  // Both products with S ascending in dk, one fma after the other from 0; the decayed S is rounded.
  // So a run gives the bits of its tokens one by one.
  void (*delta_run)(const DeltaRun& run);
  // x = exp(-rate ln(1 + exp(x + bias))), element by element: how much of a state is kept.
  void (*delta_decays)(const float* rate, const float* bias, int32_t n, float* x);
  // Ascending in dk, one fma after the other from 0; the decayed S and gain v are rounded. So a run
  // gives the bits of its tokens one by one.
  void (*decay_run)(const DecayRun& run);
  // Ascending in the states, one fma after the other from 0, the skip last; the decayed h and
  // step x are rounded. So a run gives the bits of its tokens one by one.
  void (*selective_scan)(const SelectiveScan& scan);

  // --- Logits. n is the vocabulary. REQUIRES: n >= 1.

  // The largest element; the first of equals. NaN never wins.
  int32_t (*argmax)(const float* x, int32_t n);
  // log(sum exp(x)), from the maximum down.
  float (*log_sum_exp)(const float* x, int32_t n);
  // y = exp(x - max) / sum; the router's and the sampler's. y may be x.
  void (*softmax)(const float* x, int32_t n, float* y);
};

}  // namespace weir::kernels
