// Adapter files made in memory, of random numbers: for tests, fuzz targets' beginnings and benches.
//
// Threads: free functions and a value.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "card/adapter_card.h"

namespace weir::card {

// A safetensors file of float32 tensors, and its adapter_config.json.
class AdapterFiles {
 public:
  explicit AdapterFiles(uint32_t seed = 1) : random_(seed) {}

  // A tensor of numbers as large as `size` on average.
  AdapterFiles& tensor(const std::string& name, const std::vector<int64_t>& shape, float size) {
    std::normal_distribution<float> number(0, size);
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    const size_t begin = numbers_.size() * sizeof(float);
    for (int64_t i = 0; i < count; ++i) numbers_.push_back(number(random_));
    if (!header_.empty()) header_ += ',';
    append_json_string(header_, name);
    header_ += ':';
    JsonWriter value(header_);
    value.begin_object().field("dtype", "F32").key("shape").begin_array();
    for (const int64_t dim : shape) value.value(dim);
    value.end_array().key("data_offsets").begin_array();
    value.value(static_cast<int64_t>(begin));
    value.value(static_cast<int64_t>(numbers_.size() * sizeof(float)));
    value.end_array().end_object();
    return *this;
  }
  // A and B of one module, as PEFT writes them.
  AdapterFiles& low_rank(const std::string& module, int64_t n, int64_t k, int64_t rank,
                         float size = 0.05f) {
    tensor("base_model.model." + module + ".lora_A.weight", {rank, k}, size);
    return tensor("base_model.model." + module + ".lora_B.weight", {n, rank}, size);
  }

  // The bytes of adapter_model.safetensors.
  std::string bytes() const {
    std::string header = "{";
    header.append(header_).push_back('}');
    header.append((8 - header.size() % 8) % 8, ' ');
    const uint64_t length = header.size();
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    out += header;
    out.append(reinterpret_cast<const char*>(numbers_.data()), numbers_.size() * sizeof(float));
    return out;
  }
  static std::string config(int32_t rank, double alpha, std::string_view more = "") {
    return "{\"peft_type\":\"LORA\",\"r\":" + std::to_string(rank) +
           ",\"lora_alpha\":" + std::to_string(alpha) + std::string(more) + "}";
  }

 private:
  std::mt19937 random_;
  std::string header_;
  std::vector<float> numbers_;
};

// The card of such files. `bytes` outlive it.
inline Result<AdapterCard> read_adapter(const std::string& config, const std::string& bytes) {
  return AdapterCard::read(config,
                                 FileView::borrow("adapter_model.safetensors",
                                                  std::as_bytes(std::span(bytes))));
}

}  // namespace weir::card
