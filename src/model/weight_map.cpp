#include "model/weight_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "model/rows/float_rows.h"
#include "model/rows/quantising_rows.h"

namespace weir::model {

namespace {

// Tensors that say that a module is quantised, the first of those that it has.
constexpr std::array kQuantisedBy = {".qweight", ".weight_packed", ".scales", ".weight_scale_inv",
                                     ".weight_scale"};

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

// Scales of activations, or of keys and values, that a quantised checkpoint says for arithmetic in
// few bits: here it is done in more.
bool is_activation_scale(std::string_view name) {
  static constexpr std::array kNames = {"input_scale",      "input_global_scale",
                                        "input_zero_point", "output_scale",
                                        "activation_scale", "activation_scale_ub",
                                        "input_scale_ub",   "k_scale",
                                        "v_scale",          "q_scale"};
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return std::ranges::count(kNames, last) > 0;
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

// A convolution of one tap in each direction is a matrix, whose other dimensions are 1.
bool is_one_tap(const Tensor& tensor, std::span<const int64_t> matrix) {
  if (tensor.rank != 4 || matrix.size() != 2 || tensor.shape[0] != matrix[0]) return false;
  return tensor.shape[2] == 1 && ((tensor.shape[1] == matrix[1] && tensor.shape[3] == 1) ||
                                  (tensor.shape[1] == 1 && tensor.shape[3] == matrix[1]));
}

}  // namespace

template <class T>
T WeightBinder::unwrap(Result<T> result) {
  if (result) return *std::move(result);
  taker_.refuse(result.error());
  return T{};
}

std::string WeightBinder::stored_path(int layer, std::string_view part, int expert) const {
  std::string_view name = default_name(part);
  const auto path_of = [&](std::string_view stored) {
    const int in_one = spec_.layers_in_one;
    std::string path = layer == kWholeModel ? "" : layers_;
    if (layer != kWholeModel && spec_.numbered_layers) path += std::to_string(layer / in_one) + ".";
    path += stored;
    if (const size_t which = path.find('#'); in_one > 1 && which != path.npos)
      path.replace(which, 1, std::to_string(layer % in_one));
    if (const size_t star = path.find('*'); star != path.npos)
      path.replace(star, 1, std::to_string(expert));
    return rooted(root_, path);
  };
  const auto is_stored = [&](const std::string& path) {
    return stores_module(path) || checkpoint_.find(path) != nullptr;
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
  std::string_view beside = root;
  while (beside.ends_with(".model.")) beside.remove_suffix(kUsual.size());
  return beside.size() < root.size() ? std::string(beside) + path : path;
}

std::string WeightBinder::find_root() const {
  constexpr std::string_view kPart = "embed_tokens";
  std::vector<std::string> names = {std::string(default_name(kPart))};
  for (const auto& [canonical, stored] : spec_.renames)
    if (canonical == kPart) names.push_back(stored);
  for (const std::string& root : spec_.roots)
    for (const std::string& name : names)
      if (checkpoint_.find(rooted(root, name + ".weight")) != nullptr) return root;
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
  return stores_module(stored_path(layer, part));
}

bool WeightBinder::stores_module(const std::string& path) const {
  return std::ranges::any_of(
      std::array{".weight", ".qweight", ".weight_packed"},
      [&](const char* suffix) { return checkpoint_.find(path + suffix) != nullptr; });
}

bool WeightBinder::has_tensor(int layer, std::string_view name) const {
  return checkpoint_.find(stored_path(layer, name)) != nullptr;
}

const card::StoredTensor* WeightBinder::quantised_by(const std::string& path) const {
  const card::StoredTensor* weight = checkpoint_.find(path + ".weight");
  if (weight != nullptr && std::ranges::count(kFloatTypes, weight->tensor.type) > 0) return nullptr;
  for (const char* suffix : kQuantisedBy)
    if (const card::StoredTensor* found = checkpoint_.find(path + suffix)) return found;
  return nullptr;
}

std::optional<WeightBinder::Module> WeightBinder::open(const std::string& path,
                                                       std::span<const int64_t> rows, int32_t k,
                                                       bool bias, bool stays) {
  if (failed()) return std::nullopt;
  Module m;
  m.path = path;
  m.k = k;
  if (bias) m.bias = take(path + ".bias", kFloatTypes, rows);
  std::vector<int64_t> shape(rows.begin(), rows.end());
  shape.push_back(k);
  m.n = rows.back();
  m.stacked = rows.size() > 1;
  if (const card::StoredTensor* weight = checkpoint_.find(path + ".weight");
      weight != nullptr && weight->blocks != nullptr) {
    m.stored = take_gguf(taker_, *weight, path + ".scale", rows, k);
    if (failed()) return std::nullopt;
    return m;
  }
  const card::StoredTensor* quantised = quantised_by(path);
  m.turned = turned_ && quantised == nullptr && path.starts_with(layers_);
  if (m.turned) std::swap(shape[0], shape[1]);
  if (quantised == nullptr) {
    if (const card::StoredTensor* weight = checkpoint_.find(path + ".weight");
        weight != nullptr && is_one_tap(weight->tensor, shape))
      shape.assign(weight->tensor.shape.begin(),
                   weight->tensor.shape.begin() + weight->tensor.rank);
    m.weight = take(path + ".weight", kFloatTypes, shape);
    if (m.weight != nullptr && !stays && !(m.turned && m.stacked))
      m.stored = quantised_floats(*m.weight, path, m.n, k, m.turned);
  } else if (!format_.quantised()) {
    taker_.reject("config.json: expected 'quantization' or 'quantization_config', because " +
                  checkpoint_.file(*quantised).name() + " has a tensor '" + quantised->name +
                  "'; found nothing");
  } else {
    m.format = unwrap(format_.of(path));
    if (failed()) return std::nullopt;
    if (m.format.layout == card::MatrixFormat::Layout::kMlx)
      open_affine(m, std::move(shape));
    else
      m.stored = take_rows(taker_, path, m.format, rows, k);
  }
  if (failed()) return std::nullopt;
  modules_.push_back({.path = path,
                      .rows = {rows.begin(), rows.end()},
                      .k = k,
                      .quantised = quantised != nullptr,
                      .format = m.format,
                      .turned = m.turned});
  return m;
}

std::optional<WeightBinder::Module> WeightBinder::open_part(int layer, std::string_view part,
                                                            int64_t rows, int32_t k, bool bias) {
  const std::array<int64_t, 1> shape = {rows};
  auto module = open(stored_path(layer, part), shape, k, bias);
  if (!module || layer == kWholeModel || !module->stored) return module;
  const std::span<const int32_t> order = module->stored->source->order();
  if (order.empty()) return module;
  std::byte* memory = unwrap(store_.allocate(static_cast<int64_t>(order.size_bytes())));
  if (memory == nullptr) return std::nullopt;
  tally_.add_vector(k);
  std::ranges::copy(order, reinterpret_cast<int32_t*>(memory));
  module->order = reinterpret_cast<const int32_t*>(memory);
  return module;
}

std::optional<StoredRows> WeightBinder::quantised_floats(const card::StoredTensor& tensor,
                                                         const std::string& path, int64_t n,
                                                         int32_t k, bool turned) const {
  if (arithmetic_.quantise_bits == 0 || k % 32 != 0 || k > kernels::kMaxLayerK) return std::nullopt;
  const DType type = tensor.tensor.type;
  auto floats = std::make_shared<FloatRows>(type, k, turned ? n : 0);
  const int32_t bits = is_router(path) ? 8 : arithmetic_.quantise_bits;
  return StoredRows{
      std::make_shared<QuantisingRows>(std::move(floats), k, bits, k % 64 == 0 ? 64 : 32, type),
      {&tensor}};
}

bool WeightBinder::open_affine(Module& m, std::vector<int64_t> shape) {
  const std::string note = " (" + std::to_string(m.format.bits) + " bits in groups of " +
                           std::to_string(m.format.group) + ")";
  if (m.k % m.format.group != 0 || m.k > kernels::kMaxLayerK) {
    taker_.reject(checkpoint_.name() + ": tensor '" + m.path + ".weight': expected a width up to " +
                  std::to_string(kernels::kMaxLayerK) + " that is a multiple of " +
                  std::to_string(m.format.group) + ", found " + std::to_string(m.k));
    return false;
  }
  static constexpr std::array kWords = {DType::kU32};
  shape.back() = m.format.row_words(m.k);
  m.weight = take(m.path + ".weight", kWords, shape, note);
  shape.back() = m.format.row_scales(m.k);
  m.scales = take(m.path + ".scales", kFloatTypes, shape, note);
  if (m.scales == nullptr) return false;
  const std::array same = {m.scales->tensor.type};
  m.biases = take(m.path + ".biases", same, shape, note);
  return m.biases != nullptr;
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
  if (m.stored) {
    const int64_t matrix = row / m.n;
    const Tensor& first = m.stored->tensors[0]->tensor;
    out = locate_rows(*m.stored, matrix, m.stacked ? first.shape[0] : 1, row % m.n, runs, n, m.k,
                      precision, m.order);
    if (m.bias != nullptr) out.linear.bias = widened(*m.bias, row, n, 0, runs);
    return out;
  }
  out.runs = runs;
  out.name = m.weight->name;
  out.row_step = m.k;
  Linear& linear = out.linear;
  linear.n = n;
  linear.k = m.k;
  const auto add_rows = [&](const card::StoredTensor& t) {
    const bool floats = &t == m.weight && m.scales == nullptr;
    const int64_t columns = floats ? m.k : t.tensor.shape[static_cast<size_t>(t.tensor.rank - 1)];
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
    const DType scale_type = m.scales->tensor.type;
    out.scale_type = scale_type;
    linear.held = Held::kCodes;
    linear.int8 = arithmetic_.int8 && precision == Precision::kAsComputed;
    linear.bf16_prompts = arithmetic_.bf16_prompts && precision == Precision::kAsComputed;
    linear.quant = {.n = n,
                    .k = m.k,
                    .group = m.format.group,
                    .bits = kernels::container_bits(m.format.bits),
                    .scale_type = float_type(scale_type)};
  }
  if (m.bias != nullptr) linear.bias = widened(*m.bias, row, n, 0, runs);
  return out;
}

StoredMatrix WeightBinder::locate_rows(const StoredRows& stored, int64_t matrix, int64_t matrices,
                                       int64_t row, const RowRuns& runs, int32_t n, int32_t k,
                                       Precision precision, const int32_t* order) const {
  StoredMatrix out;
  out.name = stored.tensors[0]->name;
  out.source = stored.source;
  out.first_row = row;
  out.runs = runs;
  out.row_step = k;
  for (const card::StoredTensor* tensor : stored.tensors) {
    const int64_t count = tensor->tensor.elements() / matrices;
    out.piece[static_cast<size_t>(out.pieces++)] = piece_of(*tensor, matrix * count, count);
  }
  out.linear = RowPacker(stored.source, row, runs, n, k, order != nullptr).linear();
  if (out.linear.has_codes())
    out.linear.order = order;
  else
    out.type = DType::kF32;
  const bool as_computed = precision == Precision::kAsComputed;
  out.linear.int8 = out.linear.has_codes() && arithmetic_.int8 && as_computed;
  out.linear.bf16_prompts =
      out.linear.held != Held::kFloats && arithmetic_.bf16_prompts && as_computed;
  return out;
}

StoredMatrix WeightBinder::locate_turned(const Module& m, int64_t row, int32_t n) {
  StoredMatrix out = locate(m, row, n, Precision::kFloatActivations);
  const bool codes = out.format || out.source;
  out.linear = float_linear(codes ? DType::kF32 : out.type, m.k, n, Precision::kFloatActivations);
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
    const auto turned = open(stored_path(layer, parts.first), first_rows, first, false, true);
    const auto plain = open(stored_path(layer, parts.second), second_rows, k, false, true);
    for (int64_t h = 0; turned && plain && h < heads; ++h)
      out.push_back({.turned = bind(*turned, h * k, k, Precision::kFloatActivations),
                     .plain = bind(*plain, h * second, second, Precision::kFloatActivations)});
    return out;
  }
  const int64_t head_rows = int64_t{first} + second;
  const std::array<int64_t, 1> rows = {heads * head_rows};
  const auto module = open(stored_path(layer, parts.both), rows, k, false, true);
  for (int64_t h = 0; module && h < heads; ++h)
    out.push_back(
        {.turned = place(locate_turned(*module, h * head_rows, first), store_),
         .plain = bind(*module, h * head_rows + first, second, Precision::kFloatActivations)});
  return out;
}

Linear WeightBinder::linear(int layer, std::string_view part, int32_t n, int32_t k, bool bias,
                            Precision precision) {
  const auto module = open_part(layer, part, n, k, bias);
  if (!module) return {};
  Linear out = bind(*module, 0, n, precision);
  note_target(out, part, module->path, n);
  return out;
}

namespace {

// Modules whose products are those of multiply() for a pass's own rows, and the embedding.
bool is_adaptable(std::string_view part) {
  static constexpr std::array kWithin = {"self_attn.", "mlp.", "linear_attn.", "conv.", "mamba."};
  static constexpr std::array kNot = {".compressor", ".indexer"};
  const auto begins = [&](const char* prefix) { return part.starts_with(prefix); };
  const auto holds = [&](const char* text) { return part.find(text) != part.npos; };
  if (part == "embed_tokens" || part == "lm_head") return true;
  // Its input lies among other numbers.
  if (part == "mamba.dt_proj") return false;
  return std::ranges::any_of(kWithin, begins) && std::ranges::none_of(kNot, holds);
}

}  // namespace

void WeightBinder::note_target(Linear& weight, std::string_view part, const std::string& stored,
                               int64_t rows, int64_t row, const RowRuns& runs, bool resident) {
  if (!arithmetic_.adapters || failed() || !is_adaptable(part)) return;
  weight.target = static_cast<int32_t>(targets_.size());
  targets_.push_back({.module = stored,
                      .rows = rows,
                      .row = row,
                      .runs = runs,
                      .weight = weight,
                      .table = part == "embed_tokens",
                      .resident = resident});
}

Linear WeightBinder::shared(const Linear& weight, std::string_view part) {
  Linear out = weight;
  note_target(out, part, stored_path(kWholeModel, part), weight.n);
  return out;
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
    const auto is_stored = [&](const FusedModules& f) {
      return begins_rest(f) && has_weight(layer, f.stored);
    };
    // GGUF files fuse otherwise than checkpoints, or not at all.
    auto fused = std::ranges::find_if(spec_.fused, is_stored);
    if (fused == spec_.fused.end() && !has_weight(layer, rest[0].name))
      fused = std::ranges::find_if(spec_.fused, begins_rest);
    if (fused == spec_.fused.end()) {
      out.push_back(linear(layer, rest[0].name, rest[0].n, k, bias && rest[0].bias));
    } else {
      bind_fused(layer, *fused, rest.first(fused->parts.size()), k, bias, out);
    }
  }
  return out;
}

std::vector<Linear> WeightBinder::row_blocks(int layer, std::string_view part, int32_t count,
                                             int32_t n, int32_t k) {
  std::vector<Linear> out;
  const auto module = open_part(layer, part, int64_t{count} * n, k, false);
  for (int64_t i = 0; module && i < count; ++i)
    out.push_back(bind(*module, i * n, n, Precision::kAsComputed));
  return out;
}

void WeightBinder::bind_fused(int layer, const FusedModules& fused, std::span<const Part> parts,
                              int32_t k, bool bias, std::vector<Linear>& out) {
  int64_t rows = 0;
  for (const Part& part : parts) rows += part.n;
  const auto module = open_part(layer, fused.stored, rows, k, bias);
  int64_t row = 0;
  for (const Part& part : parts) {
    const int64_t length = part.n / fused.runs;
    const RowRuns some =
        fused.runs == 1 ? RowRuns{} : RowRuns{.length = length, .step = rows / fused.runs};
    out.push_back(module ? place(locate(*module, row, part.n, Precision::kAsComputed, some), store_)
                         : Linear{});
    if (module) note_target(out.back(), part.name, module->path, rows, row, some);
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
    for (int64_t e = 0; module && e < count && !failed(); ++e)
      fn(locate(*module, e * n, n, Precision::kAsComputed));
    return;
  }
  const std::string single = "mlp.experts.*." + std::string(part);
  const std::array<int64_t, 1> rows = {n};
  for (int32_t e = 0; e < count && !failed(); ++e) {
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
  if (failed()) return;
  const std::array<int64_t, 2> bias_shape = {count, rows};
  const card::StoredTensor* biases = bias ? take(path + "_bias", kFloatTypes, bias_shape) : nullptr;
  const RowRuns bias_runs = {.length = 1, .step = step};
  const card::StoredTensor* found = checkpoint_.find(path);
  const bool gguf = found != nullptr && found->blocks != nullptr;
  const bool blocks = checkpoint_.find(path + "_blocks") != nullptr;
  const card::StoredTensor* weight = gguf || blocks ? nullptr : take(path, kFloatTypes, shape);
  if (failed()) return;
  const std::array<int64_t, 2> stacked = {count, rows};
  const auto stored = gguf     ? take_gguf(taker_, *found, path + ".scale", stacked, k)
                      : blocks ? take_blocks(taker_, path, count, rows, k)
                               : quantised_floats(*weight, path, rows, k, transposed);
  if (stored || failed()) {
    for (int64_t e = 0; stored && e < count && !failed(); ++e) {
      StoredMatrix matrix = locate_rows(*stored, e, count, first, step > 1 ? bias_runs : RowRuns{},
                                        n, k, Precision::kAsComputed);
      if (biases != nullptr)
        matrix.linear.bias = widened(*biases, e * rows + first, n, 0, bias_runs);
      fn(matrix);
    }
    return;
  }
  for (int64_t e = 0; e < count && !failed(); ++e) {
    const int64_t at = e * rows * k + (transposed ? first : first * k);
    StoredMatrix matrix;
    matrix.name = path;
    matrix.type = weight->tensor.type;
    matrix.linear = float_linear(matrix.type, n, k, Precision::kAsComputed);
    matrix.piece[0] = piece_of(*weight, at, int64_t{n} * k);
    matrix.pieces = 1;
    matrix.row_step = transposed ? step : step * k;
    matrix.column_step = transposed ? rows : 1;
    if (biases != nullptr) matrix.linear.bias = widened(*biases, e * rows + first, n, 0, bias_runs);
    fn(matrix);
  }
}

std::vector<Linear> WeightBinder::experts(int layer, std::string_view part, int32_t count,
                                          int32_t n, int32_t k, bool bias, Placer& placer) {
  std::vector<Linear> out;
  // Adapters name single experts, however the model stores them.
  const std::string single = "mlp.experts.*." + std::string(part);
  const auto put = [&](const StoredMatrix& matrix) {
    const auto expert = static_cast<int>(out.size());
    out.push_back(place(matrix, placer));
    if (arithmetic_.adapters)
      note_target(out.back(), single, stored_path(layer, single, expert), n, 0, {},
                  &placer == &store_);
  };
  if (in_tensors(layer, part))
    for_tensor_experts(layer, part, count, n, k, bias, put);
  else
    for_experts(layer, part, count, n, k, bias, put);
  return out;
}

const float* WeightBinder::vector(int layer, std::string_view part, int32_t n, float offset,
                                  bool bare) {
  if (failed()) return nullptr;
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
  if (failed() || (fallback && checkpoint_.find(path) == nullptr)) return fallback.value_or(0);
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
      failed() ? nullptr : take(stored_path(layer, name), kFloatTypes, shape);
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return stored == nullptr ? nullptr : widened(*stored, 0, count, 0);
}

const float* WeightBinder::strips(int layer, std::string_view name, int32_t rows, int32_t columns,
                                  int32_t strip, float (*f)(float)) {
  const std::array<int64_t, 2> shape = {rows, columns};
  const card::StoredTensor* stored =
      failed() ? nullptr : take(stored_path(layer, name), kFloatTypes, shape);
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
      failed() ? nullptr : take(stored_path(layer, name), kTypes, shape);
  if (stored == nullptr) return nullptr;
  std::byte* memory = unwrap(store_.allocate(int64_t{rows} * columns * 4));
  if (memory == nullptr) return nullptr;
  tally_.add_vector(int64_t{rows} * columns);
  auto* out = reinterpret_cast<int32_t*>(memory);
  if (checkpoint_.file(*stored).only_beginning()) return out;
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
      taker_.reject(checkpoint_.file(*stored).name() + ": tensor '" + stored->name +
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
  if (failed() || quantised_by(path) != nullptr) return nullptr;
  const std::array<int64_t, 2> shape = {n, k};
  for (BoundModule& module : modules_)
    if (module.path == path) module.unit_rows = true;
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
  if (spec_.norms_are_sums) return *spec_.norms_are_sums;
  if (checkpoint_.norms_are_sums()) return true;
  for (int layer = 0; !spec_.convolution.empty() && layer < layer_count(spec_); ++layer)
    if (const auto* stored = checkpoint_.find(stored_path(layer, spec_.convolution) + ".weight"))
      return stored->tensor.rank == 3 && stored->tensor.shape[2] == 1;
  return false;
}

const float* WeightBinder::convolution(int layer, std::string_view part, int32_t channels,
                                       int32_t taps) {
  if (failed()) return nullptr;
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
        failed() ? nullptr : take(stored_path(layer, part) + ".bias", kFloatTypes, shape);
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
    for (int32_t h = 0; h < heads && !failed(); ++h) {
      const std::string own = stored_path(layer, norm.module, h) + ".weight";
      const card::StoredTensor* stored = take(own, kFloatTypes, std::span(shape).subspan(1));
      if (stored != nullptr)
        out[static_cast<size_t>(h)].weight = widened(*stored, 0, n, norm.weight_offset);
    }
    return out;
  }
  const card::StoredTensor* stored = failed() ? nullptr : take(path, kFloatTypes, shape);
  for (int64_t h = 0; stored != nullptr && h < heads; ++h)
    out[static_cast<size_t>(h)].weight = widened(*stored, h * n, n, norm.weight_offset);
  return out;
}

void WeightBinder::ignore(int layer, std::string_view part) {
  const std::string path = stored_path(layer, part);
  for (const char* suffix :
       {".weight", ".scales", ".biases", ".bias", ".qweight", ".qzeros", ".g_idx", ".weight_packed",
        ".weight_scale", ".weight_scale_inv", ".weight_shape", ".weight_zero_point",
        ".weight_g_idx", ".weight_global_scale", ".weight_scale_2"})
    taker_.take(path + suffix);
}

Result<void> WeightBinder::finish(std::string_view within) const {
  if (failed()) return tl::unexpected(*taker_.error());
  for (const card::StoredTensor& stored : checkpoint_.tensors()) {
    if (!stored.name.starts_with(within)) continue;
    if (taker_.taken(stored.name) || (within.empty() && is_ignorable(stored.name)) ||
        is_unused(stored.name) || (format_.quantised() && is_activation_scale(stored.name)))
      continue;
    return fail(ErrorCode::kConfig, checkpoint_.file(stored).name() + ": tensor '" + stored.name +
                                        "': expected only tensors that " + spec_.family +
                                        " has, found " + to_string(stored.tensor));
  }
  return {};
}

}  // namespace weir::model
