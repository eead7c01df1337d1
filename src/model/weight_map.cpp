#include "model/weight_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace weir::model {

namespace {

constexpr std::array kFloatTypes = {DType::kF32, DType::kF16, DType::kBF16};

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::string types_text(std::span<const DType> types) {
  std::string out;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i > 0) out += i + 1 == types.size() ? " or " : ", ";
    out += dtype_name(types[i]);
  }
  return out;
}

// Llama's names where a family gives no other.
std::string_view default_name(std::string_view part) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kNames = {{
      {"embed_tokens", "model.embed_tokens"},
      {"norm", "model.norm"},
  }};
  for (const auto& [canonical, stored] : kNames)
    if (canonical == part) return stored;
  return part;
}

// Tensors that some files carry and no forward pass needs.
bool is_ignorable(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") ||
         name.ends_with(".attn.bias") ||  // Masks, of the GPTs.
         name.ends_with(".attn.masked_bias") || name.ends_with(".attention.bias") ||
         name.ends_with(".attention.masked_bias") ||
         name.starts_with("mtp.") ||  // Layers that guess further tokens.
         name.starts_with("model.mtp_") || name.starts_with("model.mtp.");
}

}  // namespace

void WeightBinder::reject(std::string message) {
  if (!error_) error_ = Error{ErrorCode::kConfig, std::move(message)};
}

template <class T>
T WeightBinder::unwrap(Result<T> result) {
  if (result) return *std::move(result);
  if (!error_) error_ = result.error();
  return T{};
}

std::string WeightBinder::stored_path(int layer, std::string_view part, int expert) const {
  std::string_view name = default_name(part);
  const auto path_of = [&](std::string_view stored) {
    const int in_one = spec_.layers_in_one;
    std::string path = layer == kWholeModel ? "" : layers_ + std::to_string(layer / in_one) + ".";
    path += stored;
    if (const size_t which = path.find('#'); in_one > 1 && which != path.npos)
      path.replace(which, 1, std::to_string(layer % in_one));
    if (const size_t star = path.find('*'); star != path.npos)
      path.replace(star, 1, std::to_string(expert));
    return rooted(root_, path);
  };
  const auto is_stored = [&](const std::string& path) {
    return checkpoint_.find(path + ".weight") != nullptr || checkpoint_.find(path) != nullptr;
  };
  bool renamed = false;
  for (const auto& [canonical, stored] : spec_.renames) {
    if (canonical != part) continue;
    if (std::string path = path_of(stored); is_stored(path)) return path;
    if (!renamed) name = stored;
    renamed = true;
  }
  return path_of(name);
}

std::string WeightBinder::rooted(const std::string& root, const std::string& path) {
  static constexpr std::string_view kUsual = "model.";
  if (root.empty()) return path;
  if (path.starts_with(kUsual)) return root + path.substr(kUsual.size());
  // What stands beside the model stands beside it there too.
  return root.ends_with(".model.") ? root.substr(0, root.size() - kUsual.size()) + path : path;
}

std::string WeightBinder::find_root() const {
  for (const std::string& root : spec_.roots)
    if (checkpoint_.find(rooted(root, "model.embed_tokens.weight")) != nullptr) return root;
  return {};
}

// Towers, and ModelSpec::guessing_layers.
bool WeightBinder::is_unused(std::string_view name) const {
  for (const std::string& tower : spec_.towers)
    if (name.starts_with(tower)) return true;
  const int last = layer_count(spec_);
  for (int layer = last; layer < last + spec_.guessing_layers; ++layer)
    if (name.starts_with(rooted(root_, layers_ + std::to_string(layer) + "."))) return true;
  return false;
}

bool WeightBinder::has_weight(int layer, std::string_view part) const {
  return checkpoint_.find(stored_path(layer, part) + ".weight") != nullptr;
}

const card::StoredTensor* WeightBinder::take(const std::string& name) {
  const card::StoredTensor* tensor = checkpoint_.find(name);
  if (tensor != nullptr) taken_.insert(name);
  return tensor;
}

