#include "model/checkpoint_quantiser.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "card/config_reader.h"
#include "kv/hash128.h"
#include "model/rows/affine_rows.h"
#include "model/rows/float_rows.h"
#include "model/rows/quantising_rows.h"
#include "model/rows/stored_rows.h"
#include "model/tensor_taker.h"

namespace weir::model {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kShardBytes = int64_t{5} << 30;
// Of floats that are quantised at once: many rows for each member, and little memory.
constexpr int64_t kPieceBytes = int64_t{64} << 20;
constexpr int64_t kCopyBytes = int64_t{8} << 20;
constexpr int32_t kClaimRows = 16;
constexpr QuantisedAs kRouter = {.bits = 8, .group = 64};
constexpr std::array<int32_t, 6> kBits = {2, 3, 4, 5, 6, 8};
constexpr std::array<int32_t, 3> kGroups = {32, 64, 128};

std::string reason(int error) { return std::generic_category().message(error); }

// "4:64".
std::optional<QuantisedAs> parse_numbers(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  QuantisedAs out;
  const auto read = [](std::string_view part, int32_t& number) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    return error == std::errc() && end == part.data() + part.size();
  };
  if (!read(text.substr(0, colon), out.bits) || !read(text.substr(colon + 1), out.group) ||
      std::ranges::count(kBits, out.bits) == 0 || std::ranges::count(kGroups, out.group) == 0)
    return std::nullopt;
  return out;
}

// Where an output tensor's bytes come from.
struct Part {
  enum class Kind : uint8_t { kCopied, kCodes, kScales, kBiases, kFloats } kind = Kind::kCopied;
  const card::StoredTensor* from = nullptr;  // kCopied.
  size_t module = 0;                         // Of the others.
  std::string name;
  DType type = DType::kU32;
  std::vector<int64_t> shape{};
  int64_t offset = 0;  // In its file's data.

  int64_t bytes() const {
    int64_t count = dtype_bytes(type);
    for (const int64_t size : shape) count *= size;
    return count;
  }
};

// A module that is read row by row.
struct Rewritten {
  std::shared_ptr<const RowSource> source;
  RowSource::Bases bases{};
  int64_t rows = 0;
  int32_t k = 0;
  DType type = DType::kBF16;             // Of scales and biases, or of floats.
  std::optional<QuantisedAs> numbers{};  // None: floats.
};

struct Shard {
  std::string name;
  std::vector<Part> parts;
  int64_t bytes = 0;
};

class Quantiser {
 public:
  Quantiser(const card::ModelCard& card, const QuantiseRules& rules, std::string folder,
            ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress)
      : card_(card),
        rules_(rules),
        folder_(std::move(folder)),
        team_(team),
        progress_(progress),
        taker_(*card.tensors) {}

