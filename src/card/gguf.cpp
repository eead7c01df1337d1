#include "card/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "card/checkpoint.h"

namespace weir::card {

namespace {

using Kind = GgufValue::Kind;

constexpr std::string_view kMagic = "GGUF";
// The longest keys and names published have about 60 bytes.
constexpr uint64_t kNameBytesMax = 1024;
constexpr uint32_t kRankMax = 4;
constexpr int kListDepthMax = 4;
constexpr uint64_t kAlignmentMax = 1 << 20;

// Bytes of one value; 0 for those without a fixed size.
size_t size_of(Kind kind) {
  switch (kind) {
    case Kind::kU8:
    case Kind::kI8:
    case Kind::kBool:
      return 1;
    case Kind::kU16:
    case Kind::kI16:
      return 2;
    case Kind::kU32:
    case Kind::kI32:
    case Kind::kF32:
      return 4;
    case Kind::kU64:
    case Kind::kI64:
    case Kind::kF64:
      return 8;
    default:
      return 0;
  }
}

template <class T>
T load(std::span<const std::byte> bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

// Reads from the front; the first thing that does not fit is the error, after which all is zero.
class Reader {
 public:
  Reader(std::string_view file, std::span<const std::byte> bytes) : file_(file), all_(bytes) {}

  template <class T>
  T number(std::string_view what) {
    const std::span<const std::byte> found = take(sizeof(T), what);
    return found.empty() ? T{} : load<T>(found, 0);
  }
  std::span<const std::byte> take(uint64_t bytes, std::string_view what) {
    if (!error_.empty()) return {};
    if (bytes > all_.size() - at_) {
      short_ = true;
      wrong(what, std::to_string(bytes) + " bytes",
            std::to_string(all_.size() - at_) + " before the file's end");
      return {};
    }
    at_ += bytes;
    return all_.subspan(at_ - bytes, bytes);
  }
  std::string_view text(std::string_view what, uint64_t bytes_max = UINT64_MAX) {
    const auto bytes = number<uint64_t>(what);
    if (bytes > bytes_max)
      wrong(what, "at most " + std::to_string(bytes_max) + " bytes", std::to_string(bytes));
    const std::span<const std::byte> found = take(bytes, what);
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }
  void wrong(std::string_view what, std::string_view expected, std::string_view found) {
    if (!error_.empty()) return;
    error_ = std::string(file_) + ": ";
    error_.append(what).append(": expected ").append(expected).append(", found ").append(found);
  }
  bool failed() const { return !error_.empty(); }
  // It failed because the bytes came to their end.
  bool is_short() const { return short_; }
  tl::unexpected<Error> error() const { return fail(ErrorCode::kConfig, error_); }
  size_t at() const { return at_; }
  std::span<const std::byte> since(size_t begin) const { return all_.subspan(begin, at_ - begin); }

 private:
  std::string_view file_;
  std::span<const std::byte> all_;
  size_t at_ = 0;
  bool short_ = false;
  std::string error_;
};

// Passes over `count` values of one kind.
void skip(Reader& in, Kind kind, uint64_t count, int depth, std::string_view what) {
  if (const size_t size = size_of(kind); size > 0) {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = UINT64_MAX;
    in.take(bytes, what);
    return;
  }
  for (uint64_t i = 0; i < count && !in.failed(); ++i) {
    if (kind == Kind::kString) {
      in.text(what);
      continue;
    }
    const auto inner = in.number<uint32_t>(what);
    const auto inner_count = in.number<uint64_t>(what);
    if (inner > static_cast<uint32_t>(Kind::kF64)) {
      in.wrong(what, "a list of a type from 0 to 12", std::to_string(inner));
    } else if (depth >= kListDepthMax) {
      in.wrong(what, "lists at most " + std::to_string(kListDepthMax) + " deep", "deeper ones");
    } else {
      skip(in, static_cast<Kind>(inner), inner_count, depth + 1, what);
    }
  }
}

void read_key(Reader& in, GgufMetadata& metadata) {
  const std::string_view key = in.text("a key of the metadata", kNameBytesMax);
  if (in.failed()) return;
  const std::string what = "key " + shown_name(key);
  auto kind = in.number<uint32_t>(what);
  const bool list = kind == static_cast<uint32_t>(Kind::kArray);
  uint64_t count = 1;
  if (list) {
    kind = in.number<uint32_t>(what);
    count = in.number<uint64_t>(what);
  }
  if (kind > static_cast<uint32_t>(Kind::kF64))
    in.wrong(what, "a type from 0 to 12", std::to_string(kind));
  if (in.failed()) return;
  const size_t begin = in.at();
  skip(in, static_cast<Kind>(kind), count, 1, what);
  if (in.failed()) return;
  if (!metadata.add(key, GgufValue(static_cast<Kind>(kind), list, count, in.since(begin))))
    in.wrong(what, "it once", "it twice");
}

// One tensor, whose offset counts from the data's begin. An error of the second kind is returned:
// the file is well-formed, but has what is not read.
Result<void> read_tensor(Reader& in, std::string_view file, GgufTensor& tensor) {
  tensor.name = in.text("the name of a tensor", kNameBytesMax);
  const std::string what = "tensor " + shown_name(tensor.name);
  const auto rank = in.number<uint32_t>(what);
  if (rank < 1 || rank > kRankMax)
    in.wrong(what, "1 to " + std::to_string(kRankMax) + " dimensions", std::to_string(rank));
  uint64_t numbers = 1;
  for (uint32_t i = 0; i < rank && !in.failed(); ++i) {
    const auto size = in.number<uint64_t>(what);
    if (size == 0 || size > uint64_t{1} << 40 || __builtin_mul_overflow(numbers, size, &numbers) ||
        numbers > uint64_t{1} << 56)
      in.wrong(what, "dimensions of a tensor within the file", std::to_string(size));
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
  }
  const auto type = in.number<uint32_t>(what);
  tensor.offset = in.number<uint64_t>(what);
  if (in.failed()) return {};
  const auto known = gguf_tensor_type(type);
  if (!known)
    return fail(ErrorCode::kUnsupported,
                std::string(file) + ": " + what + ": expected the type F32, F16, BF16, Q4_0 to " +
                    "Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4 or NVFP4, found " +
                    gguf_type_name(type) +
                    ": take a file of the same model in one of those, as Q4_K_M or Q3_K_M");
  tensor.type = *known;
  if (tensor.shape.back() % tensor.type.numbers() != 0)
    in.wrong(what, "rows of a multiple of " + std::to_string(tensor.type.numbers()) + " numbers",
             std::to_string(tensor.shape.back()));
  return {};
}

// Places the tensors after the header. They must lie within the file, and none in another.
void place(Reader& in, uint64_t alignment, size_t file_bytes, std::vector<GgufTensor>& tensors) {
  const uint64_t begin = (in.at() + alignment - 1) / alignment * alignment;
  std::vector<const GgufTensor*> order;
  for (GgufTensor& t : tensors) {
    const std::string what = "tensor " + shown_name(t.name);
    if (t.offset % alignment != 0)
      in.wrong(what, "an offset that is a multiple of " + std::to_string(alignment),
               std::to_string(t.offset));
    const uint64_t bytes = t.bytes();
    if (begin > file_bytes || t.offset > file_bytes - begin ||
        bytes > file_bytes - begin - t.offset)
      in.wrong(
          what,
          std::to_string(bytes) + " bytes at " + std::to_string(t.offset) + " of the file's data",
          std::to_string(begin > file_bytes ? 0 : file_bytes - begin) +
              " bytes of data: the file is cut short, or its header is damaged");
    if (in.failed()) return;
    t.offset += begin;
    order.push_back(&t);
  }
  std::ranges::sort(order, {}, &GgufTensor::offset);
  for (size_t i = 1; i < order.size(); ++i) {
    const uint64_t end = order[i - 1]->offset + order[i - 1]->bytes();
    if (order[i]->offset < end)
      in.wrong("tensor " + shown_name(order[i]->name),
               "its data at " + std::to_string(end) + " or later, where " +
                   shown_name(order[i - 1]->name) + " ends",
               std::to_string(order[i]->offset));
  }
}

}  // namespace

std::string GgufValue::kind_text() const {
  std::string one, many;
  switch (kind_) {
    case Kind::kString:
      one = "a string", many = "strings";
      break;
    case Kind::kBool:
      one = "a boolean", many = "booleans";
      break;
    case Kind::kF32:
    case Kind::kF64:
      one = "a number", many = "numbers";
      break;
    case Kind::kArray:
      one = "a list", many = "lists";
      break;
    default:
      one = "an integer", many = "integers";
  }
  return list_ ? "a list of " + std::to_string(count_) + " " + many : one;
}

bool GgufValue::is_integer() const {
  return kind_ != Kind::kF32 && kind_ != Kind::kF64 && kind_ != Kind::kString &&
         kind_ != Kind::kArray && kind_ != Kind::kBool;
}

int64_t GgufValue::integer_at(size_t i) const {
  switch (kind_) {
    case Kind::kU8:
    case Kind::kBool:
      return load<uint8_t>(bytes_, i);
    case Kind::kI8:
      return load<int8_t>(bytes_, i);
    case Kind::kU16:
      return load<uint16_t>(bytes_, i);
    case Kind::kI16:
      return load<int16_t>(bytes_, i);
    case Kind::kU32:
      return load<uint32_t>(bytes_, i);
    case Kind::kI32:
      return load<int32_t>(bytes_, i);
    default:  // Of 64 bits; a larger one becomes negative, as no count or size is.
      return load<int64_t>(bytes_, i);
  }
}

double GgufValue::number_at(size_t i) const {
  if (kind_ == Kind::kF32) return static_cast<double>(load<float>(bytes_, i));
  if (kind_ == Kind::kF64) return load<double>(bytes_, i);
  if (kind_ == Kind::kU64) return static_cast<double>(load<uint64_t>(bytes_, i));
  return static_cast<double>(integer_at(i));
}

std::optional<int64_t> GgufValue::integer() const {
  if (list_ || !is_integer()) return std::nullopt;
  if (kind_ == Kind::kU64 && load<uint64_t>(bytes_, 0) > uint64_t{INT64_MAX}) return std::nullopt;
  return integer_at(0);
}

std::optional<double> GgufValue::number() const {
  const bool fits = is_integer() || kind_ == Kind::kF32 || kind_ == Kind::kF64;
  return !list_ && fits ? std::optional(number_at(0)) : std::nullopt;
}

std::optional<bool> GgufValue::flag() const {
  return !list_ && kind_ == Kind::kBool ? std::optional(integer_at(0) != 0) : std::nullopt;
}

std::optional<std::string_view> GgufValue::text() const {
  if (list_ || kind_ != Kind::kString) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()).substr(8);
}

std::optional<std::vector<int64_t>> GgufValue::integers() const {
  if (!is_integer() && kind_ != Kind::kBool) return std::nullopt;
  std::vector<int64_t> out;
  for (size_t i = 0; i < count(); ++i) out.push_back(integer_at(i));
  return out;
}

std::optional<std::vector<double>> GgufValue::numbers() const {
  if (!is_integer() && kind_ != Kind::kF32 && kind_ != Kind::kF64) return std::nullopt;
  std::vector<double> out;
  for (size_t i = 0; i < count(); ++i) out.push_back(number_at(i));
  return out;
}

std::optional<std::vector<std::string_view>> GgufValue::texts() const {
  if (kind_ != Kind::kString) return std::nullopt;
  std::vector<std::string_view> out;
  std::string_view rest(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  for (size_t i = 0; i < count(); ++i) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, rest.data(), sizeof bytes);
    out.push_back(rest.substr(sizeof bytes, bytes));
    rest.remove_prefix(sizeof bytes + bytes);
  }
  return out;
}