const card::StoredTensor* WeightBinder::take(const std::string& name, std::span<const DType> types,
                                             std::span<const int64_t> shape,
                                             std::string_view note) {
  const std::string expected = types_text(types) + " " + shape_text(shape) + std::string(note);
  const card::StoredTensor* stored = take(name);
  if (stored == nullptr) {
    reject(checkpoint_.name() + ": tensor '" + name + "': expected " + expected +
           ", found no such tensor");
    return nullptr;
  }
  const Tensor& t = stored->tensor;
  const std::span<const int64_t> found(t.shape.data(), static_cast<size_t>(t.rank));
  if (std::ranges::count(types, t.type) == 0 || !std::ranges::equal(found, shape)) {
    reject(checkpoint_.file(*stored).name() + ": tensor '" + name + "': expected " + expected +
           ", found " + to_string(t));
    return nullptr;
  }
  return stored;
}

std::optional<WeightBinder::Module> WeightBinder::open(const std::string& path,
                                                       std::span<const int64_t> rows, int32_t k,
                                                       bool bias) {
  if (error_) return std::nullopt;
  Module m;
  m.path = path;
  m.k = k;
  if (bias) m.bias = take(path + ".bias", kFloatTypes, rows);
  std::vector<int64_t> shape(rows.begin(), rows.end());
  shape.push_back(k);
  m.n = rows.back();
  const card::StoredTensor* scales = checkpoint_.find(path + ".scales");
  m.turned = turned_ && scales == nullptr && path.starts_with(layers_);
  if (m.turned) std::swap(shape[0], shape[1]);
  if (scales == nullptr) {
    m.weight = take(path + ".weight", kFloatTypes, shape);
  } else if (!format_.quantised()) {
    reject("config.json: expected 'quantization', because " + checkpoint_.file(*scales).name() +
           " has a tensor '" + scales->name + "'; found nothing");
  } else {
    m.format = format_.of(path, scales->tensor.type);
    if (m.format.grid != card::MatrixFormat::Grid::kUniform || !m.format.biases) {
      reject(checkpoint_.name() + ": tensor '" + path +
             ".weight': expected numbers on a uniform grid with scales and biases, found another " +
             "format");
      return std::nullopt;
    }
    const std::string note = " (" + std::to_string(m.format.bits) + " bits in groups of " +
                             std::to_string(m.format.group) + ")";
    if (k % m.format.group != 0 || k > kernels::kMaxLayerK) {
      reject(checkpoint_.name() + ": tensor '" + path + ".weight': expected a width up to " +
             std::to_string(kernels::kMaxLayerK) + " that is a multiple of " +
             std::to_string(m.format.group) + ", found " + std::to_string(k));
      return std::nullopt;
    }
    shape.back() = m.format.row_words(k);
    static constexpr std::array kWords = {DType::kU32};
    m.weight = take(path + ".weight", kWords, shape, note);
    shape.back() = m.format.row_scales(k);
    m.scales = take(path + ".scales", kFloatTypes, shape, note);
    if (m.scales != nullptr) {
      const std::array same = {m.format.scale_type};
      m.biases = take(path + ".biases", same, shape, note);
    }
  }
  if (error_) return std::nullopt;
  return m;
}

Linear WeightBinder::float_linear(DType type, int32_t n, int32_t k, Precision precision) const {
  Linear linear;
  linear.n = n;
  linear.k = k;
  linear.floats = {.n = n, .k = k, .type = float_type(type)};
  // A checkpoint that stores float32 wants its precision.
  linear.bf16_prompts = arithmetic_.bf16_prompts && precision == Precision::kAsComputed &&
                        type != DType::kF32 && k % 32 == 0;
  return linear;
}

StoredMatrix::Piece WeightBinder::piece_of(const card::StoredTensor& stored, int64_t element,
                                           int64_t count) const {
  const auto size = static_cast<uint64_t>(dtype_bytes(stored.tensor.type));
  return {.file = &checkpoint_.file(stored),
          .file_number = stored.file,
          .offset = stored.offset + static_cast<uint64_t>(element) * size,
          .bytes = static_cast<uint64_t>(count) * size};
}

