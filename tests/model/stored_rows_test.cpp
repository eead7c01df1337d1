#include "model/rows/stored_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "card/safetensors.h"
#include "model/rows/quantising_rows.h"

namespace weir::model {
namespace {

using card::MatrixFormat;

// A file of a few tensors.
class File {
 public:
  template <class T>
  File& add(const std::string& name, DType type, std::vector<int64_t> shape,
            const std::vector<T>& numbers) {
    const size_t begin = data_.size();
    data_.resize(begin + numbers.size() * sizeof(T));
    std::memcpy(data_.data() + begin, numbers.data(), numbers.size() * sizeof(T));
    JsonWriter json(header_);
    header_ += header_.empty() ? "{" : ",";
    append_json_string(header_, name);
    header_ += ":";
    json.begin_object().field("dtype", dtype_name(type)).key("shape").begin_array();
    for (const int64_t size : shape) json.value(size);
    json.end_array().key("data_offsets").begin_array();
    json.value(static_cast<int64_t>(begin)).value(static_cast<int64_t>(data_.size()));
    json.end_array().end_object();
    return *this;
  }

  // The rows of module `m`, or the error.
  struct Read {
    std::vector<float> floats;
    std::string error;
    bool coded = false;
    std::vector<int32_t> order{};
    std::vector<float> in_order{};  // What rows() gives, as numbers.
  };
  Read read(const MatrixFormat& format, int64_t n, int32_t k) {
    const std::string text = header_ + "}";
    const uint64_t length = text.size();
    file_.assign(sizeof length, 0);
    std::memcpy(file_.data(), &length, sizeof length);
    file_.insert(file_.end(), text.begin(), text.end());
    file_.insert(file_.end(), data_.begin(), data_.end());
    auto checkpoint =
        card::open_safetensors(FileView::borrow("file", std::as_bytes(std::span(file_))));
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    TensorTaker taker(*checkpoint);
    const std::array<int64_t, 1> rows = {n};
    const auto stored = take_rows(taker, "m", format, rows, k);
    if (!stored) return {.floats = {}, .error = taker.error()->message};
    RowSource::Bases bases{};
    for (size_t i = 0; i < stored->tensors.size(); ++i) bases[i] = stored->tensors[i]->tensor.data;
    Read out;
    out.floats.resize(static_cast<size_t>(n * k));
    out.coded = stored->source->shape().has_value();
    stored->source->floats(bases, 0, static_cast<int32_t>(n), out.floats.data());
    out.order.assign(stored->source->order().begin(), stored->source->order().end());
    if (!out.coded) return out;
    out.in_order.resize(out.floats.size());
    kernels::RowBuffer buffer(*stored->source->shape(), 1);
    for (int64_t row = 0; row < n; ++row) {
      stored->source->rows(bases, row, 1, buffer.rows());
      kernels::dequantise_row(*stored->source->shape(), buffer.row(0),
                              out.in_order.data() + row * k);
    }
    return out;
  }