  Result<void> run(std::vector<BoundModule> modules) {
    WEIR_TRY(plan(modules));
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) return fail(ErrorCode::kIo, folder_ + ": " + error.message());
    if (!card_.files.folder().empty() && fs::equivalent(folder_, card_.files.folder(), error))
      return fail(ErrorCode::kConfig, folder_ + ": expected another folder than the model's");
    WEIR_TRY(check_room());
    for (const Shard& shard : shards_) WEIR_TRY(write(shard));
    for (const FileView& file : card_.tensors->files()) WEIR_TRY(file.check_unchanged());
    if (shards_.size() > 1) WEIR_TRY(write_text("model.safetensors.index.json", index()));
    WEIR_TRY(copy_files());
    return write_config();
  }

 private:
  // What is written, tensor by tensor, in the source's order.
  Result<void> plan(std::vector<BoundModule>& modules) {
    std::map<std::string, std::vector<Part>, std::less<>> instead;  // Of a module's first tensor.
    std::set<std::string, std::less<>> replaced;
    std::set<std::string, std::less<>> seen;
    for (const BoundModule& m : modules) {
      if (!seen.insert(m.path).second) continue;
      std::vector<const card::StoredTensor*> tensors;
      WEIR_ASSIGN(std::vector<Part> parts, parts_of(m, tensors));
      if (parts.empty() || tensors.empty()) continue;
      for (const card::StoredTensor* tensor : tensors) replaced.insert(tensor->name);
      instead.emplace(tensors[0]->name, std::move(parts));
    }
    for (const card::StoredTensor& tensor : card_.tensors->tensors()) {
      if (const auto found = instead.find(tensor.name); found != instead.end())
        for (Part& part : found->second) add(std::move(part));
      else if (!replaced.contains(tensor.name) && !taker_.taken(tensor.name))
        add({.from = &tensor,
             .name = tensor.name,
             .type = tensor.tensor.type,
             .shape = {tensor.tensor.shape.data(),
                       tensor.tensor.shape.data() + tensor.tensor.rank}});
    }
    for (size_t i = 0; i < shards_.size(); ++i) {
      char name[64];
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards_.size());
      shards_[i].name = shards_.size() == 1 ? "model.safetensors" : name;
      total_ += shards_[i].bytes;
    }
    if (rewritten_.empty())
      return fail(ErrorCode::kConfig,
                  card_.files.where() + ": expected matrices that the rules quantise, found none");
    return {};
  }

  // Nothing: the module's tensors are copied.
  Result<std::vector<Part>> parts_of(const BoundModule& m,
                                     std::vector<const card::StoredTensor*>& tensors) {
    Rewritten r;
    r.k = m.k;
    r.numbers = m.unit_rows ? std::nullopt : rules_.of(m);
    if (r.numbers && m.k % r.numbers->group != 0) r.numbers.reset();
    if (!r.numbers && !m.quantised && !m.turned) {
      note(m.path, r.numbers);
      return std::vector<Part>{};
    }
    r.rows = 1;
    for (const int64_t size : m.rows) r.rows *= size;
    WEIR_TRY(open(m, r, tensors));
    note(m.path, r.numbers);
    const size_t index = rewritten_.size();
    const auto part = [&](Part::Kind kind, const char* suffix, DType type, int64_t columns) {
      std::vector<int64_t> shape = m.rows;
      shape.push_back(columns);
      return Part{
          .kind = kind, .module = index, .name = m.path + suffix, .type = type, .shape = shape};
    };
    std::vector<Part> parts;
    if (r.numbers) {
      const auto [bits, group] = *r.numbers;
      r.source = std::make_shared<QuantisingRows>(r.source, m.k, bits, group, r.type);
      parts.push_back(part(Part::Kind::kCodes, ".weight", DType::kU32, int64_t{m.k} * bits / 32));
      parts.push_back(part(Part::Kind::kScales, ".scales", r.type, m.k / group));
      parts.push_back(part(Part::Kind::kBiases, ".biases", r.type, m.k / group));
    } else {
      parts.push_back(part(Part::Kind::kFloats, ".weight", r.type, m.k));
    }
    rewritten_.push_back(std::move(r));
    return parts;
  }

  // How the module's rows are read, and from which tensors.
  Result<void> open(const BoundModule& m, Rewritten& r,
                    std::vector<const card::StoredTensor*>& tensors) {
    const auto take = [&](const char* suffix) {
      if (const card::StoredTensor* found = taker_.take(m.path + suffix)) tensors.push_back(found);
    };
    if (!m.quantised) {
      take(".weight");
      if (tensors.empty())
        return fail(ErrorCode::kConfig, card_.tensors->name() + ": expected '" + m.path +
                                            ".weight', found no such tensor");
      r.type = tensors[0]->tensor.type;
      r.source = std::make_shared<FloatRows>(r.type, m.k, m.turned ? m.rows.back() : 0);
    } else if (m.format.layout == card::MatrixFormat::Layout::kMlx) {
      for (const char* suffix : {".weight", ".scales", ".biases"}) take(suffix);
      r.type = tensors[1]->tensor.type;
      r.source = std::make_shared<AffineRows>(m.k, m.format.bits, m.format.group, r.type);
    } else {
      std::optional<StoredRows> stored = take_rows(taker_, m.path, m.format, m.rows, m.k);
      if (!stored) return tl::unexpected(*taker_.error());
      r.source = std::move(stored->source);
      tensors = std::move(stored->tensors);
      for (const card::StoredTensor* tensor : tensors)
        if (tensor->tensor.type == DType::kF16) r.type = DType::kF16;
    }
    for (size_t i = 0; i < tensors.size(); ++i) r.bases[i] = tensors[i]->tensor.data;
    return {};
  }

  // For config.json: what differs from the usual numbers.
  void note(const std::string& path, const std::optional<QuantisedAs>& numbers) {
    if (numbers != rules_.usual()) others_.emplace_back(path, numbers);
  }

  void add(Part part) {
    if (shards_.empty() || (shards_.back().bytes + part.bytes() > kShardBytes &&
                            part.kind != Part::Kind::kScales && part.kind != Part::Kind::kBiases))
      shards_.emplace_back();
    part.offset = shards_.back().bytes;
    shards_.back().bytes += part.bytes();
    shards_.back().parts.push_back(std::move(part));
  }

  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }

  Result<void> check_room() const {
    int64_t missing = 0;
    std::error_code error;
    for (const Shard& shard : shards_)
      if (!fs::exists(path_of(shard.name), error)) missing += shard.bytes;
    const fs::space_info space = fs::space(folder_, error);
    if (error || static_cast<int64_t>(space.available) >= missing) return {};
    return fail(ErrorCode::kIo, folder_ + ": expected room for " + std::to_string(missing >> 20) +
                                    " MiB, found " + std::to_string(space.available >> 20));
  }

  // A file's length and header.
  std::string head_of(const Shard& shard) const {
    std::string text;
    JsonWriter json(text);
    json.begin_object().key("__metadata__").begin_object();
    json.field("format", "mlx").field("source", source()).end_object();
    for (const Part& part : shard.parts) {
      json.key(part.name).begin_object().field("dtype", dtype_name(part.type));
      json.key("shape").begin_array();
      for (const int64_t size : part.shape) json.value(size);
      json.end_array().key("data_offsets").begin_array();
      json.value(part.offset).value(part.offset + part.bytes()).end_array().end_object();
    }
    json.end_object();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t length = text.size();
    std::string head(sizeof length, '\0');
    std::memcpy(head.data(), &length, sizeof length);
    return head + text;
  }

  // The source's files, as they are now.
  std::string source() const {
    std::string text;
    for (const FileView& file : card_.tensors->files()) {
      struct stat info {};
      if (::stat(file.name().c_str(), &info) != 0) continue;
      for (const int64_t number :
           {int64_t{info.st_size}, int64_t{info.st_mtim.tv_sec}, int64_t{info.st_mtim.tv_nsec}})
        text.append(file.name()).append(" ").append(std::to_string(number)).append("\n");
    }
    const std::array<uint64_t, 2> hash = kv::hash128(text);
    char out[40];
    std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(hash[1]),
                  static_cast<unsigned long long>(hash[0]));
    return out;
  }

  Result<void> write(const Shard& shard) {
    const std::string head = head_of(shard), path = path_of(shard.name);
    if (is_there(path, head, shard.bytes)) {
      report(shard.bytes);
      return {};
    }
    const std::string part_path = path + ".part";
    fd_ = ::open(part_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) return fail(ErrorCode::kIo, part_path + ": " + reason(errno));
    data_begin_ = static_cast<int64_t>(head.size());
    Result<void> done = put(head.data(), data_begin_, 0);
    for (size_t i = 0; done && i < shard.parts.size(); ++i) {
      const Part& part = shard.parts[i];
      if (part.kind == Part::Kind::kCopied)
        done = copy(part);
      else if (part.kind == Part::Kind::kCodes || part.kind == Part::Kind::kFloats)
        done = rewrite(std::span(shard.parts).subspan(i));
    }
    if (done && ::fsync(fd_) != 0) done = fail(ErrorCode::kIo, part_path + ": " + reason(errno));
    ::close(std::exchange(fd_, -1));
    if (!done) {
      ::unlink(part_path.c_str());
      return fail(done.error().code, part_path + ": " + done.error().message);
    }
    if (std::rename(part_path.c_str(), path.c_str()) != 0)
      return fail(ErrorCode::kIo, path + ": " + reason(errno));
    return {};
  }

  static bool is_there(const std::string& path, const std::string& head, int64_t bytes) {
    const Result<FileView> view = FileView::map(path);
    return view && view->bytes().size() == head.size() + static_cast<size_t>(bytes) &&
           view->text().substr(0, head.size()) == head;
  }

  Result<void> put(const void* data, int64_t bytes, int64_t at) const {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t wrote = ::pwrite(fd_, from, static_cast<size_t>(bytes), at);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return fail(ErrorCode::kIo, reason(errno));
      from += wrote, at += wrote, bytes -= wrote;
    }
    return {};
  }

  Result<void> copy(const Part& part) {
    const Tensor& t = part.from->tensor;
    for (int64_t at = 0; at < part.bytes(); at += kCopyBytes) {
      const int64_t bytes = std::min(kCopyBytes, part.bytes() - at);
      WEIR_TRY(put(t.data + at, bytes, data_begin_ + part.offset + at));
      card_.tensors->file(*part.from)
          .drop(part.from->offset + static_cast<size_t>(at), static_cast<size_t>(bytes));
      report(bytes);
    }
    return {};
  }

  // The parts of one module begin at parts[0].
  Result<void> rewrite(std::span<const Part> parts) {
    const Rewritten& r = rewritten_[parts[0].module];
    const size_t count = r.numbers ? 3 : 1;
    std::array<std::vector<std::byte>, 3> buffers;
    std::array<int64_t, 3> row_bytes{};
    for (size_t i = 0; i < count; ++i) row_bytes[i] = parts[i].bytes() / r.rows;
    const int64_t step =
        std::max<int64_t>(kPieceBytes / (int64_t{r.k} * 4) / kClaimRows, 1) * kClaimRows;
    for (int64_t first = 0; first < r.rows; first += step) {
      const int64_t rows = std::min(step, r.rows - first);
      for (size_t i = 0; i < count; ++i)
        buffers[i].resize(static_cast<size_t>(rows * row_bytes[i]));
      std::atomic<bool> finite{true};
      team_.run([&](int) {
        const auto claims = static_cast<int32_t>((rows + kClaimRows - 1) / kClaimRows);
        for (int32_t c = team_.claim(); c < claims; c = team_.claim()) {
          const int64_t begin = int64_t{c} * kClaimRows;
          const auto some = static_cast<int32_t>(std::min<int64_t>(kClaimRows, rows - begin));
          std::array<std::byte*, 3> to{};
          for (size_t i = 0; i < count; ++i) to[i] = buffers[i].data() + begin * row_bytes[i];
          if (!make_rows(r, first + begin, some, to)) finite = false;
        }
      });
      if (!finite)
        return fail(ErrorCode::kConfig, "tensor '" + parts[0].name +
                                            "': expected finite weights in the source, found an "
                                            "infinity or a NaN");
      for (size_t i = 0; i < count; ++i) {
        const int64_t bytes = rows * row_bytes[i];
        WEIR_TRY(
            put(buffers[i].data(), bytes, data_begin_ + parts[i].offset + first * row_bytes[i]));
        report(bytes);
      }
    }
    return {};
  }

  // False: there was something that is no number.
  static bool make_rows(const Rewritten& r, int64_t first, int32_t count,
                        std::array<std::byte*, 3> to) {
    const auto k = static_cast<size_t>(r.k);
    if (!r.numbers) {
      std::vector<float> floats(k * static_cast<size_t>(count));
      r.source->floats(r.bases, first, count, floats.data());
      store(r.type, floats, to[0]);
      return std::ranges::all_of(floats, [](float x) { return std::isfinite(x); });
    }
    kernels::RowBuffer buffer(*r.source->shape(), count);
    r.source->rows(r.bases, first, count, buffer.rows());
    const auto of_groups = static_cast<size_t>(r.k / r.numbers->group * dtype_bytes(r.type));
    bool finite = true;
    for (int32_t i = 0; i < count; ++i) {
      const kernels::RowNumbers& row = buffer.row(i);
      to[0] = store_codes({row.codes, k}, r.numbers->bits, to[0]);
      for (const auto& [numbers, i_to] : {std::pair{row.scales, 1}, {row.biases, 2}}) {
        std::memcpy(to[static_cast<size_t>(i_to)], numbers, of_groups);
        to[static_cast<size_t>(i_to)] += of_groups;
      }
      finite = finite && kernels::all_finite(*r.source->shape(), row);
    }
    return finite;
  }

  static std::byte* store(DType type, std::span<const float> floats, std::byte* to) {
    for (const float x : floats) {
      if (type == DType::kF32) {
        std::memcpy(to, &x, 4);
        to += 4;
      } else {
        const uint16_t bits = type == DType::kF16 ? float_to_half(x) : float_to_bf16(x);
        std::memcpy(to, &bits, 2);
        to += 2;
      }
    }
    return to;
  }

  // One after another, the least significant bit first.
  static std::byte* store_codes(std::span<const uint8_t> codes, int32_t bits, std::byte* to) {
    uint32_t pending = 0;
    int32_t filled = 0;
    for (const uint8_t code : codes) {
      pending |= uint32_t{code} << filled;
      for (filled += bits; filled >= 8; filled -= 8, pending >>= 8)
        *to++ = static_cast<std::byte>(pending & 0xff);
    }
    return to;
  }

  void report(int64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }

  std::string index() const {
    std::string text;
    JsonWriter json(text);
    json.begin_object().key("metadata").begin_object().field("total_size", total_).end_object();
    json.key("weight_map").begin_object();
    for (const Shard& shard : shards_)
      for (const Part& part : shard.parts) json.field(part.name, shard.name);
    json.end_object().end_object();
    return text;
  }

  Result<void> write_text(const std::string& name, const std::string& text) {
    const std::string path = path_of(name);
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) return fail(ErrorCode::kIo, path + ": " + reason(errno));
    const Result<void> done = put(text.data(), static_cast<int64_t>(text.size()), 0);
    ::close(std::exchange(fd_, -1));
    if (!done) return fail(ErrorCode::kIo, path + ": " + done.error().message);
    return {};
  }

  // Tokenizer, templates and settings lie beside the weights.
  Result<void> copy_files() const {
    if (card_.files.folder().empty()) return {};
    std::error_code error;
    fs::directory_iterator it(card_.files.folder(), error), end;
    for (; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      const bool weights = name.ends_with(".safetensors") || name.ends_with(".index.json") ||
                           name.ends_with(".bundle") || name.ends_with(".gguf") ||
                           name.ends_with(".bin") || name.ends_with(".part");
      if (weights || name.starts_with(".") || name == "config.json" ||
          name == "hf_quant_config.json" || !it->is_regular_file(error))
        continue;
      fs::copy_file(it->path(), path_of(name), fs::copy_options::overwrite_existing, error);
    }
    if (error) return fail(ErrorCode::kIo, folder_ + ": " + error.message());
    return {};
  }

  // The source's config with the numbers, which comes last: without it the folder is no model.
  Result<void> write_config() {
    std::string numbers;
    JsonWriter json(numbers);
    const auto pair = [&](const QuantisedAs& as) {
      json.field("group_size", as.group).field("bits", as.bits).field("mode", "affine");
    };
    json.begin_object();
    pair(rules_.usual());
    for (const auto& [path, as] : others_) {
      json.key(path);
      if (!as) {
        json.value(false);
        continue;
      }
      json.begin_object();
      pair(*as);
      json.end_object();
    }
    json.end_object();
    JsonObject root;
    if (card_.config.root().get(root) != simdjson::SUCCESS)
      return fail(ErrorCode::kConfig, "config.json: expected an object");
    std::string text;
    JsonWriter out(text);
    out.begin_object();
    for (const auto [key, value] : root)
      if (key != "quantization" && key != "quantization_config") out.field(key, value);
    out.key("quantization").raw(numbers).key("quantization_config").raw(numbers).end_object();
    return write_text("config.json", text + "\n");
  }

  const card::ModelCard& card_;
  const QuantiseRules& rules_;
  const std::string folder_;
  ThreadTeam& team_;
  const std::function<void(int64_t, int64_t)>& progress_;
  TensorTaker taker_;
  std::vector<Rewritten> rewritten_;
  std::vector<std::pair<std::string, std::optional<QuantisedAs>>> others_;
  std::vector<Shard> shards_;
  int64_t total_ = 0, done_ = 0;
  int fd_ = -1;
  int64_t data_begin_ = 0;
};

}  // namespace