const float* WeightBinder::widened(const card::StoredTensor& stored, int64_t element, int64_t count,
                                   float offset, const RowRuns& runs) {
  tally_.add_vector(count);
  const Tensor& t = stored.tensor;
  return unwrap(
      store_.add_widened(t.type, t.data + element * dtype_bytes(t.type), count, offset, runs));
}

StoredMatrix WeightBinder::locate(const Module& m, int64_t row, int32_t n, Precision precision,
                                  const RowRuns& runs) {
  StoredMatrix out;
  out.runs = runs;
  out.name = m.weight->name;
  out.row_step = m.k;
  Linear& linear = out.linear;
  linear.n = n;
  linear.k = m.k;
  const auto add_rows = [&](const card::StoredTensor& t) {
    const int64_t columns = t.tensor.shape[static_cast<size_t>(t.tensor.rank - 1)];
    out.piece[static_cast<size_t>(out.pieces++)] =
        piece_of(t, row * columns, (runs.stored(n - 1) + 1) * columns);
  };
  if (m.turned) {
    out.pieces = 1;
    out.piece[0] = piece_of(*m.weight, row, m.n * m.k - row);
    out.row_step = 1;
    out.column_step = m.n;
  } else {
    add_rows(*m.weight);
  }
  if (m.scales == nullptr) {
    out.type = m.weight->tensor.type;
    linear = float_linear(out.type, n, m.k, precision);
  } else {
    add_rows(*m.scales);
    add_rows(*m.biases);
    out.format = m.format;
    linear.quantised = true;
    linear.int8 = arithmetic_.int8 && precision == Precision::kAsComputed;
    linear.bf16_prompts = arithmetic_.bf16_prompts && precision == Precision::kAsComputed;
    linear.quant = {.n = n,
                    .k = m.k,
                    .group = m.format.group,
                    .bits = kernels::container_bits(m.format.bits),
                    .scale_type = float_type(m.format.scale_type)};
  }
  if (m.bias != nullptr) linear.bias = widened(*m.bias, row, n, 0, runs);
  return out;
}

StoredMatrix WeightBinder::locate_turned(const Module& m, int64_t row, int32_t n) {
  StoredMatrix out = locate(m, row, n, Precision::kFloatActivations);
  out.linear =
      float_linear(out.format ? DType::kF32 : out.type, m.k, n, Precision::kFloatActivations);
  out.row_step = 1;
  out.column_step = m.k;
  return out;
}

Linear WeightBinder::place(const StoredMatrix& matrix, Placer& placer) {
  tally_.add(matrix);
  return unwrap(placer.place(matrix));
}

std::vector<SplitHead> WeightBinder::split_heads(int layer, const HeadModules& parts, int32_t heads,
                                                 int32_t first, int32_t second, int32_t k) {
  std::vector<SplitHead> out;
  if (has_weight(layer, parts.first)) {
    const std::array<int64_t, 2> first_rows = {heads, k}, second_rows = {heads, second};
    const auto turned = open(stored_path(layer, parts.first), first_rows, first, false);
    const auto plain = open(stored_path(layer, parts.second), second_rows, k, false);
    for (int64_t h = 0; turned && plain && h < heads; ++h)
      out.push_back({.turned = bind(*turned, h * k, k, Precision::kFloatActivations),
                     .plain = bind(*plain, h * second, second, Precision::kFloatActivations)});
    return out;
  }
  const int64_t head_rows = int64_t{first} + second;
  const std::array<int64_t, 1> rows = {heads * head_rows};
  const auto module = open(stored_path(layer, parts.both), rows, k, false);
  for (int64_t h = 0; module && h < heads; ++h)
    out.push_back(
        {.turned = place(locate_turned(*module, h * head_rows, first), store_),
         .plain = bind(*module, h * head_rows + first, second, Precision::kFloatActivations)});
  return out;
}

