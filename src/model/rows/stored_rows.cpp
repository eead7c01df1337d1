#include "model/rows/stored_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "model/rows/awq_rows.h"
#include "model/rows/fp4_rows.h"
#include "model/rows/fp8_rows.h"
#include "model/rows/gguf_rows.h"
#include "model/rows/gptq_rows.h"
#include "model/rows/signed_rows.h"
#include "model/rows/stored_numbers.h"
#include "model/rows/ternary_rows.h"

namespace weir::model {

namespace {

using card::MatrixFormat;
using card::StoredTensor;
using Layout = MatrixFormat::Layout;

constexpr std::array kWords = {DType::kI32};
constexpr std::array kMlxWords = {DType::kU32};
constexpr std::array kBytes = {DType::kU8};
constexpr std::array kSigned = {DType::kI8};
constexpr std::array kE4m3 = {DType::kF8E4M3};
constexpr std::array kF32 = {DType::kF32};
constexpr std::array kIndex = {DType::kI64};

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Takes the tensors of one module.
class RowTaker {
 public:
  RowTaker(TensorTaker& taker, const std::string& path, const MatrixFormat& format,
           std::span<const int64_t> rows, int32_t k)
      : taker_(taker),
        path_(path),
        format_(format),
        stack_(rows.begin(), rows.end() - 1),
        n_(rows.back()),
        k_(k),
        group_(format.group == 0 ? k : std::min<int64_t>(format.group, k)),
        groups_(divided_up(k, group_)) {}

  std::optional<StoredRows> take() {
    if (k_ > kernels::kMaxLayerK || (!stack_.empty() && format_.layout != Layout::kMlxFloats))
      return refuse(".weight",
                    stack_.empty() ? "a width up to " + std::to_string(kernels::kMaxLayerK)
                                   : std::string("one matrix"),
                    stack_.empty() ? std::to_string(k_) : std::string("a stack of them"));
    switch (format_.layout) {
      case Layout::kGptq:
        return gptq();
      case Layout::kAwq:
        return awq();
      case Layout::kCompressed:
        return compressed();
      case Layout::kModelopt:
        return modelopt();
      case Layout::kFp8:
        return fp8(has(".weight_scale_inv") ? ".weight_scale_inv" : ".weight_scale");
      case Layout::kMlxFloats:
        return mlx();
      case Layout::kBitNet:
        return ternary();
      case Layout::kMlx:
      case Layout::kOpenAi:
        break;
    }
    return refuse(".weight", "floats",
                  std::string("a module quantised as ") + format_.layout_name());
  }

 private:
  std::string note() const {
    return std::string(" (") + format_.layout_name() + ", " + std::to_string(format_.bits) +
           " bits, groups of " + std::to_string(group_) + ")";
  }
  bool has(const char* suffix) const { return taker_.find(path_ + suffix) != nullptr; }
  DType type_of(const char* suffix) const {
    const StoredTensor* tensor = taker_.find(path_ + suffix);
    return tensor == nullptr ? DType::kBool : tensor->tensor.type;
  }
  std::nullopt_t refuse(const char* suffix, const std::string& expected, const std::string& found) {
    const StoredTensor* tensor = taker_.find(path_ + suffix);
    if (tensor != nullptr)
      taker_.reject(*tensor, expected, found);
    else
      taker_.reject(taker_.checkpoint().name() + ": tensor '" + path_ + suffix + "': expected " +
                    expected + ", found " + found);
    return std::nullopt;
  }
  // The next piece: [stack..., rows, columns]. False after an error.
  bool piece(const char* suffix, std::span<const DType> types, std::vector<int64_t> shape) {
    shape.insert(shape.begin(), stack_.begin(), stack_.end());
    const StoredTensor* tensor = taker_.take(path_ + suffix, types, shape, note());
    if (tensor != nullptr) out_.tensors.push_back(tensor);
    return tensor != nullptr;
  }
  template <class Source, class... Args>
  std::optional<StoredRows> done(Args&&... args) {
    out_.source = std::make_shared<Source>(std::forward<Args>(args)...);
    return std::move(out_);
  }
  GroupedRows::Sizes sizes(size_t scales_piece) const {
    return {.k = k_,
            .bits = format_.bits,
            .group = group_,
            .groups = groups_,
            .scale_type = out_.tensors[scales_piece]->tensor.type};
  }