bool GgufMetadata::add(std::string_view key, const GgufValue& value) {
  return values_.emplace(key, value).second;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

uint64_t GgufTensor::bytes() const {
  uint64_t numbers = 1;
  for (const int64_t size : shape) numbers *= static_cast<uint64_t>(size);
  return numbers / static_cast<uint64_t>(type.numbers()) * static_cast<uint64_t>(type.bytes());
}

bool is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

namespace {

// All before the data; what `in` fails at is no error yet.
Result<GgufHeader> read_header(Reader& in, std::string_view file) {
  static_assert(std::endian::native == std::endian::little);
  in.take(kMagic.size(), "the mark of the format");
  const auto version = in.number<uint32_t>("the version");
  if (!in.failed() && version != 2 && version != 3)
    return fail(ErrorCode::kUnsupported,
                std::string(file) + ": expected version 2 or 3 of GGUF, found " +
                    (version == 1 ? "version 1: take a newer file of the same model"
                                  : std::to_string(version) + " (big-endian files are not read)"));
  const auto tensor_count = in.number<uint64_t>("the number of tensors");
  const auto key_count = in.number<uint64_t>("the number of keys");
  GgufHeader header;
  for (uint64_t i = 0; i < key_count && !in.failed(); ++i) read_key(in, header.metadata);
  for (uint64_t i = 0; i < tensor_count && !in.failed(); ++i) {
    GgufTensor tensor;
    WEIR_TRY(read_tensor(in, file, tensor));
    header.tensors.push_back(std::move(tensor));
  }
  return header;
}

tl::unexpected<Error> no_gguf(std::string_view file, size_t bytes) {
  return fail(ErrorCode::kConfig, std::string(file) + ": expected a GGUF file, found " +
                                      std::to_string(bytes) + " bytes of another");
}

}  // namespace

Result<std::optional<uint64_t>> gguf_head_bytes(std::string_view file,
                                                std::span<const std::byte> beginning) {
  if (!is_gguf(beginning)) return no_gguf(file, beginning.size());
  Reader in(file, beginning);
  WEIR_TRY(read_header(in, file));
  if (in.is_short()) return std::nullopt;
  if (in.failed()) return in.error();
  return in.at();
}

Result<GgufHeader> parse_gguf(std::string_view file, std::span<const std::byte> bytes) {
  if (!is_gguf(bytes)) return no_gguf(file, bytes.size());
  Reader in(file, bytes);
  WEIR_ASSIGN(GgufHeader header, read_header(in, file));
  if (in.failed()) return in.error();
  int64_t alignment = 32;
  if (const GgufValue* value = header.metadata.find("general.alignment"))
    alignment = value->integer().value_or(0);
  if (alignment < 1 || static_cast<uint64_t>(alignment) > kAlignmentMax)
    in.wrong("key \"general.alignment\"", "an integer from 1 to " + std::to_string(kAlignmentMax),
             std::to_string(alignment));
  if (!in.failed()) place(in, static_cast<uint64_t>(alignment), bytes.size(), header.tensors);
  if (in.failed()) return in.error();
  return header;
}

}  // namespace weir::card