Linear WeightBinder::linear(int layer, std::string_view part, int32_t n, int32_t k, bool bias,
                            Precision precision) {
  const std::array<int64_t, 1> rows = {n};
  const auto module = open(stored_path(layer, part), rows, k, bias);
  return module ? bind(*module, 0, n, precision) : Linear{};
}

std::vector<Linear> WeightBinder::linears(int layer, std::span<const Part> parts, int32_t k,
                                          bool bias) {
  std::vector<Linear> out;
  while (out.size() < parts.size()) {
    const std::span<const Part> rest = parts.subspan(out.size());
    const auto begins_rest = [&](const FusedModules& f) {
      return f.parts.size() <= rest.size() &&
             std::ranges::equal(f.parts, rest.first(f.parts.size()), {}, {}, &Part::name);
    };
    const auto fused = std::ranges::find_if(spec_.fused, begins_rest);
    if (fused == spec_.fused.end()) {
      out.push_back(linear(layer, rest[0].name, rest[0].n, k, bias));
    } else {
      bind_fused(layer, *fused, rest.first(fused->parts.size()), k, bias, out);
    }
  }
  return out;
}

std::vector<Linear> WeightBinder::row_blocks(int layer, std::string_view part, int32_t count,
                                             int32_t n, int32_t k) {
  std::vector<Linear> out;
  const std::array<int64_t, 1> rows = {int64_t{count} * n};
  const auto module = open(stored_path(layer, part), rows, k, false);
  for (int64_t i = 0; module && i < count; ++i)
    out.push_back(bind(*module, i * n, n, Precision::kAsComputed));
  return out;
}

void WeightBinder::bind_fused(int layer, const FusedModules& fused, std::span<const Part> parts,
                              int32_t k, bool bias, std::vector<Linear>& out) {
  std::array<int64_t, 1> rows = {0};
  for (const Part& part : parts) rows[0] += part.n;
  const auto module = open(stored_path(layer, fused.stored), rows, k, bias);
  int64_t row = 0;
  for (const Part& part : parts) {
    const int64_t length = part.n / fused.runs;
    const RowRuns some =
        fused.runs == 1 ? RowRuns{} : RowRuns{.length = length, .step = rows[0] / fused.runs};
    out.push_back(module ? place(locate(*module, row, part.n, Precision::kAsComputed, some), store_)
                         : Linear{});
    row += length;
  }
}

template <class F>
void WeightBinder::for_experts(int layer, std::string_view part, int32_t count, int32_t n,
                               int32_t k, bool bias, F&& fn) {
  const std::string stacked = "mlp.switch_mlp." + std::string(part);
  if (has_weight(layer, stacked)) {
    const std::array<int64_t, 2> rows = {count, n};
    const auto module = open(stored_path(layer, stacked), rows, k, bias);
    for (int64_t e = 0; module && e < count && !error_; ++e)
      fn(locate(*module, e * n, n, Precision::kAsComputed));
    return;
  }
  const std::string single = "mlp.experts.*." + std::string(part);
  const std::array<int64_t, 1> rows = {n};
  for (int32_t e = 0; e < count && !error_; ++e) {
    const auto module = open(stored_path(layer, single, e), rows, k, bias);
    if (module) fn(locate(*module, 0, n, Precision::kAsComputed));
  }
}

bool WeightBinder::in_tensors(int layer, std::string_view part) const {
  return spec_.expert_tensors && !has_weight(layer, "mlp.switch_mlp." + std::string(part)) &&
         !has_weight(layer, "mlp.experts.*." + std::string(part));
}

bool WeightBinder::experts_transposed(int layer, int64_t width, int64_t hidden) const {
  const ExpertTensors& t = *spec_.expert_tensors;
  const card::StoredTensor* down = checkpoint_.find(stored_path(layer, t.down));
  if (width == hidden || down == nullptr || down->tensor.rank != 3) return t.transposed;
  const auto& shape = down->tensor.shape;
  if (shape[1] == width && shape[2] == hidden) return true;
  return shape[1] == hidden && shape[2] == width ? false : t.transposed;
}