  bool is_here(const StoredTensor& tensor) const {
    return !taker_.checkpoint().file(tensor).only_beginning();
  }
  // Backwards, for any order takes the memory that another does.
  int32_t group_supposed(int64_t column) const {
    return static_cast<int32_t>((format_.reorders ? k_ - 1 - column : column) / group_);
  }

  // The groups of columns, where they are stored: the next piece, if they are not those of
  // neighbours. `none`: all of them may be -1.
  bool order(const char* suffix, bool none, GroupedRows::Sizes& all) {
    if (!has(suffix)) return true;
    if (!piece(suffix, kWords, {k_})) return false;
    const StoredTensor& tensor = *out_.tensors.back();
    bool neighbours = true, absent = none;
    std::vector<int32_t> group_of(static_cast<size_t>(k_));
    for (int64_t c = 0; c < k_; ++c) {
      const int32_t group = is_here(tensor) ? static_cast<int32_t>(load_u32(tensor.tensor.data, c))
                                            : group_supposed(c);
      absent = absent && group == -1;
      neighbours = neighbours && group == c / group_;
      group_of[static_cast<size_t>(c)] = group;
      if (!absent && (group < 0 || group >= groups_)) {
        taker_.reject(tensor, "groups from 0 to " + std::to_string(groups_ - 1),
                      std::to_string(group) + " for column " + std::to_string(c));
        return false;
      }
    }
    if (neighbours || absent) {
      out_.tensors.pop_back();
      return true;
    }
    all.order_piece = static_cast<int>(out_.tensors.size()) - 1;
    std::vector<int32_t> columns(static_cast<size_t>(k_));
    std::iota(columns.begin(), columns.end(), 0);
    std::ranges::stable_sort(columns, {},
                             [&](int32_t c) { return group_of[static_cast<size_t>(c)]; });
    int64_t at = 0;
    const bool full = std::ranges::all_of(
        columns, [&](int32_t c) { return group_of[static_cast<size_t>(c)] == at++ / group_; });
    if (full) all.order = std::move(columns);
    return true;
  }

  std::optional<StoredRows> gptq() {
    const BitStream stream = {.bits = format_.bits};
    if (int64_t{k_} * format_.bits % 32 != 0 || n_ * format_.bits % 32 != 0)
      return refuse(".qweight", "rows and columns that fill whole words of 32 bits",
                    std::to_string(n_) + " by " + std::to_string(k_) + " of " +
                        std::to_string(format_.bits) + " bits");
    if (!piece(".qweight", kWords, {stream.words(k_), n_}) ||
        !piece(".qzeros", kWords, {groups_, stream.words(n_)}) ||
        !piece(".scales", kFloatTypes, {groups_, n_}))
      return std::nullopt;
    GroupedRows::Sizes all = sizes(2);
    if (!order(".g_idx", false, all)) return std::nullopt;
    return done<GptqRows>(all, n_, format_.zero_less);
  }

  std::optional<StoredRows> awq() {
    if (n_ % 8 != 0)
      return refuse(".qweight", "rows that fill whole words, a multiple of 8", std::to_string(n_));
    if (!piece(".qweight", kWords, {k_, n_ / 8}) || !piece(".qzeros", kWords, {groups_, n_ / 8}) ||
        !piece(".scales", kFloatTypes, {groups_, n_}))
      return std::nullopt;
    return done<AwqRows>(sizes(2), n_);
  }

