#include "card/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace weir::card {

namespace {

// The reference implementation's limit; a header has about 100 bytes a tensor.
constexpr uint64_t kHeaderBytesMax = 100'000'000;
constexpr size_t kShardsMax = 4096;

std::optional<DType> parse_dtype(std::string_view name) {
  static constexpr std::array kTypes = {DType::kF32,    DType::kF16,    DType::kBF16, DType::kU8,
                                        DType::kI8,     DType::kU16,    DType::kI16,  DType::kU32,
                                        DType::kI32,    DType::kI64,    DType::kU64,  DType::kF64,
                                        DType::kF8E4M3, DType::kF8E5M2, DType::kBool};
  for (const DType type : kTypes)
    if (name == dtype_name(type)) return type;
  return std::nullopt;
}

// One entry of the header, checked against the size of the data that follows it.
class EntryParser {
 public:
  EntryParser(std::string_view file, std::string_view name, uint64_t data_bytes)
      : where_(std::string(file) + ": tensor " + shown_name(name)), data_bytes_(data_bytes) {}

  Result<void> parse(JsonValue value, StoredTensor& out) {
    JsonObject entry;
    if (value.get(entry) != simdjson::SUCCESS)
      return wrong(std::string("expected an object, found ") + json_type_name(value));
    WEIR_TRY(parse_type(entry, out.tensor));
    WEIR_TRY(parse_shape(entry, out.tensor));
    return parse_offsets(entry, out);
  }

 private:
  Result<void> wrong(const std::string& what) const {
    return fail(ErrorCode::kConfig, where_ + ": " + what);
  }

  Result<void> parse_type(JsonObject entry, Tensor& tensor) const {
    std::string_view name;
    const auto value = json_get(entry, "dtype");
    if (!value || value->get(name) != simdjson::SUCCESS)
      return wrong("expected a string 'dtype', found none");
    const auto type = parse_dtype(name);
    if (!type) return wrong("expected a dtype like F32, BF16 or U32, found " + shown_name(name));
    tensor.type = *type;
    return {};
  }

  Result<void> parse_shape(JsonObject entry, Tensor& tensor) {
    JsonArray shape;
    const auto value = json_get(entry, "shape");
    if (!value || value->get(shape) != simdjson::SUCCESS)
      return wrong("expected an array 'shape', found none");
    if (shape.size() > Tensor::kMaxRank)
      return wrong("expected at most " + std::to_string(Tensor::kMaxRank) + " dimensions, found " +
                   std::to_string(shape.size()));
    bytes_ = dtype_bytes(tensor.type);
    for (const JsonValue item : shape) {
      uint64_t size = 0;
      if (item.get(size) != simdjson::SUCCESS)
        return wrong("expected non-negative integers in 'shape', found " + json_excerpt(item));
      // Nothing in a file is larger than its data; a tensor of zero bytes may claim any other
      // sizes, as far as their product is a number before the zero makes it none.
      if (size > uint64_t{1} << 40 || __builtin_mul_overflow(bytes_, size, &bytes_))
        return wrong("expected a shape within the file's " + std::to_string(data_bytes_) +
                     " bytes of data, found " + json_excerpt(*value));
      tensor.shape[static_cast<size_t>(tensor.rank++)] = static_cast<int64_t>(size);
    }
    return {};
  }

  Result<void> parse_offsets(JsonObject entry, StoredTensor& out) const {
    JsonArray offsets;
    const auto value = json_get(entry, "data_offsets");
    if (!value || value->get(offsets) != simdjson::SUCCESS)
      return wrong("expected an array 'data_offsets', found none");
    std::array<uint64_t, 2> range{};
    bool valid = offsets.size() == range.size();
    size_t count = 0;
    for (const JsonValue item : offsets)
      valid = valid && item.get(range[count++]) == simdjson::SUCCESS;
    if (!valid || range[0] > range[1])
      return wrong("expected data_offsets [begin, end], found " + json_excerpt(*value));
    if (range[1] > data_bytes_)
      return wrong("expected data_offsets within the file's " + std::to_string(data_bytes_) +
                   " bytes of data, found " + json_excerpt(*value) +
                   ": the file is cut short, or its header is damaged");
    if (range[1] - range[0] != static_cast<uint64_t>(bytes_))
      return wrong("expected " + std::to_string(bytes_) + " bytes for " + to_string(out.tensor) +
                   ", found " + std::to_string(range[1] - range[0]));
    out.offset = range[0];
    return {};
  }

