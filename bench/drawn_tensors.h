// DrawnTensors: a checkpoint's tensors in bf16, drawn, as the bytes of a safetensors file: what a
// bench runs in the shape of a published model.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/concat.h"

namespace weir::bench {

class DrawnTensors {
 public:
  void draw(const std::string& name, std::vector<int64_t> shape, float deviation = 0.02f) {
    int64_t count = 1;
    std::string dims;
    for (const int64_t size : shape) {
      count *= size;
      dims += concat({dims.empty() ? "" : ",", std::to_string(size)});
    }
    header_ += concat({header_.empty() ? "{\"" : ",\"", name, R"(":{"dtype":"BF16","shape":[)",
                       dims, R"(],"data_offsets":[)", std::to_string(data_.size()), ",",
                       std::to_string(data_.size() + static_cast<size_t>(count) * 2), "]}"});
    std::normal_distribution<float> normal(0, deviation);
    // A table, for drawing so many numbers takes longer than the tower.
    std::vector<uint16_t> numbers(4093);
    for (uint16_t& number : numbers) {
      const float value = normal(random_);
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      number = static_cast<uint16_t>(bits >> 16);
    }
    for (int64_t at = 0; at < count; ++at) {
      const uint16_t number = numbers[static_cast<size_t>(at * 31 + at / 4093) % numbers.size()];
      data_.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
  }
  std::string file() {
    header_ += "}";
    while (header_.size() % 8 != 0) header_ += " ";
    const uint64_t length = header_.size();
    std::string out(sizeof length, '\0');
    std::memcpy(out.data(), &length, sizeof length);
    out += header_;
    return out += data_;
  }

 private:
  std::string header_, data_;
  std::mt19937 random_{1};
};

}  // namespace weir::bench