  std::optional<StoredRows> compressed() {
    if (!has(".weight_packed")) {
      if (type_of(".weight") == DType::kI8) return integers(".weight", {});
      return format_.floats && type_of(".weight_scale") == DType::kU8 ? mxfp8(".weight_scale")
                                                                      : fp8(".weight_scale");
    }
    if (type_of(".weight_packed") != DType::kU8) return integers(".weight_packed", packing());
    const bool global = has(".weight_global_scale");
    return fp4(".weight_packed", ".weight_scale", global ? ".weight_global_scale" : nullptr,
               Fp4Rows::Matrix::kDivisor);
  }

  // Files of before June 2026 leave gaps; the width tells.
  BitStream packing() const {
    BitStream stream = {.bits = format_.bits};
    const Tensor& packed = taker_.find(path_ + ".weight_packed")->tensor;
    const BitStream older = {.bits = format_.bits, .gaps = true};
    const int64_t width = packed.rank == 2 ? packed.shape[1] : 0;
    return width != stream.words(k_) && width == older.words(k_) ? older : stream;
  }

  std::optional<StoredRows> integers(const char* suffix, const BitStream& stream) {
    SignedRows::Layout layout = {.packed = stream.bits != 0, .stream = stream};
    if (format_.floats)
      return refuse(suffix, "floats, as config.json says of this module", "integers");
    if (!(layout.packed ? piece(suffix, kWords, {n_, stream.words(k_)})
                        : piece(suffix, kSigned, {n_, k_})))
      return std::nullopt;
    if (layout.packed && has(".weight_shape") && !check_shape()) return std::nullopt;
    const bool whole = groups_ == 1 && scalar(".weight_scale");
    if (!(whole ? scale_of_matrix(".weight_scale", kFloatTypes)
                : piece(".weight_scale", kFloatTypes, {n_, groups_})))
      return std::nullopt;
    layout.whole = whole;
    GroupedRows::Sizes all = sizes(1);
    if (!layout.packed) all.bits = 8;
    if (has(".weight_zero_point")) {
      layout.zeros_piece = 2;
      if (!(layout.packed ? piece(".weight_zero_point", kWords, {stream.words(n_), groups_})
                          : zeros_in_bytes(whole)))
        return std::nullopt;
    } else if (!format_.symmetric) {
      return refuse(".weight_zero_point", "zero points, as config.json says 'symmetric': false",
                    "no such tensor");
    } else {
      all.zero = static_cast<uint8_t>(1 << (all.bits - 1));
    }
    if (!order(".weight_g_idx", true, all)) return std::nullopt;
    return done<SignedRows>(all, layout);
  }

  bool zeros_in_bytes(bool whole) {
    return whole ? scale_of_matrix(".weight_zero_point", kSigned)
                 : piece(".weight_zero_point", kSigned, {n_, groups_});
  }

  // weight_shape says what the packed words do not.
  bool check_shape() {
    const std::array<int64_t, 1> two = {2};
    const StoredTensor* tensor = taker_.take(path_ + ".weight_shape", kIndex, two, note());
    if (tensor == nullptr) return false;
    if (!is_here(*tensor)) return true;
    std::array<int64_t, 2> found{};
    std::memcpy(found.data(), tensor->tensor.data, sizeof found);
    if (found[0] == n_ && found[1] == k_) return true;
    taker_.reject(*tensor, std::to_string(n_) + " and " + std::to_string(k_),
                  std::to_string(found[0]) + " and " + std::to_string(found[1]));
    return false;
  }

  std::optional<StoredRows> modelopt() {
    if (has(".pre_quant_scale"))
      return refuse(".pre_quant_scale", "weights alone to be quantised",
                    "a scale for the layer's input, which is not read");
    if (type_of(".weight") == DType::kF8E4M3) return fp8(".weight_scale");
    return fp4(".weight", ".weight_scale", ".weight_scale_2", Fp4Rows::Matrix::kFactor);
  }

  std::optional<StoredRows> mlx() {
    if (format_.bits == 8) return mxfp8(".scales");
    return fp4(".weight", ".scales", nullptr, Fp4Rows::Matrix::kNone);
  }

