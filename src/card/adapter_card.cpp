#include "card/adapter_card.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/dtype.h"
#include "base/name_pattern.h"
#include "card/config_reader.h"
#include "card/gguf.h"
#include "card/gguf_architecture.h"
#include "card/gguf_config.h"
#include "card/safetensors.h"

namespace weir::card {

namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "adapter_config.json";
constexpr size_t kConfigBytesMax = size_t{1} << 20;  // A thousand times what tools write.
constexpr size_t kPatternsMax = 1000;                // Rules for single modules.

// What a tensor is to its module, by the end of its name.
enum class Role : uint8_t {
  kA,
  kB,
  kTableA,
  kTableB,
  kAddedBias,
  kMagnitude,
  kWhole,
  kWholeBias,
  kRepeated,  // The model's own weight once more.
};

struct Ending {
  std::string_view text;
  Role role;
};

// The longer ones first.
constexpr std::array kPeftEndings = {
    Ending{".lora_A.weight", Role::kA},
    Ending{".lora_B.weight", Role::kB},
    Ending{".lora_B.bias", Role::kAddedBias},
    Ending{".lora_embedding_A", Role::kTableA},
    Ending{".lora_embedding_B", Role::kTableB},
    Ending{".lora_magnitude_vector", Role::kMagnitude},
    Ending{".lora_magnitude_vector.weight", Role::kMagnitude},
    Ending{".base_layer.weight", Role::kRepeated},
    Ending{".base_layer.bias", Role::kWholeBias},
    Ending{".weight", Role::kWhole},
    Ending{".bias", Role::kWholeBias},
};
constexpr std::array kMlxEndings = {
    Ending{".lora_a", Role::kA},
    Ending{".lora_b", Role::kB},
    Ending{".m", Role::kMagnitude},
};
constexpr std::array kGgufEndings = {
    Ending{".lora_a", Role::kA},
    Ending{".lora_b", Role::kB},
};

std::span<const Ending> endings_of(AdapterCard::Layout layout) {
  switch (layout) {
    case AdapterCard::Layout::kPeft:
      return kPeftEndings;
    case AdapterCard::Layout::kMlx:
      return kMlxEndings;
    case AdapterCard::Layout::kGguf:
      break;
  }
  return kGgufEndings;
}

bool is_float(const Tensor& tensor) {
  return tensor.type == DType::kF32 || tensor.type == DType::kF16 || tensor.type == DType::kBF16;
}

}  // namespace

// From files to a card; the first thing that is wrong ends it.
class AdapterReader {
 public:
  explicit AdapterReader(std::string name) : card_(std::move(name)) {}

  Result<AdapterCard> read_safetensors(std::string_view config, FileView weights);
  Result<AdapterCard> read_gguf(FileView weights);

 private:
  using Layout = AdapterCard::Layout;

  Result<void> read_config(std::string_view text);
  Result<void> read_peft(const ConfigReader& config);
  Result<void> read_mlx(const ConfigReader& config);
  Result<void> read_metadata(const GgufHeader& header, const FileView& file);
  Result<void> collect();
  Result<void> add(AdapterPart& part, Role role, const StoredTensor& tensor) const;
  Result<void> finish(AdapterPart& part) const;
  Result<double> scale_of(const AdapterPart& part) const;
  std::string module_of(std::string_view path) const;
  tl::unexpected<Error> wrong(const std::string& what) const {
    return fail(ErrorCode::kConfig, card_.tensors_.name() + ": " + what);
  }
  tl::unexpected<Error> unread(std::string_view key, std::string_view why) const {
    return fail(ErrorCode::kUnsupported, std::string(kConfig) + ": key '" + std::string(key) +
                                             "': expected an adapter without it, for " +
                                             std::string(why));
  }

  AdapterCard card_;
  double alpha_ = 8;       // PEFT's, where its config says none.
  bool by_root_ = false;   // The scale is alpha / sqrt(rank).
  double scale_ = 20;      // mlx-lm's, where its config says none.
  std::vector<std::pair<NamePattern, double>> alphas_;  // The first that matches a module's path.
};

