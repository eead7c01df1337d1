// GgufFile: the bytes of a GGUF file, put together key by key and tensor by tensor.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::card {

class GgufFile {
 public:
  template <class T>
  static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string text(std::string_view text) {
    return raw<uint64_t>(text.size()) + std::string(text);
  }

  GgufFile& key(std::string_view name, uint32_t type, const std::string& value) {
    ++keys_;
    metadata_ += text(name) + raw(type) + value;
    return *this;
  }
  GgufFile& integer(std::string_view name, uint32_t value) { return key(name, 4, raw(value)); }
  GgufFile& number(std::string_view name, float value) { return key(name, 6, raw(value)); }
  GgufFile& flag(std::string_view name, bool value) { return key(name, 7, raw<uint8_t>(value)); }
  GgufFile& string(std::string_view name, std::string_view value) {
    return key(name, 8, text(value));
  }
  GgufFile& list(std::string_view name, uint32_t type, uint64_t count, const std::string& items) {
    return key(name, 9, raw(type) + raw(count) + items);
  }
  GgufFile& strings(std::string_view name, const std::vector<std::string>& values) {
    std::string items;
    for (const std::string& value : values) items += text(value);
    return list(name, 8, values.size(), items);
  }
  // `dims` with the one of rows first, as the file has them.
  GgufFile& tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                   const std::string& bytes) {
    infos_ += text(name) + raw<uint32_t>(static_cast<uint32_t>(dims.size()));
    for (const uint64_t size : dims) infos_ += raw(size);
    infos_ += raw(type) + raw<uint64_t>(data_.size());
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensors_;
    return *this;
  }
  GgufFile& floats(std::string_view name, const std::vector<uint64_t>& dims) {
    uint64_t count = 1;
    for (const uint64_t size : dims) count *= size;
    return tensor(name, dims, 0, std::string(count * 4, '\0'));
  }

  std::string bytes(uint32_t version = 3) const {
    std::string file =
        "GGUF" + raw(version) + raw<uint64_t>(tensors_) + raw<uint64_t>(keys_) + metadata_ + infos_;
    file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

 private:
  uint64_t keys_ = 0, tensors_ = 0;
  std::string metadata_, infos_, data_;
};

// A model of one layer without numbers.
inline GgufFile small_gguf(std::string_view architecture) {
  const std::string a = std::string(architecture) + ".";
  GgufFile file;
  file.string("general.architecture", architecture)
      .integer(a + "block_count", 1)
      .integer(a + "context_length", 128)
      .integer(a + "embedding_length", 64)
      .integer(a + "feed_forward_length", 96)
      .integer(a + "attention.head_count", 4)
      .integer(a + "attention.head_count_kv", 2)
      .number(a + "attention.layer_norm_rms_epsilon", 1e-5f)
      .number(a + "rope.freq_base", 10000);
  file.floats("token_embd.weight", {64, 32}).floats("output_norm.weight", {64});
  for (const auto& [name, rows] : {std::pair{"attn_q", 64}, {"attn_k", 32}, {"attn_v", 32}})
    file.floats("blk.0." + std::string(name) + ".weight", {64, static_cast<uint64_t>(rows)});
  file.floats("blk.0.attn_output.weight", {64, 64})
      .floats("blk.0.attn_norm.weight", {64})
      .floats("blk.0.ffn_norm.weight", {64})
      .floats("blk.0.ffn_gate.weight", {64, 96})
      .floats("blk.0.ffn_up.weight", {64, 96})
      .floats("blk.0.ffn_down.weight", {96, 64});
  return file;
}

}  // namespace weir::card
