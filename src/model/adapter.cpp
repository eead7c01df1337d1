#include "model/adapter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/dtype.h"
#include "model/stored_matrix.h"

namespace weir::model {

namespace {

using card::AdapterPart;
using card::StoredTensor;

constexpr int64_t kAlign = 64;
constexpr int64_t kTail = 64;  // Bytes that kernels may read after a matrix (ops.h).

float number_at(const Tensor& tensor, int64_t i) {
  if (tensor.type == DType::kF32) {
    float value;
    std::memcpy(&value, tensor.data + i * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, tensor.data + i * 2, 2);
  return tensor.type == DType::kF16 ? half_to_float(bits) : bf16_to_float(bits);
}

// A matrix of a file, or its transpose, by row and column.
class StoredNumbers2d {
 public:
  StoredNumbers2d(const StoredTensor& stored, bool turned)
      : tensor_(stored.tensor), turned_(turned) {}

  int64_t rows() const { return tensor_.shape[turned_ ? 1 : 0]; }
  int64_t columns() const { return tensor_.shape[turned_ ? 0 : 1]; }
  float at(int64_t row, int64_t column) const {
    return number_at(tensor_, turned_ ? column * rows() + row : row * columns() + column);
  }

 private:
  const Tensor& tensor_;
  bool turned_;
};

// Consecutive pieces of one buffer; without memory it only adds up.
class Pieces {
 public:
  explicit Pieces(std::byte* memory) : memory_(memory) {}

  bool filling() const { return memory_ != nullptr; }
  int64_t bytes() const { return used_; }
  std::byte* take(int64_t bytes) {
    std::byte* piece = filling() ? memory_ + used_ : nullptr;
    used_ += (bytes + kTail + kAlign - 1) / kAlign * kAlign;
    return piece;
  }
  float* floats(int64_t count) { return reinterpret_cast<float*>(take(count * 4)); }

 private:
  std::byte* memory_;
  int64_t used_ = 0;
};

// "layers.3.self_attn.q_proj" of any model around it.
std::string_view within_layers(std::string_view module) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = module.rfind(kLayers);
  return at == module.npos ? module : module.substr(at);
}

bool is_query_or_key(std::string_view module) {
  return module.ends_with(".q_proj") || module.ends_with(".k_proj");
}

}  // namespace

class AdapterBinder {
 public:
  AdapterBinder(const card::AdapterCard& card, std::span<const AdapterTarget> targets,
                const AdapterForm& form, const kernels::Ops& ops)
      : card_(card), targets_(targets), form_(form), ops_(ops) {
    for (size_t i = 0; i < targets.size(); ++i) {
      by_module_[targets[i].module].push_back(i);
      by_layer_[within_layers(targets[i].module)].push_back(i);
    }
  }

  Result<std::shared_ptr<const Adapter>> bind();

 private:
  // Which row of the adapter's tensors row i of a matrix is.
  struct Rows {
    const AdapterTarget& target;
    int32_t head_dim = 0;  // 0: they lie as the model has them.
    bool model_pairs = false;

    int64_t operator()(int64_t i) const;
  };

  std::span<const size_t> targets_of(std::string_view module) const;
  Result<void> check(const AdapterPart& part, const AdapterTarget& target) const;
  Result<void> add_all(Pieces& pieces, Adapter& out) const;
  Result<void> add(const AdapterPart& part, const AdapterTarget& target, Pieces& pieces,
                   AdaptedMatrix& out) const;
  void add_low_rank(const AdapterPart& part, const AdapterTarget& target, const Rows& rows,
                    Pieces& pieces, AdaptedMatrix& out) const;
  void add_whole(const AdapterPart& part, const AdapterTarget& target, const Rows& rows,
                 Pieces& pieces, AdaptedMatrix& out) const;
  Result<void> add_lengths(const AdapterPart& part, const AdapterTarget& target, const Rows& rows,
                           Pieces& pieces, AdaptedMatrix& out) const;
  void add_bias(const AdapterPart& part, const AdapterTarget& target, const Rows& rows,
                Pieces& pieces, AdaptedMatrix& out) const;
  void write(std::byte* to, int64_t i, float value) const;
  int64_t number_bytes() const { return form_.bf16 ? 2 : 4; }
  tl::unexpected<Error> wrong(const AdapterPart& part, const std::string& what,
                              ErrorCode code = ErrorCode::kConfig) const {
    return fail(code, card_.tensors().name() + ": module '" + part.module + "': " + what);
  }