Result<QuantiseRules> QuantiseRules::make(QuantisedAs usual,
                                          const std::vector<std::string>& rules) {
  QuantiseRules out;
  out.usual_ = usual;
  for (const std::string& text : rules) {
    const size_t equals = text.rfind('=');
    const std::string_view value =
        equals == text.npos ? std::string_view() : std::string_view(text).substr(equals + 1);
    Rule rule{.pattern = {}, .numbers = parse_numbers(value)};
    if (!rule.numbers && value != "skip")
      return fail(ErrorCode::kConfig,
                  "--rule: expected REGEX=BITS:GROUP with 2, 3, 4, 5, 6 or 8 bits in groups of 32, "
                  "64 or 128, or REGEX=skip; found '" +
                      text + "'");
    // Anywhere in the path.
    Result<NamePattern> pattern = NamePattern::compile("(?:.*)(?:" + text.substr(0, equals) + ")");
    if (!pattern) return fail(ErrorCode::kConfig, "--rule: " + pattern.error().message);
    rule.pattern = *std::move(pattern);
    out.rules_.push_back(std::move(rule));
  }
  return out;
}

Result<QuantiseRules> QuantiseRules::like(const std::string& folder) {
  const std::string path = folder + "/config.json";
  WEIR_ASSIGN(const std::string text, read_file(path, size_t{4} << 20));
  Result<JsonDoc> doc = card::parse_config(text);
  if (!doc) return fail(ErrorCode::kConfig, "--like: " + path + ": " + doc.error().message);
  Result<card::WeightFormat> format = card::WeightFormat::from_config(doc->root());
  if (!format) return fail(ErrorCode::kConfig, "--like: " + path + ": " + format.error().message);
  const card::MatrixFormat usual = format->usual();
  if (!format->quantised() || usual.layout != card::MatrixFormat::Layout::kMlx)
    return fail(ErrorCode::kConfig,
                "--like: " + path + ": expected MLX's 'quantization' with bits and group_size, " +
                    "found " + (format->quantised() ? usual.layout_name() : "none"));
  QuantiseRules out;
  out.usual_ = {.bits = usual.bits, .group = usual.group};
  for (const char* key : {"quantization", "quantization_config"}) {
    JsonObject object;
    if (doc->root()[key].get(object) != simdjson::SUCCESS) continue;
    for (const auto [module, value] : object)
      if (bool quantised = true; value.get(quantised) == simdjson::SUCCESS && !quantised)
        out.left_.emplace_back(module);
    break;
  }
  out.like_ = std::make_shared<const card::WeightFormat>(*std::move(format));
  return out;
}

std::optional<QuantisedAs> QuantiseRules::of(const BoundModule& module) const {
  if (like_ != nullptr) {
    if (std::ranges::count(left_, module.path) > 0) return std::nullopt;
    const auto format = like_->of(module.path);
    if (!format || format->layout != card::MatrixFormat::Layout::kMlx) return std::nullopt;
    return QuantisedAs{.bits = format->bits, .group = format->group};
  }
  for (const Rule& rule : rules_)
    if (rule.pattern.matches_begin(module.path)) return rule.numbers;
  return is_router(module.path) ? kRouter : usual_;
}

Result<void> quantise_checkpoint(const card::ModelCard& card, std::vector<BoundModule> modules,
                                 const QuantiseRules& rules, const std::string& folder,
                                 ThreadTeam& team,
                                 const std::function<void(int64_t, int64_t)>& progress) {
  return Quantiser(card, rules, folder, team, progress).run(std::move(modules));
}

}  // namespace weir::model