  // `matrix`: the tensor of the matrix's float, or null.
  std::optional<StoredRows> fp4(const char* codes, const char* scales, const char* matrix,
                                Fp4Rows::Matrix meaning) {
    if (k_ % group_ != 0 || common_group(k_, group_) != group_)
      return refuse(codes,
                    "a width that is a multiple of the group, " + std::to_string(format_.group),
                    std::to_string(k_));
    if (!format_.floats) return refuse(codes, "integers, as config.json says", "floats of 4 bits");
    const bool words = format_.layout == Layout::kMlxFloats;
    // E8M0 comes as U8; E4M3 as itself, and as U8 from MLX.
    const bool e8m0 = group_ == 32;
    if (!(words ? piece(codes, kMlxWords, {n_, k_ / 8}) : piece(codes, kBytes, {n_, k_ / 2})) ||
        !piece(scales, e8m0 || words ? std::span<const DType>(kBytes) : kE4m3, {n_, groups_}) ||
        (matrix != nullptr && !scale_of_matrix(matrix, kF32)))
      return std::nullopt;
    return done<Fp4Rows>(k_, static_cast<int32_t>(group_),
                         e8m0 ? kernels::ByteScale::kE8m0 : kernels::ByteScale::kE4m3,
                         matrix == nullptr ? Fp4Rows::Matrix::kNone : meaning);
  }

  std::optional<StoredRows> mxfp8(const char* scales) {
    const bool words = format_.layout == Layout::kMlxFloats;
    if (k_ % 32 != 0)
      return refuse(".weight", "a width that is a multiple of the group, 32", std::to_string(k_));
    if (!(words ? piece(".weight", kMlxWords, {n_, k_ / 4}) : piece(".weight", kE4m3, {n_, k_})) ||
        !piece(scales, kBytes, {n_, k_ / 32}))
      return std::nullopt;
    return done<Fp8Rows>("g32", k_,
                         Fp8Rows::Scales{.type = DType::kU8, .columns = 32, .row_step = k_ / 32});
  }

  // By the matrix, row, block or group, as the scales' shape is.
  std::optional<StoredRows> fp8(const char* suffix) {
    if (!piece(".weight", kE4m3, {n_, k_})) return std::nullopt;
    if (!format_.floats) return refuse(".weight", "integers, as config.json says", "FP8");
    Fp8Rows::Scales scales = {.columns = k_};
    const int64_t down = format_.block_rows, across = format_.block_columns;
    std::string name = "by row";
    if (down > 0) {
      name = "by block";
      scales = {.rows = down, .columns = across, .row_step = divided_up(k_, across)};
      if (!piece(suffix, kFloatTypes, {divided_up(n_, down), divided_up(k_, across)}))
        return std::nullopt;
    } else if (scalar(suffix)) {
      name = "by matrix";
      scales.rows = n_;
      if (!scale_of_matrix(suffix, kFloatTypes)) return std::nullopt;
    } else if (groups_ > 1 && format_.layout == Layout::kCompressed) {
      name = std::string("g").append(std::to_string(group_));
      scales = {.columns = group_, .row_step = groups_};
      if (!piece(suffix, kFloatTypes, {n_, groups_})) return std::nullopt;
    } else {
      scales.row_step = 1;
      const StoredTensor* found = taker_.find(path_ + suffix);
      const bool flat = found != nullptr && found->tensor.rank == 1;
      if (!piece(suffix, kFloatTypes,
                 flat ? std::vector<int64_t>{n_} : std::vector<int64_t>{n_, 1}))
        return std::nullopt;
    }
    scales.type = out_.tensors[1]->tensor.type;
    return done<Fp8Rows>(name, k_, scales);
  }

  std::optional<StoredRows> ternary() {
    if (n_ % 4 != 0)
      return refuse(".weight", "rows in fours, of a byte each", std::to_string(n_) + " rows");
    if (!piece(".weight", kBytes, {n_ / 4, k_}) || !scale_of_matrix(".weight_scale", kFloatTypes))
      return std::nullopt;
    return done<TernaryRows>(k_, n_, out_.tensors[1]->tensor.type, format_.divides);
  }

