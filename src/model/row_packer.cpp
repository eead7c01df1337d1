#include "model/row_packer.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

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
    held_ = kernels::container_of(*source_->shape());
  if (held_) held_->n = n;
  e4m3_columns_ = source_->e4m3_columns();
}

Linear RowPacker::linear() const {
  Linear linear;
  linear.n = n_;
  linear.k = k_;
  linear.quantised = held_.has_value();
  if (held_)
    linear.quant = kernels::matrix_of(*held_);
  else if (e4m3_columns_ != 0)
    linear.floats = {.n = n_,
                     .k = k_,
                     .type = kernels::FloatType::kE4M3,
                     .scale_rows = 1,
                     .scale_columns = e4m3_columns_};
  else
    linear.floats = {.n = n_, .k = k_, .type = kernels::FloatType::kF32};
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

bool RowPacker::pack_e4m3(const RowSource::Bases& bases, int32_t begin, int32_t end,
                          const Target& to) const {
  uint8_t* const numbers = to.words + int64_t{begin} * k_;
  float* const scales = reinterpret_cast<float*>(to.scales) + int64_t{begin} * e4m3_scales();
  for_neighbours(begin, end, [&](int32_t i, int64_t first, int32_t count) {
    source_->e4m3(bases, first, count, numbers + int64_t{i} * k_,
                  scales + int64_t{i} * e4m3_scales());
  });
  const int64_t rows = end - begin;
  return std::ranges::none_of(std::span(numbers, static_cast<size_t>(rows * k_)),
                              [](uint8_t byte) { return (byte & 0x7f) == 0x7f; }) &&
         all_finite({scales, static_cast<size_t>(rows * e4m3_scales())});
}

bool RowPacker::pack(const RowSource::Bases& bases, int32_t begin, int32_t end,
                     const Target& to) const {
  CHECK(begin % kBlockRows == 0);
  if (e4m3_columns_ != 0) return pack_e4m3(bases, begin, end, to);
  if (!held_) {
    float* out = to.floats + int64_t{begin} * k_;
    read_floats(bases, begin, end, out);
    return all_finite({out, static_cast<size_t>(int64_t{end - begin} * k_)});
  }
  const kernels::QuantShape& held = *held_;
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
    kernels::pack_block(held, buffer.rows(), count, to.words + kernels::packed_word_bytes(before),
                        to.scales + kernels::packed_scale_bytes(before));
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
  for (const int64_t number : {first_, runs_.length, runs_.step, int64_t{n_}, int64_t{k_},
                               int64_t{held_.has_value()}, int64_t{e4m3_columns_}})
    text.append(" ").append(std::to_string(number));
  return text;
}

}  // namespace weir::model