template <class F>
void WeightBinder::for_tensor_experts(int layer, std::string_view part, int32_t count, int32_t n,
                                      int32_t k, bool bias, F&& fn) {
  const ExpertTensors& t = *spec_.expert_tensors;
  const bool down = part == "down_proj", up = part == "up_proj";
  const bool transposed = experts_transposed(layer, down ? k : n, down ? n : k);
  const std::string path = stored_path(layer, down ? t.down : t.gate_up);
  // Of the tensor's rows, which are this matrix's.
  const int64_t rows = down ? n : 2 * int64_t{n};
  const int64_t step = !down && t.interleaved ? 2 : 1;
  const int64_t first = !up ? 0 : t.interleaved ? 1 : n;
  const std::array<int64_t, 3> shape = {count, transposed ? k : rows, transposed ? rows : k};
  if (error_) return;
  const card::StoredTensor* weight = take(path, kFloatTypes, shape);
  const std::array<int64_t, 2> bias_shape = {count, rows};
  const card::StoredTensor* biases = bias ? take(path + "_bias", kFloatTypes, bias_shape) : nullptr;
  for (int64_t e = 0; e < count && !error_; ++e) {
    const int64_t at = e * rows * k + (transposed ? first : first * k);
    StoredMatrix matrix;
    matrix.name = path;
    matrix.type = weight->tensor.type;
    matrix.linear = float_linear(matrix.type, n, k, Precision::kAsComputed);
    matrix.piece[0] = piece_of(*weight, at, int64_t{n} * k);
    matrix.pieces = 1;
    matrix.row_step = transposed ? step : step * k;
    matrix.column_step = transposed ? rows : 1;
    if (biases != nullptr)
      matrix.linear.bias = widened(*biases, e * rows + first, n, 0, {.length = 1, .step = step});
    fn(matrix);
  }
}

std::vector<Linear> WeightBinder::experts(int layer, std::string_view part, int32_t count,
                                          int32_t n, int32_t k, bool bias, Placer& placer) {
  std::vector<Linear> out;
  const auto put = [&](const StoredMatrix& matrix) { out.push_back(place(matrix, placer)); };
  if (in_tensors(layer, part))
    for_tensor_experts(layer, part, count, n, k, bias, put);
  else
    for_experts(layer, part, count, n, k, bias, put);
  return out;
}

const float* WeightBinder::vector(int layer, std::string_view part, int32_t n, float offset,
                                  bool bare) {
  if (error_) return nullptr;
  const std::string path = stored_path(layer, part) + (bare ? "" : ".weight");
  // Ernie stores a vector as a matrix of one row, Kimi as [1, 1, n, 1].
  std::vector<int64_t> shape = {n};
  const card::StoredTensor* found = checkpoint_.find(path);
  if (bare && found != nullptr) {
    const Tensor& t = found->tensor;
    const std::span<const int64_t> dims(t.shape.data(), static_cast<size_t>(t.rank));
    const auto long_dims = std::ranges::count_if(dims, [](int64_t size) { return size != 1; });
    if (long_dims <= 1 && (n == 1 || std::ranges::count(dims, n) == 1))
      shape.assign(dims.begin(), dims.end());
  }
  const card::StoredTensor* stored = take(path, kFloatTypes, shape);
  if (stored == nullptr) return nullptr;
  return widened(*stored, 0, n, sums_stored_ ? 0 : offset);
}

float WeightBinder::number(int layer, std::string_view name, std::optional<float> fallback) {
  const std::string path = stored_path(layer, name);
  if (error_ || (fallback && checkpoint_.find(path) == nullptr)) return fallback.value_or(0);
  const std::array<int64_t, 1> shape = {1};
  const card::StoredTensor* found = checkpoint_.find(path);
  const bool scalar = found != nullptr && found->tensor.rank == 0;
  const card::StoredTensor* stored =
      take(path, kFloatTypes, std::span(shape).subspan(scalar ? 1 : 0));
  const float* value = stored == nullptr ? nullptr : widened(*stored, 0, 1, 0);
  return value == nullptr ? 0 : *value;
}