 private:
  std::string header_;
  std::vector<char> data_;
  std::vector<char> file_;
};

constexpr MatrixFormat kGptq = {
    .layout = MatrixFormat::Layout::kGptq, .bits = 4, .group = 16, .zero_less = 1};

// 8 rows of 32: column c of each row has code c % 16, zero points 8, scales 1 and 2.
File gptq(const std::vector<int32_t>& order) {
  File file;
  std::vector<uint32_t> words;
  for (uint32_t word = 0; word < 4; ++word)
    for (int row = 0; row < 8; ++row) words.push_back(word % 2 == 0 ? 0x76543210u : 0xfedcba98u);
  file.add("m.qweight", DType::kI32, {4, 8}, words);
  file.add("m.qzeros", DType::kI32, {2, 1}, std::vector<uint32_t>(2, 0x77777777u));
  std::vector<float> scales(8, 1);
  scales.resize(16, 2);
  file.add("m.scales", DType::kF32, {2, 8}, scales);
  if (!order.empty()) file.add("m.g_idx", DType::kI32, {32}, order);
  return file;
}

TEST(StoredRows, ReadsGptqWithAndWithoutAnOrder) {
  std::vector<int32_t> stairs(32), turns(32), uneven(32);
  for (size_t c = 0; c < 32; ++c) {
    stairs[c] = static_cast<int32_t>(c / 16);
    turns[c] = static_cast<int32_t>(c % 2);
    uneven[c] = static_cast<int32_t>(c % 3 == 1);
  }
  for (const auto& order : {std::vector<int32_t>{}, stairs, turns, uneven}) {
    const File::Read read = gptq(order).read(kGptq, 8, 32);
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.coded, order != uneven);
    ASSERT_EQ(read.order.size(), order == turns ? 32u : 0u);
    for (size_t i = 0; i < read.in_order.size(); ++i) {
      const size_t from = read.order.empty() ? i % 32 : static_cast<size_t>(read.order[i % 32]);
      EXPECT_EQ(read.in_order[i], read.floats[i / 32 * 32 + from]) << i;
    }
    for (size_t i = 0; i < read.floats.size(); ++i) {
      const size_t c = i % 32;
      const bool second = order.empty() ? c >= 16 : order[c] == 1;
      EXPECT_EQ(read.floats[i], (second ? 2.0f : 1.0f) * (static_cast<float>(c % 16) - 8)) << i;
    }
  }
}

TEST(StoredRows, RefusesTensorsThatDoNotGoTogether) {
  const auto error = [](File file, const MatrixFormat& format, int64_t n, int32_t k) {
    return file.read(format, n, k).error;
  };
  const auto holds = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  std::vector<int32_t> order(32, 0);
  order[5] = 2;
  holds(error(gptq(order), kGptq, 8, 32),
        "'m.g_idx': expected groups from 0 to 1, found 2 for column 5");
  order[5] = -1;
  holds(error(gptq(order), kGptq, 8, 32), "found -1 for column 5");
  holds(error(gptq({}), kGptq, 16, 32), "'m.qweight': expected I32 [4, 16] (gptq, 4 bits");
  MatrixFormat three = kGptq;
  three.bits = 3;
  holds(error(gptq({}), three, 8, 32), "expected rows and columns that fill whole words");
  MatrixFormat eight = kGptq;
  eight.group = 8;
  holds(error(gptq({}), eight, 8, 32), "'m.qzeros': expected I32 [4, 1]");
  const MatrixFormat packed = {
      .layout = MatrixFormat::Layout::kCompressed, .bits = 4, .group = 32, .symmetric = false};
  File shape;
  shape.add("m.weight_packed", DType::kI32, {8, 4}, std::vector<int32_t>(32, 0));
  shape.add("m.weight_shape", DType::kI64, {2}, std::vector<int64_t>{8, 31});
  holds(error(shape, packed, 8, 32), "'m.weight_shape': expected 8 and 32, found 8 and 31");
  File zeros;
  zeros.add("m.weight_packed", DType::kI32, {8, 4}, std::vector<int32_t>(32, 0));
  zeros.add("m.weight_scale", DType::kF32, {8, 1}, std::vector<float>(8, 1));
  holds(error(zeros, packed, 8, 32), "'m.weight_zero_point': expected zero points");
}

TEST(StoredRows, ReadsFp8ByBlockWithPartialEdges) {
  File file;
  file.add("m.weight", DType::kF8E4M3, {3, 5}, std::vector<uint8_t>(15, 0x38));  // 1
  file.add("m.weight_scale_inv", DType::kF32, {2, 2}, std::vector<float>{1, 2, 3, 4});
  const File::Read read = file.read({.layout = MatrixFormat::Layout::kFp8,
                                     .bits = 8,
                                     .group = 0,
                                     .floats = true,
                                     .block_rows = 2,
                                     .block_columns = 4},
                                    3, 5);
  ASSERT_EQ(read.error, "");
  EXPECT_EQ(read.floats, (std::vector<float>{1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 3, 3, 3, 3, 4}));
}

TEST(QuantisingRows, KeepsTheEdgeAndZero) {
  std::vector<uint8_t> codes(4);
  const std::vector<float> weights = {-3, 0, 1, 1.5f};
  const QuantisedGroup group = quantise_group(weights.data(), 4, 4, codes.data());
  EXPECT_EQ(group.scale * static_cast<float>(codes[0]) + group.bias, -3);
  EXPECT_EQ(group.scale * static_cast<float>(codes[1]) + group.bias, 0);
  const std::vector<float> zeros(4, 0);
  EXPECT_EQ(quantise_group(zeros.data(), 4, 4, codes.data()).bias, 0);
  EXPECT_EQ(codes, std::vector<uint8_t>(4, 0));
}

}  // namespace
}  // namespace weir::model