  bool scalar(const char* suffix) const {
    const StoredTensor* tensor = taker_.find(path_ + suffix);
    return tensor != nullptr && tensor->tensor.elements() == 1;
  }
  // One number, in any rank, or one for each stacked matrix.
  bool scale_of_matrix(const char* suffix, std::span<const DType> types) {
    const StoredTensor* tensor = taker_.find(path_ + suffix);
    std::vector<int64_t> shape = {1};
    if (scalar(suffix))
      shape.assign(tensor->tensor.shape.data(), tensor->tensor.shape.data() + tensor->tensor.rank);
    return piece(suffix, types, std::move(shape));
  }

  TensorTaker& taker_;
  const std::string& path_;
  const MatrixFormat& format_;
  std::vector<int64_t> stack_;
  int64_t n_;
  int32_t k_;
  int64_t group_, groups_;
  StoredRows out_;
};

}  // namespace

std::optional<StoredRows> take_rows(TensorTaker& taker, const std::string& path,
                                    const MatrixFormat& format, std::span<const int64_t> rows,
                                    int32_t k) {
  return RowTaker(taker, path, format, rows, k).take();
}

std::optional<StoredRows> take_blocks(TensorTaker& taker, const std::string& path, int64_t matrices,
                                      int64_t n, int32_t k) {
  constexpr int32_t kGroup = 32;
  if (k % kGroup != 0 || k > kernels::kMaxLayerK) {
    taker.reject(taker.checkpoint().name() + ": tensor '" + path +
                 "_blocks': expected a width that is a multiple of 32 up to " +
                 std::to_string(kernels::kMaxLayerK) + ", found " + std::to_string(k));
    return std::nullopt;
  }
  const std::array<int64_t, 4> blocks = {matrices, n, k / kGroup, kGroup / 2};
  StoredRows out;
  out.tensors = {taker.take(path + "_blocks", kBytes, blocks, " (mxfp4)"),
                 taker.take(path + "_scales", kBytes, std::span(blocks).first(3), " (mxfp4)")};
  if (std::ranges::count(out.tensors, nullptr) > 0) return std::nullopt;
  out.source =
      std::make_shared<Fp4Rows>(k, kGroup, kernels::ByteScale::kE8m0, Fp4Rows::Matrix::kNone);
  return out;
}

std::optional<StoredRows> take_gguf(TensorTaker& taker, const StoredTensor& weight,
                                    const std::string& factor, std::span<const int64_t> rows,
                                    int32_t k) {
  const card::BlockFormat& format = *weight.blocks;
  if (k % format.numbers != 0 || k > kernels::kMaxLayerK) {
    taker.reject(weight,
                 "a width up to " + std::to_string(kernels::kMaxLayerK) +
                     " that is a multiple of " + std::to_string(format.numbers),
                 std::to_string(k));
    return std::nullopt;
  }
  std::vector<int64_t> shape(rows.begin(), rows.end());
  shape.push_back(int64_t{k} / format.numbers * format.bytes);
  const std::string note = " (" + std::string(format.name) + ", " + std::to_string(format.numbers) +
                           " numbers in " + std::to_string(format.bytes) + " bytes)";
  StoredRows out;
  out.tensors = {taker.take(weight.name, kBytes, shape, note)};
  const bool scaled =
      format.type == card::BlockFormat::Type::kNvfp4 && taker.find(factor) != nullptr;
  if (scaled) {
    const std::array<int64_t, 1> matrices = {rows.size() > 1 ? rows[0] : 1};
    out.tensors.push_back(taker.take(factor, kF32, matrices));
  }
  if (std::ranges::count(out.tensors, nullptr) > 0) return std::nullopt;
  out.source = std::make_shared<GgufRows>(format, static_cast<int32_t>(rows.back()), k, scaled);
  return out;
}

}  // namespace weir::model