  const card::AdapterCard& card_;
  std::span<const AdapterTarget> targets_;
  const AdapterForm& form_;
  const kernels::Ops& ops_;
  std::map<std::string_view, std::vector<size_t>> by_module_, by_layer_;
};

// Neighbours 2i and 2i + 1 of a head in one order are i and i + half of it in the other.
int64_t AdapterBinder::Rows::operator()(int64_t i) const {
  const int64_t row = target.stored_row(i);
  if (head_dim == 0) return row;
  const int64_t head = row / head_dim, at = row % head_dim, half = head_dim / 2;
  const int64_t other = model_pairs ? at % 2 * half + at / 2 : at % half * 2 + at / half;
  return head * head_dim + other;
}

std::span<const size_t> AdapterBinder::targets_of(std::string_view module) const {
  if (const auto found = by_module_.find(module); found != by_module_.end()) return found->second;
  const auto found = by_layer_.find(within_layers(module));
  return found == by_layer_.end() ? std::span<const size_t>{} : found->second;
}

Result<void> AdapterBinder::check(const AdapterPart& part, const AdapterTarget& target) const {
  const int64_t n = target.rows, k = target.weight.k;
  const auto shape = [](int64_t rows, int64_t columns) {
    std::string text = "[";
    text += std::to_string(rows) + ", " + std::to_string(columns) + "]";
    return text;
  };
  const auto expect = [&](const StoredTensor* stored, std::string_view what, bool turned,
                          int64_t rows, int64_t columns) -> Result<void> {
    if (stored == nullptr) return {};
    const StoredNumbers2d numbers(*stored, turned);
    if (numbers.rows() == rows && numbers.columns() == columns) return {};
    return wrong(part, std::string(what) + ": expected " +
                           (turned ? shape(columns, rows) : shape(rows, columns)) + ", found " +
                           to_string(stored->tensor));
  };
  const auto expect_vector = [&](const StoredTensor* stored, std::string_view what) -> Result<void> {
    if (stored == nullptr || stored->tensor.elements() == n) return {};
    return wrong(part, std::string(what) + ": expected " + std::to_string(n) + " numbers, found " +
                           to_string(stored->tensor));
  };
  if (part.rank > form_.rank_max)
    return wrong(part,
                 "expected a rank up to " + std::to_string(form_.rank_max) +
                     " (--max-lora-rank), found " + std::to_string(part.rank),
                 ErrorCode::kUnsupported);
  if (part.table != target.table && part.a != nullptr)
    return wrong(part, std::string("expected ") +
                           (target.table ? "an embedding, whose A has a column for each token"
                                         : "a linear layer") +
                           ", found the other");
  const bool table = target.table;
  WEIR_TRY(expect(part.a, "A", part.a_turned, part.rank, table ? n : k));
  WEIR_TRY(expect(part.b, "B", part.b_turned, table ? k : n, part.rank));
  WEIR_TRY(expect(part.whole, "weight", false, n, k));
  WEIR_TRY(expect_vector(part.magnitude, "magnitude"));
  WEIR_TRY(expect_vector(part.added_bias, "bias of B"));
  WEIR_TRY(expect_vector(part.whole_bias, "bias"));
  if (table && part.whole_bias != nullptr)
    return wrong(part, "expected an embedding without a bias, found one");
  if (part.magnitude != nullptr && !target.resident)
    return wrong(part, "expected weights in memory for a magnitude (DoRA); they are on disk",
                 ErrorCode::kUnsupported);
  return {};
}

void AdapterBinder::write(std::byte* to, int64_t i, float value) const {
  if (form_.bf16) {
    const uint16_t bits = float_to_bf16(value);
    std::memcpy(to + i * 2, &bits, 2);
  } else {
    std::memcpy(to + i * 4, &value, 4);
  }
}

void AdapterBinder::add_low_rank(const AdapterPart& part, const AdapterTarget& target,
                                 const Rows& rows, Pieces& pieces, AdaptedMatrix& out) const {
  // Of a table A's rows are the tokens', and B's those of the embedding's numbers.
  const bool table = target.table;
  const int64_t rank = part.rank, n = table ? target.weight.k : target.weight.n;
  const int64_t inner_rows = table ? target.weight.n : rank;
  const int64_t inner_columns = table ? rank : target.weight.k;
  const kernels::FloatType type =
      form_.bf16 ? kernels::FloatType::kBF16 : kernels::FloatType::kF32;
  std::byte* const inner = pieces.take(inner_rows * inner_columns * number_bytes());
  const int64_t blocks = (n + kernels::kBlockRows - 1) / kernels::kBlockRows;
  std::byte* const outer = pieces.take(blocks * kernels::kBlockRows * rank * number_bytes());
  if (!pieces.filling()) return;
  const StoredNumbers2d a(*part.a, part.a_turned), b(*part.b, part.b_turned);
  for (int64_t r = 0; r < inner_rows; ++r)
    for (int64_t c = 0; c < inner_columns; ++c)
      write(inner, r * inner_columns + c, table ? a.at(c, r) : a.at(r, c));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = table ? i : rows(i);
    const int64_t first = i / kernels::kBlockRows * kernels::kBlockRows * rank;
    for (int64_t r = 0; r < rank; ++r)
      write(outer, first + r * kernels::kBlockRows + i % kernels::kBlockRows, b.at(row, r));
  }
  out.inner.n = static_cast<int32_t>(inner_rows);
  out.inner.k = static_cast<int32_t>(inner_columns);
  out.inner.floats = {.n = out.inner.n, .k = out.inner.k, .type = type, .rows = inner};
  // Rows of prompts meet it as they meet the weight itself.
  out.inner.bf16_prompts = form_.bf16 && target.weight.bf16_prompts &&
                           target.weight.order == nullptr && out.inner.k % 32 == 0;
  out.outer = {.n = static_cast<int32_t>(n),
               .rank = static_cast<int32_t>(rank),
               .type = type,
               .blocks = outer};
  out.scale = static_cast<float>(part.scale);
}