  const std::string where_;
  const uint64_t data_bytes_;
  int64_t bytes_ = 0;  // As Tensor counts them.
};

// `tensors` with offsets relative to the data. They must tile it: an overlap would let one tensor
// alias another, a hole would hide bytes that nothing checks.
Result<void> check_layout(std::string_view file, const std::vector<StoredTensor>& tensors,
                          uint64_t data_bytes) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->offset, a->tensor.bytes()) < std::pair(b->offset, b->tensor.bytes());
  });
  uint64_t end = 0;
  for (const StoredTensor* t : order) {
    if (t->offset != end)
      return fail(ErrorCode::kConfig, std::string(file) + ": tensor " + shown_name(t->name) +
                                          ": expected its data at " + std::to_string(end) +
                                          ", where the tensor before it ends; found " +
                                          std::to_string(t->offset) +
                                          (t->offset < end ? " (they overlap)" : " (a hole)"));
    end += static_cast<uint64_t>(t->tensor.bytes());
  }
  if (end != data_bytes)
    return fail(ErrorCode::kConfig, std::string(file) + ": expected " + std::to_string(end) +
                                        " bytes of data, found " + std::to_string(data_bytes));
  return {};
}

constexpr size_t kLengthBytes = sizeof(uint64_t);

Result<uint64_t> header_bytes_of(const std::string& file, const void* beginning,
                                 uint64_t header_bytes_max) {
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, beginning, kLengthBytes);
  if (header_bytes > header_bytes_max)
    return fail(ErrorCode::kConfig, file + ": expected a safetensors header of at most " +
                                        std::to_string(header_bytes_max) +
                                        " bytes, found a length of " +
                                        std::to_string(header_bytes));
  return header_bytes;
}

}  // namespace

Result<uint64_t> safetensors_head_bytes(std::string_view file_name, std::string_view beginning) {
  CHECK(beginning.size() >= kLengthBytes);
  WEIR_ASSIGN(const uint64_t header_bytes,
              header_bytes_of(std::string(file_name), beginning.data(), kHeaderBytesMax));
  return kLengthBytes + header_bytes;
}

Result<std::vector<StoredTensor>> parse_safetensors(std::string_view file_name,
                                                    std::span<const std::byte> bytes) {
  const std::string file(file_name);
  if (bytes.size() < kLengthBytes)
    return fail(ErrorCode::kConfig, file + ": expected a safetensors file; found " +
                                        std::to_string(bytes.size()) + " bytes");
  const uint64_t rest = bytes.size() - kLengthBytes;
  WEIR_ASSIGN(const uint64_t header_bytes,
              header_bytes_of(file, bytes.data(), std::min(rest, kHeaderBytesMax)));
  const std::byte* data = bytes.data() + kLengthBytes + header_bytes;
  const uint64_t data_bytes = rest - header_bytes;

  auto doc = JsonDoc::parse({reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                             static_cast<size_t>(header_bytes)},
                            16);
  if (!doc) return fail(ErrorCode::kConfig, file + ": header: " + doc.error().message);
  JsonObject root;
  if (doc->root().get(root) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                file + ": header: expected an object, found " + json_type_name(doc->root()));

  std::vector<StoredTensor> tensors;
  std::set<std::string_view> names;
  for (const auto [key, value] : root) {
    if (!names.insert(key).second)
      return fail(ErrorCode::kConfig, file + ": tensor " + shown_name(key) +
                                          ": expected once in the " + "header, found twice");
    if (key == "__metadata__") continue;
    StoredTensor stored;
    stored.name = std::string(key);
    WEIR_TRY(EntryParser(file, key, data_bytes).parse(value, stored));
    tensors.push_back(std::move(stored));
  }
  WEIR_TRY(check_layout(file, tensors, data_bytes));
  for (StoredTensor& t : tensors) {
    t.tensor.data = data + t.offset;
    t.offset += kLengthBytes + header_bytes;
  }
  return tensors;
}