const float* WeightBinder::tensor(int layer, std::string_view name,
                                  std::span<const int64_t> shape) {
  const card::StoredTensor* stored =
      error_ ? nullptr : take(stored_path(layer, name), kFloatTypes, shape);
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return stored == nullptr ? nullptr : widened(*stored, 0, count, 0);
}

const float* WeightBinder::strips(int layer, std::string_view name, int32_t rows, int32_t columns,
                                  int32_t strip, float (*f)(float)) {
  const std::array<int64_t, 2> shape = {rows, columns};
  const card::StoredTensor* stored =
      error_ ? nullptr : take(stored_path(layer, name), kFloatTypes, shape);
  if (stored == nullptr) return nullptr;
  tally_.add_vector(int64_t{rows} * columns);
  const Tensor& t = stored->tensor;
  return unwrap(store_.add_strips(t.type, t.data, rows, columns, strip, f));
}

const int32_t* WeightBinder::choices(int layer, std::string_view name, int32_t rows,
                                     int32_t columns, int32_t count) {
  constexpr std::array kTypes = {DType::kI64, DType::kI32};
  const std::array<int64_t, 2> shape = {rows, columns};
  const card::StoredTensor* stored =
      error_ ? nullptr : take(stored_path(layer, name), kTypes, shape);
  if (stored == nullptr) return nullptr;
  std::byte* memory = unwrap(store_.allocate(int64_t{rows} * columns * 4));
  if (memory == nullptr) return nullptr;
  tally_.add_vector(int64_t{rows} * columns);
  auto* out = reinterpret_cast<int32_t*>(memory);
  const int64_t bytes = dtype_bytes(stored->tensor.type);
  for (int64_t i = 0; i < int64_t{rows} * columns; ++i) {
    int64_t wide = 0;
    int32_t narrow = 0;
    const std::byte* at = stored->tensor.data + i * bytes;
    if (bytes == 8)
      std::memcpy(&wide, at, 8);
    else
      std::memcpy(&narrow, at, 4), wide = narrow;
    const int32_t* row = out + i / columns * columns;
    if (wide < 0 || wide >= count || std::count(row, static_cast<const int32_t*>(out + i), wide)) {
      reject(checkpoint_.file(*stored).name() + ": tensor '" + stored->name +
             "': expected different numbers from 0 to " + std::to_string(count - 1) +
             " in each row, found " + std::to_string(wide) + " in row " +
             std::to_string(i / columns));
      return nullptr;
    }
    out[i] = static_cast<int32_t>(wide);
  }
  return out;
}

const float* WeightBinder::row_scales(int layer, std::string_view part, int32_t n, int32_t k) {
  const std::string path = stored_path(layer, part);
  if (error_ || checkpoint_.find(path + ".scales") != nullptr) return nullptr;
  const std::array<int64_t, 2> shape = {n, k};
  const card::StoredTensor* stored = take(path + ".weight", kFloatTypes, shape);
  if (stored == nullptr) return nullptr;
  const float* scales =
      unwrap(store_.add_row_scales(stored->tensor.type, stored->tensor.data, n, k));
  const auto is_unit = [](float scale) { return std::abs(scale - 1) < 0.01f; };
  if (scales == nullptr || std::all_of(scales, scales + n, is_unit)) return nullptr;
  tally_.add_vector(n);
  return scales;
}

std::string WeightBinder::stored_layers() const {
  const auto is_stored = [&](const std::string& layers) {
    return std::ranges::any_of(checkpoint_.tensors(), [&](const card::StoredTensor& stored) {
      return stored.name.starts_with(layers + "0.");
    });
  };
  const auto found = std::ranges::find_if(spec_.other_layers, is_stored);
  return found == spec_.other_layers.end() ? spec_.layers : *found;
}