Result<void> AdapterReader::read_peft(const ConfigReader& config) {
  const std::string type = config.string_or("peft_type", "LORA");
  WEIR_TRY(config.status());
  if (type != "LORA")
    return fail(ErrorCode::kUnsupported,
                std::string(kConfig) + ": peft_type: expected LORA, found " + shown_name(type));
  const auto says = [&](std::string_view key) {
    const auto value = config.value(key);
    if (!value || value->is_null()) return false;
    if (bool flag = false; value->get(flag) == simdjson::SUCCESS) return flag;
    if (JsonArray list; value->get(list) == simdjson::SUCCESS) return list.size() > 0;
    if (JsonObject object; value->get(object) == simdjson::SUCCESS) return object.size() > 0;
    return true;
  };
  if (says("target_parameters")) return unread("target_parameters", "stacked experts are not read");
  if (says("use_qalora")) return unread("use_qalora", "its A is for groups of the input");
  if (says("alora_invocation_tokens"))
    return unread("alora_invocation_tokens", "it begins to act within a prompt");
  if (says("layer_replication")) return unread("layer_replication", "the model has its layers once");
  if (says("trainable_token_indices"))
    return unread("trainable_token_indices", "single rows of an embedding are not read");
  // What is trained so is to be added to weights that its beginning has changed.
  const auto begun = config.value("init_lora_weights");
  std::string_view how;
  if (begun && begun->get(how) == simdjson::SUCCESS)
    for (const std::string_view changed : {"pissa", "olora", "corda", "loftq"})
      if (how.starts_with(changed))
        return fail(ErrorCode::kUnsupported,
                    std::string(kConfig) + ": init_lora_weights: expected an adapter to the model's "
                        "own weights, found " + shown_name(how) +
                        ": convert it (path_initial_model_for_weight_conversion)");
  alpha_ = static_cast<double>(config.float_or("lora_alpha", 8));
  by_root_ = config.bool_or("use_rslora", false);
  if (const auto patterns = config.child("alpha_pattern")) {
    const std::vector<std::string_view> keys = patterns->keys();
    if (keys.size() > kPatternsMax)
      return fail(ErrorCode::kUnsupported,
                  std::string(kConfig) + ": alpha_pattern: expected at most " +
                      std::to_string(kPatternsMax) + " keys, found " + std::to_string(keys.size()));
    for (const std::string_view key : keys) {
      auto pattern = NamePattern::compile("(.*\\.)?(" + std::string(key) + ")$");
      if (!pattern)
        return fail(ErrorCode::kUnsupported, std::string(kConfig) + ": alpha_pattern: " +
                                                 shown_name(key) + ": " + pattern.error().message);
      alphas_.emplace_back(std::move(*pattern), patterns->require_float(key));
    }
  }
  return config.status();
}

Result<void> AdapterReader::read_mlx(const ConfigReader& config) {
  const std::string type = config.string_or("fine_tune_type", "lora");
  WEIR_TRY(config.status());
  if (type != "lora" && type != "dora")
    return fail(ErrorCode::kUnsupported, std::string(kConfig) +
                                             ": fine_tune_type: expected lora or dora, found " +
                                             shown_name(type));
  if (const auto parameters = config.child("lora_parameters"))
    scale_ = static_cast<double>(parameters->float_or("scale", 20));
  return config.status();
}

Result<void> AdapterReader::read_config(std::string_view text) {
  auto document = parse_config(text);
  if (!document)
    return fail(ErrorCode::kConfig, std::string(kConfig) + ": " + document.error().message);
  const ConfigReader config(document->root(), kConfig);
  return card_.layout_ == Layout::kPeft ? read_peft(config) : read_mlx(config);
}

// The module's path in the model's checkpoint.
std::string AdapterReader::module_of(std::string_view path) const {
  constexpr std::string_view kWrapped = "base_model.model.";
  if (card_.layout_ == Layout::kPeft && path.starts_with(kWrapped))
    path.remove_prefix(kWrapped.size());
  return std::string(path);
}

Result<void> AdapterReader::add(AdapterPart& part, Role role, const StoredTensor& tensor) const {
  const auto put = [&](const StoredTensor*& place, int rank) -> Result<void> {
    const bool vector = rank == 1 && tensor.tensor.rank == 2 &&
                        (tensor.tensor.shape[0] == 1 || tensor.tensor.shape[1] == 1);
    if (place != nullptr || tensor.blocks != nullptr || !is_float(tensor.tensor) ||
        (tensor.tensor.rank != rank && !vector))
      return wrong("tensor " + shown_name(tensor.name) + ": expected one of float32, float16 or " +
                   "bfloat16 with " + std::to_string(rank) + " dimensions for this module, found " +
                   (place != nullptr ? "another besides" : to_string(tensor.tensor)));
    place = &tensor;
    return {};
  };
  switch (role) {
    case Role::kTableA:
    case Role::kTableB:
      part.table = true;
      return put(role == Role::kTableA ? part.a : part.b, 2);
    case Role::kA:
      return put(part.a, 2);
    case Role::kB:
      return put(part.b, 2);
    case Role::kAddedBias:
      return put(part.added_bias, 1);
    case Role::kMagnitude:
      return put(part.magnitude, 1);
    case Role::kWhole:
      return put(part.whole, 2);
    case Role::kWholeBias:
      return put(part.whole_bias, 1);
    case Role::kRepeated:
      break;
  }
  return {};
}