void AdapterBinder::add_whole(const AdapterPart& part, const AdapterTarget& target,
                              const Rows& rows, Pieces& pieces, AdaptedMatrix& out) const {
  const Tensor& tensor = part.whole->tensor;
  const int64_t row_bytes = int64_t{target.weight.k} * dtype_bytes(tensor.type);
  std::byte* const memory = pieces.take(target.weight.n * row_bytes);
  if (!pieces.filling()) return;
  for (int64_t i = 0; i < target.weight.n; ++i)
    std::memcpy(memory + i * row_bytes, tensor.data + rows(i) * row_bytes,
                static_cast<size_t>(row_bytes));
  out.whole.n = target.weight.n;
  out.whole.k = target.weight.k;
  out.whole.floats = {.n = out.whole.n,
                      .k = out.whole.k,
                      .type = float_type(tensor.type),
                      .rows = memory};
}

// m / |W + s B A| of each row.
Result<void> AdapterBinder::add_lengths(const AdapterPart& part, const AdapterTarget& target,
                                        const Rows& rows, Pieces& pieces,
                                        AdaptedMatrix& out) const {
  float* const lengths = pieces.floats(target.weight.n);
  if (!pieces.filling()) return {};
  const Linear& weight = target.weight;
  const StoredNumbers2d a(*part.a, part.a_turned), b(*part.b, part.b_turned);
  std::vector<float> inner(static_cast<size_t>(part.rank) * static_cast<size_t>(weight.k));
  for (int64_t r = 0; r < part.rank; ++r)
    for (int64_t c = 0; c < weight.k; ++c)
      inner[static_cast<size_t>(r * weight.k + c)] =
          a.at(r, weight.order == nullptr ? c : weight.order[c]);
  std::vector<float> row(static_cast<size_t>(weight.k));
  for (int32_t i = 0; i < weight.n; ++i) {
    read_row(ops_, weight, i, row.data());
    for (int64_t r = 0; r < part.rank; ++r)
      ops_.add_scaled(inner.data() + r * weight.k,
                      static_cast<float>(part.scale) * b.at(rows(i), r), weight.k, row.data());
    double squares = 0;
    for (const float value : row) squares += static_cast<double>(value) * static_cast<double>(value);
    const double factor =
        static_cast<double>(number_at(part.magnitude->tensor, rows(i))) / std::sqrt(squares);
    if (!std::isfinite(factor))
      return wrong(part, "row " + std::to_string(i) +
                             ": expected a finite magnitude of a row that is not zero (DoRA), "
                             "found " + std::to_string(factor));
    lengths[i] = static_cast<float>(factor);
  }
  out.lengths = lengths;
  return {};
}