bool WeightBinder::stores_turned() const {
  const card::StoredTensor* stored =
      spec_.turned_if.empty() ? nullptr : checkpoint_.find(layers_ + "0." + spec_.turned_if);
  return stored != nullptr && stored->tensor.rank == 2 &&
         stored->tensor.shape[0] == spec_.hidden_size &&
         stored->tensor.shape[1] != spec_.hidden_size;
}

bool WeightBinder::stores_sums() const {
  for (int layer = 0; !spec_.convolution.empty() && layer < layer_count(spec_); ++layer)
    if (const auto* stored = checkpoint_.find(stored_path(layer, spec_.convolution) + ".weight"))
      return stored->tensor.rank == 3 && stored->tensor.shape[2] == 1;
  return false;
}

const float* WeightBinder::convolution(int layer, std::string_view part, int32_t channels,
                                       int32_t taps) {
  if (error_) return nullptr;
  const std::string path = stored_path(layer, part) + ".weight";
  const card::StoredTensor* found = checkpoint_.find(path);
  const bool last = found == nullptr || found->tensor.rank != 3 || found->tensor.shape[1] == 1;
  const std::array<int64_t, 3> shape = {channels, last ? 1 : taps, last ? taps : 1};
  const card::StoredTensor* stored = take(path, kFloatTypes, shape);
  if (stored == nullptr) return nullptr;
  tally_.add_vector(int64_t{channels} * taps);
  return unwrap(store_.add_transposed(stored->tensor.type, stored->tensor.data, channels, taps));
}

NormWeights WeightBinder::norm(int layer, const Norm& norm, int32_t n) {
  const std::string& part = norm.module;
  NormWeights out{.kind = norm.kind, .eps = norm.eps};
  if (norm.weight) out.weight = vector(layer, part, n, norm.weight_offset);
  if (norm.bias) {
    const std::array<int64_t, 1> shape = {n};
    const card::StoredTensor* bias =
        error_ ? nullptr : take(stored_path(layer, part) + ".bias", kFloatTypes, shape);
    if (bias != nullptr) out.bias = widened(*bias, 0, n, 0);
  }
  return out;
}

std::vector<NormWeights> WeightBinder::head_norms(int layer, const Norm& norm, int32_t heads,
                                                  int32_t n) {
  const std::array<int64_t, 2> shape = {heads, n};
  std::vector<NormWeights> out(static_cast<size_t>(heads), {.kind = norm.kind, .eps = norm.eps});
  const std::string path = stored_path(layer, norm.module) + ".weight";
  if (path != stored_path(layer, norm.module, 1) + ".weight") {
    for (int32_t h = 0; h < heads && !error_; ++h) {
      const std::string own = stored_path(layer, norm.module, h) + ".weight";
      const card::StoredTensor* stored = take(own, kFloatTypes, std::span(shape).subspan(1));
      if (stored != nullptr)
        out[static_cast<size_t>(h)].weight = widened(*stored, 0, n, norm.weight_offset);
    }
    return out;
  }
  const card::StoredTensor* stored = error_ ? nullptr : take(path, kFloatTypes, shape);
  for (int64_t h = 0; stored != nullptr && h < heads; ++h)
    out[static_cast<size_t>(h)].weight = widened(*stored, h * n, n, norm.weight_offset);
  return out;
}

void WeightBinder::ignore(int layer, std::string_view part) {
  const std::string path = stored_path(layer, part);
  for (const char* suffix : {".weight", ".scales", ".biases", ".bias"}) take(path + suffix);
}

Result<void> WeightBinder::finish() const {
  if (error_) return tl::unexpected(*error_);
  for (const card::StoredTensor& stored : checkpoint_.tensors()) {
    if (taken_.contains(stored.name) || is_ignorable(stored.name) || is_unused(stored.name))
      continue;
    return fail(ErrorCode::kConfig, checkpoint_.file(stored).name() + ": tensor '" + stored.name +
                                        "': expected only tensors that " + spec_.family +
                                        " has, found " + to_string(stored.tensor));
  }
  return {};
}

}  // namespace weir::model