Result<double> AdapterReader::scale_of(const AdapterPart& part) const {
  if (card_.layout_ == Layout::kMlx) return scale_;
  double alpha = alpha_;
  for (const auto& [pattern, value] : alphas_)
    if (pattern.matches_begin(part.module)) {
      alpha = value;
      break;
    }
  if (card_.layout_ == Layout::kGguf && alpha == 0) return 1.0;
  const double scale = alpha / (by_root_ ? std::sqrt(part.rank) : part.rank);
  if (!std::isfinite(scale))
    return wrong("module " + shown_name(part.module) + ": expected a finite scale, found " +
                 std::to_string(scale));
  return scale;
}

// All of the module's tensors are there: do they fit each other?
Result<void> AdapterReader::finish(AdapterPart& part) const {
  const std::string module = "module " + shown_name(part.module) + ": ";
  if ((part.a == nullptr) != (part.b == nullptr))
    return wrong(module + "expected A and B, found one of them");
  const bool low_rank = part.a != nullptr;
  if (!low_rank && (part.magnitude != nullptr || part.added_bias != nullptr))
    return wrong(module + "expected A and B beside a magnitude or a bias of B, found none");
  if (low_rank && part.whole != nullptr)
    return wrong(module + "expected A and B or a whole weight, found both");
  if (!low_rank) return {};
  const bool mlx = card_.layout_ == Layout::kMlx;
  const bool gguf_table =
      card_.layout_ == Layout::kGguf && part.module.ends_with("embed_tokens");
  if (gguf_table || (mlx && part.module.ends_with("embed_tokens"))) part.table = true;
  part.a_turned = mlx || gguf_table;
  part.b_turned = mlx;
  const auto& a = part.a->tensor.shape;
  const auto& b = part.b->tensor.shape;
  const int64_t rank = a[part.a_turned ? 1 : 0], other = b[part.b_turned ? 0 : 1];
  if (rank != other || rank < 1 || rank > kAdapterRankMax)
    return wrong(module + "expected one rank from 1 to " + std::to_string(kAdapterRankMax) +
                 " in A and B, found " + to_string(part.a->tensor) + " and " +
                 to_string(part.b->tensor));
  if (part.table && (part.magnitude != nullptr || part.added_bias != nullptr))
    return wrong(module + "expected an embedding with A and B alone, found more");
  if (part.magnitude != nullptr && part.added_bias != nullptr)
    return wrong(module + "expected a magnitude or a bias of B, found both");
  part.rank = static_cast<int32_t>(rank);
  WEIR_ASSIGN(part.scale, scale_of(part));
  return {};
}

Result<void> AdapterReader::collect() {
  std::map<std::string, AdapterPart, std::less<>> parts;
  const std::span<const Ending> endings = endings_of(card_.layout_);
  for (const StoredTensor& tensor : card_.tensors_.tensors()) {
    const auto ending = std::ranges::find_if(
        endings, [&](const Ending& e) { return tensor.name.ends_with(e.text); });
    if (ending == endings.end())
      return wrong("tensor " + shown_name(tensor.name) +
                   ": expected A, B or another part of an adapter, found an unknown name");
    std::string_view path = tensor.name;
    path.remove_suffix(ending->text.size());
    if (card_.layout_ == Layout::kGguf && path.ends_with(".weight"))
      path.remove_suffix(std::string_view(".weight").size());
    std::string module = module_of(path);
    AdapterPart& part = parts[module];
    part.module = std::move(module);
    WEIR_TRY(add(part, ending->role, tensor));
  }
  for (auto& [module, part] : parts) {
    WEIR_TRY(finish(part));
    const bool empty = part.a == nullptr && part.whole == nullptr && part.whole_bias == nullptr;
    if (!empty) card_.parts_.push_back(std::move(part));
  }
  if (card_.parts_.empty()) return wrong("expected an adapter's tensors, found none");
  return {};
}

Result<AdapterCard> AdapterReader::read_safetensors(std::string_view config, FileView weights) {
  WEIR_ASSIGN(card_.tensors_, open_safetensors(std::move(weights)));
  // mlx-lm's names end in lower case, and PEFT's begin with the wrapper.
  const bool mlx = std::ranges::any_of(card_.tensors_.tensors(), [](const StoredTensor& tensor) {
    return tensor.name.ends_with(".lora_a");
  });
  card_.layout_ = mlx ? Layout::kMlx : Layout::kPeft;
  WEIR_TRY(read_config(config));
  WEIR_TRY(collect());
  return std::move(card_);
}