void AdapterBinder::add_bias(const AdapterPart& part, const AdapterTarget& target,
                             const Rows& rows, Pieces& pieces, AdaptedMatrix& out) const {
  float* const bias = pieces.floats(target.weight.n);
  if (!pieces.filling()) return;
  for (int32_t i = 0; i < target.weight.n; ++i) {
    float sum = 0;
    if (part.added_bias != nullptr)
      sum += static_cast<float>(part.scale) * number_at(part.added_bias->tensor, rows(i));
    // The model's own is added besides, wherever the product goes.
    if (part.whole_bias != nullptr)
      sum += number_at(part.whole_bias->tensor, rows(i)) -
             (target.weight.bias == nullptr ? 0 : target.weight.bias[i]);
    bias[i] = sum;
  }
  out.bias = bias;
}

Result<void> AdapterBinder::add(const AdapterPart& part, const AdapterTarget& target,
                                Pieces& pieces, AdaptedMatrix& out) const {
  Rows rows{.target = target};
  if (card_.paired_rows() != form_.paired_rows && is_query_or_key(part.module)) {
    rows.head_dim = form_.head_dim;
    rows.model_pairs = form_.paired_rows;
    if (form_.head_dim < 2 || target.rows % form_.head_dim != 0)
      return wrong(part, "expected rows of whole heads of " + std::to_string(form_.head_dim) +
                             ", found " + std::to_string(target.rows));
  }
  if (part.a != nullptr) add_low_rank(part, target, rows, pieces, out);
  if (part.whole != nullptr) add_whole(part, target, rows, pieces, out);
  if (part.magnitude != nullptr) WEIR_TRY(add_lengths(part, target, rows, pieces, out));
  if (part.added_bias != nullptr || part.whole_bias != nullptr)
    add_bias(part, target, rows, pieces, out);
  return {};
}

Result<void> AdapterBinder::add_all(Pieces& pieces, Adapter& out) const {
  for (const AdapterPart& part : card_.parts()) {
    const std::span<const size_t> found = targets_of(part.module);
    if (found.empty())
      return wrong(part, "expected a linear layer or the embedding of this model, found none of "
                         "that name that adapters may change");
    for (const size_t target : found) {
      if (!pieces.filling()) WEIR_TRY(check(part, targets_[target]));
      AdaptedMatrix matrix;
      WEIR_TRY(add(part, targets_[target], pieces, matrix));
      if (!pieces.filling()) continue;
      int32_t& index = out.index_[target];
      if (index >= 0) return wrong(part, "expected one module of that name, found two");
      index = static_cast<int32_t>(out.matrices_.size());
      out.rank_ = std::max(out.rank_, part.rank);
      out.scales_ &= matrix.scales();
      out.matrices_.push_back(matrix);
    }
  }
  return {};
}

Result<std::shared_ptr<const Adapter>> AdapterBinder::bind() {
  std::shared_ptr<Adapter> adapter(new Adapter());
  Pieces measure(nullptr);
  WEIR_TRY(add_all(measure, *adapter));
  if (measure.bytes() > form_.bytes_max)
    return fail(ErrorCode::kCapacity,
                card_.tensors().name() + ": expected an adapter of at most " +
                    std::to_string(form_.bytes_max) + " bytes in memory, found " +
                    std::to_string(measure.bytes()) +
                    " (--max-cpu-loras and --max-lora-rank say how much is kept for adapters)");
  WEIR_ASSIGN(adapter->memory_, HugeBuffer::allocate(static_cast<size_t>(measure.bytes())));
  adapter->index_.assign(targets_.size(), -1);
  Pieces fill(adapter->memory_.data());
  WEIR_TRY(add_all(fill, *adapter));
  return adapter;
}

Result<std::shared_ptr<const Adapter>> Adapter::bind(const card::AdapterCard& card,
                                                     std::span<const AdapterTarget> targets,
                                                     const AdapterForm& form,
                                                     const kernels::Ops& ops) {
  return AdapterBinder(card, targets, form, ops).bind();
}

}  // namespace weir::model
