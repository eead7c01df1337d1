#include "model/row_packer.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/float8_layout.h"

namespace weir::model {

namespace {

using kernels::kBlockRows;

bool all_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
}

}  // namespace

RowPacker::RowPacker(std::shared_ptr<const RowSource> source, int64_t first, const RowRuns& runs,
                     int32_t n, int32_t k, bool sorted)
    : source_(std::move(source)), first_(first), runs_(runs), n_(n), k_(k) {
  if (source_->shape() && (sorted || source_->order().empty()))
    codes_ = kernels::container_of(*source_->shape());
  if (codes_) codes_->n = n;
  const std::optional<RowSource::Float8Scales> scales = source_->float8();
  if (!scales) return;
  // The 16 rows of each block share their scales where no block reaches over an edge of them.
  const auto whole = [](int64_t rows) { return rows % kBlockRows == 0; };
  const bool shared = whole(scales->rows) && whole(first_) &&
                      (runs_.one() || (whole(runs_.length) && whole(runs_.step)));
  float8_ = kernels::Float8Matrix{
      .n = n, .k = k, .scale_columns = scales->columns, .row_scales = !shared};
}

Linear RowPacker::linear() const {
  Linear linear;
  linear.n = n_;
  linear.k = k_;
  if (codes_) {
    linear.held = Held::kCodes;
    linear.quant = kernels::matrix_of(*codes_);
  } else if (float8_) {
    linear.held = Held::kFloat8;
    linear.float8 = *float8_;
  } else {
    linear.floats = {.n = n_, .k = k_, .type = kernels::FloatType::kF32};
  }
  return linear;
}

template <class F>
void RowPacker::for_neighbours(int32_t begin, int32_t end, F&& fn) const {
  for (int32_t row = begin; row < end;) {
    int64_t length = end - row;
    if (!runs_.one()) length = std::min(length, runs_.length - row % runs_.length);
    fn(row - begin, first_ + runs_.stored(row), static_cast<int32_t>(length));
    row += static_cast<int32_t>(length);
  }
}

void RowPacker::read_floats(const RowSource::Bases& bases, int32_t begin, int32_t end,
                            float* out) const {
  for_neighbours(begin, end, [&](int32_t i, int64_t first, int32_t count) {
    source_->floats(bases, first, count, out + int64_t{i} * k_);
  });
}

bool RowPacker::pack(const RowSource::Bases& bases, int32_t begin, int32_t end,
                     const Target& to) const {
  CHECK(begin % kBlockRows == 0);
  if (codes_) return pack_codes(bases, begin, end, to);
  if (float8_) return pack_float8(bases, begin, end, to);
  float* out = reinterpret_cast<float*>(to.numbers) + int64_t{begin} * k_;
  read_floats(bases, begin, end, out);
  return all_finite({out, static_cast<size_t>(int64_t{end - begin} * k_)});
}

bool RowPacker::pack_codes(const RowSource::Bases& bases, int32_t begin, int32_t end,
                           const Target& to) const {
  const kernels::QuantShape& held = *codes_;
  kernels::RowBuffer buffer(*source_->shape(), kBlockRows);
  bool finite = true;
  for (; begin < end; begin += kBlockRows) {
    const int32_t count = std::min(kBlockRows, end - begin);
    for_neighbours(begin, begin + count, [&](int32_t i, int64_t first, int32_t some) {
      source_->rows(bases, first, some, buffer.rows() + i);
    });
    for (int32_t i = 0; i < count; ++i) finite = finite && kernels::all_finite(held, buffer.row(i));
    kernels::QuantMatrix before = kernels::matrix_of(held);
    before.n = begin;
    kernels::pack_block(held, buffer.rows(), count, to.numbers + kernels::packed_word_bytes(before),
                        to.scales + kernels::packed_scale_bytes(before));
  }
  return finite;
}

bool RowPacker::pack_float8(const RowSource::Bases& bases, int32_t begin, int32_t end,
                            const Target& to) const {
  const int32_t of_row = kernels::scales_of_row(*float8_);
  std::vector<uint8_t> numbers(static_cast<size_t>(kBlockRows) * static_cast<size_t>(k_));
  std::vector<float> scales(static_cast<size_t>(kBlockRows) * static_cast<size_t>(of_row));
  bool finite = true;
  for (; begin < end; begin += kBlockRows) {
    const int32_t count = std::min(kBlockRows, end - begin);
    for_neighbours(begin, begin + count, [&](int32_t i, int64_t first, int32_t some) {
      source_->float8_rows(bases, first, some, numbers.data() + int64_t{i} * k_,
                           scales.data() + int64_t{i} * of_row);
    });
    const std::span rows(numbers.data(), static_cast<size_t>(int64_t{count} * k_));
    const std::span factors(scales.data(), static_cast<size_t>(count * of_row));
    finite = finite &&
             std::ranges::none_of(rows, [](uint8_t byte) { return (byte & 0x7f) == 0x7f; }) &&
             std::ranges::all_of(
                 factors, [](float scale) { return std::isfinite(scale * kernels::kFloat8Unit); });
    kernels::Float8Matrix before = *float8_;
    before.n = begin;
    kernels::pack_float8_block(
        *float8_, rows.data(), factors.data(), count,
        to.numbers + kernels::packed_word_bytes(before),
        reinterpret_cast<float*>(to.scales + kernels::packed_scale_bytes(before)));
  }
  return finite;
}

bool RowPacker::pack_turned(const RowSource::Bases& bases, float* out) const {
  std::vector<float> row(static_cast<size_t>(k_));
  bool finite = true;
  for (int32_t r = 0; r < n_; ++r) {
    read_floats(bases, r, r + 1, row.data());
    finite = finite && all_finite(row);
    for (int64_t i = 0; i < k_; ++i) out[i * n_ + r] = row[static_cast<size_t>(i)];
  }
  return finite;
}

bool RowPacker::same(const RowPacker& other) const { return text() == other.text(); }

std::string RowPacker::text() const {
  std::string text = source_->layout();
  const int32_t columns = float8_ ? float8_->scale_columns : 0;
  for (const int64_t number : {first_, runs_.length, runs_.step, int64_t{n_}, int64_t{k_},
                               int64_t{codes_.has_value()}, int64_t{columns}})
    text.append(" ").append(std::to_string(number));
  if (float8_) text.append(float8_->row_scales ? " blocks, scales by row" : " blocks");
  return text;
}

}  // namespace weir::model