namespace {

Result<void> add_file(FileView file, Checkpoint& checkpoint) {
  WEIR_ASSIGN(std::vector<StoredTensor> tensors, parse_safetensors(file.name(), file.bytes()));
  return checkpoint.add(std::move(file), std::move(tensors));
}

// The shards that an index names, in order of first mention.
Result<std::vector<std::string>> parse_index(
    const FileView& file, std::vector<std::pair<std::string, std::string>>& map) {
  const auto wrong = [&](const std::string& what) {
    return fail(ErrorCode::kConfig, file.name() + ": " + what);
  };
  if (file.bytes().size() > kHeaderBytesMax)
    return wrong("expected at most " + std::to_string(kHeaderBytesMax) + " bytes, found " +
                 std::to_string(file.bytes().size()));
  auto doc = JsonDoc::parse(file.text(), 16);
  if (!doc) return wrong(doc.error().message);
  JsonObject root, weights;
  const bool is_object = doc->root().get(root) == simdjson::SUCCESS;
  const auto found = is_object ? json_get(root, "weight_map") : std::nullopt;
  if (!found || found->get(weights) != simdjson::SUCCESS)
    return wrong("expected an object 'weight_map', found none");
  std::vector<std::string> shards;
  std::set<std::string_view> seen;
  for (const auto [key, value] : weights) {
    std::string_view shard;
    if (value.get(shard) != simdjson::SUCCESS)
      return wrong("tensor " + shown_name(key) + ": expected a file name, found " +
                   json_type_name(value));
    // A shard lies beside its index; anything else would read files of the index's choosing.
    if (shard.empty() || shard.find('/') != shard.npos || shard.find('\0') != shard.npos ||
        !shard.ends_with(".safetensors"))
      return wrong("tensor " + shown_name(key) +
                   ": expected the name of a .safetensors file in this folder, found " +
                   shown_name(shard));
    map.emplace_back(key, shard);
    if (seen.insert(shard).second) shards.emplace_back(shard);
    if (shards.size() > kShardsMax)
      return wrong("expected at most " + std::to_string(kShardsMax) + " shards, found more");
  }
  return shards;
}

}  // namespace

Result<Checkpoint> open_safetensors(FileView file) {
  Checkpoint checkpoint(file.name());
  WEIR_TRY(add_file(std::move(file), checkpoint));
  return checkpoint;
}

Result<Checkpoint> open_safetensors(const ModelFiles& files) {
  static constexpr char kSingle[] = "model.safetensors";
  static constexpr char kIndex[] = "model.safetensors.index.json";
  if (files.has(kSingle)) {
    WEIR_ASSIGN(FileView file, files.open_file(kSingle));
    return open_safetensors(std::move(file));
  }
  if (!files.has(kIndex))
    return fail(ErrorCode::kConfig,
                files.where() + ": expected " + kSingle + " or " + kIndex + "; found neither");
  WEIR_ASSIGN(const FileView index, files.open_file(kIndex));
  std::vector<std::pair<std::string, std::string>> map;
  WEIR_ASSIGN(const std::vector<std::string> shards, parse_index(index, map));
  Checkpoint checkpoint(index.name());
  for (const std::string& shard : shards) {
    WEIR_ASSIGN(FileView file, files.open_file(shard));
    WEIR_TRY(add_file(std::move(file), checkpoint));
  }
  for (const auto& [name, shard] : map) {
    const StoredTensor* tensor = checkpoint.find(name);
    if (tensor == nullptr || shards[static_cast<size_t>(tensor->file)] != shard)
      return fail(ErrorCode::kConfig,
                  index.name() + ": tensor " + shown_name(name) + ": expected in " + shard +
                      ", found " +
                      (tensor ? "in " + shards[static_cast<size_t>(tensor->file)] : "in no shard"));
  }
  return checkpoint;
}

}  // namespace weir::card