Result<void> AdapterReader::read_metadata(const GgufHeader& header, const FileView& file) {
  const auto expect = [&](std::string_view key, std::string_view text) -> Result<void> {
    const GgufValue* value = header.metadata.find(key);
    const auto found = value == nullptr ? std::nullopt : value->text();
    if (found == text) return {};
    return fail(ErrorCode::kUnsupported,
                file.name() + ": key \"" + std::string(key) + "\": expected " + std::string(text) +
                    ", found " + (found ? shown_name(*found) : "nothing"));
  };
  WEIR_TRY(expect("general.type", "adapter"));
  WEIR_TRY(expect("adapter.type", "lora"));
  const GgufValue* alpha = header.metadata.find("adapter.lora.alpha");
  alpha_ = alpha == nullptr ? 0 : alpha->number().value_or(0);
  return {};
}

Result<AdapterCard> AdapterReader::read_gguf(FileView weights) {
  card_.layout_ = Layout::kGguf;
  WEIR_ASSIGN(GgufHeader header, parse_gguf(weights.name(), weights.bytes()));
  WEIR_TRY(read_metadata(header, weights));
  const GgufValue* name = header.metadata.find("general.architecture");
  const auto text = name == nullptr ? std::nullopt : name->text();
  std::vector<GgufPart> parts(1);
  parts[0].header = header;
  const GgufArchitecture* architecture = text ? gguf_architecture(*text, parts) : nullptr;
  if (architecture == nullptr)
    return fail(ErrorCode::kUnsupported,
                weights.name() + ": key \"general.architecture\": expected one of " +
                    gguf_architecture_names() + ", found " + (text ? shown_name(*text) : "nothing"));
  card_.paired_rows_ = architecture->paired_rows;
  std::vector<StoredTensor> tensors;
  for (const GgufTensor& tensor : header.tensors) {
    StoredTensor& out = tensors.emplace_back();
    // The end stands after the name of the tensor that is adapted.
    const size_t end = tensor.name.rfind(".lora_");
    const std::string_view adapted = std::string_view(tensor.name).substr(0, end);
    out.name = published_name(*architecture, adapted);
    if (end != tensor.name.npos) out.name += tensor.name.substr(end);
    out.blocks = tensor.type.blocks;
    out.tensor.type = out.blocks != nullptr ? DType::kU8 : tensor.type.floats;
    if (tensor.shape.size() > Tensor::kMaxRank)
      return wrong("tensor " + shown_name(tensor.name) + ": expected 2 dimensions, found " +
                   std::to_string(tensor.shape.size()));
    out.tensor.rank = static_cast<int>(tensor.shape.size());
    std::ranges::copy(tensor.shape, out.tensor.shape.begin());
    out.tensor.data = weights.bytes().data() + tensor.offset;
    out.offset = tensor.offset;
  }
  WEIR_TRY(card_.tensors_.add(std::move(weights), std::move(tensors)));
  WEIR_TRY(collect());
  return std::move(card_);
}

Result<AdapterCard> AdapterCard::read(std::string_view config, FileView weights) {
  AdapterReader reader(weights.name());
  return is_gguf(weights.bytes()) ? reader.read_gguf(std::move(weights))
                                  : reader.read_safetensors(config, std::move(weights));
}

Result<AdapterCard> AdapterCard::open(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    WEIR_ASSIGN(FileView weights, FileView::map(path));
    if (is_gguf(weights.bytes())) return read({}, std::move(weights));
    return fail(ErrorCode::kConfig,
                path + ": expected a GGUF file or a folder with an adapter, found another file");
  }
  const fs::path folder(path);
  for (const char* file : {"adapter_model.safetensors", "adapters.safetensors"}) {
    if (!fs::is_regular_file(folder / file, error)) continue;
    WEIR_ASSIGN(const std::string config,
                read_file((folder / kConfig).string(), kConfigBytesMax));
    WEIR_ASSIGN(FileView weights, FileView::map((folder / file).string()));
    return read(config, std::move(weights));
  }
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".gguf") found.push_back(entry.path().string());
  if (found.size() == 1) return open(found[0]);
  return fail(ErrorCode::kConfig, path + ": expected " + kConfig +
                                      " with adapter_model.safetensors or adapters.safetensors, or "
                                      "one GGUF file; found " +
                                      (found.empty() ? "none of them" : "several GGUF files"));
}

int32_t AdapterCard::rank() const {
  int32_t rank = 0;
  for (const AdapterPart& part : parts_) rank = std::max(rank, part.rank);
  return rank;
}

uint64_t AdapterCard::bytes() const {
  uint64_t bytes = 0;
  for (const StoredTensor& tensor : tensors_.tensors())
    bytes += static_cast<uint64_t>(tensor.tensor.bytes());
  return bytes;
}

}  // namespace weir::card
