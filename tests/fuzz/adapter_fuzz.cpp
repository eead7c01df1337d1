// An adapter as adapter_config.json (the first line) and the rest of its files: a GGUF file, or the
// header of a safetensors file, with zeros for data. Reading it gives a card or an error; binding it
// to a small model gives weights that can be computed with, or an error, in bounded memory.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "card/adapter_card.h"
#include "card/gguf.h"
#include "kernels/cpu_ops.h"
#include "model/adapter.h"
#include "safetensors_data.h"

namespace {

using weir::model::AdapterTarget;

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kHeaderBytesMax = size_t{1} << 18;
constexpr size_t kDataBytesMax = size_t{1} << 20;
constexpr int64_t kBytesMax = int64_t{4} << 20;

// Of two widths, so that shapes can be wrong; all numbers are 1.
std::vector<AdapterTarget> targets() {
  static const std::vector<float> ones(48 * 32, 1.0f);
  std::vector<AdapterTarget> out;
  const auto add = [&](std::string module, int32_t n, int32_t k) -> AdapterTarget& {
    AdapterTarget& target = out.emplace_back();
    target.module = std::move(module);
    target.rows = n;
    target.weight.n = n;
    target.weight.k = k;
    target.weight.floats = {.n = n, .k = k, .rows = ones.data()};
    target.weight.target = static_cast<int32_t>(out.size()) - 1;
    return target;
  };
  add("model.embed_tokens", 48, 16).table = true;
  add("model.layers.0.self_attn.q_proj", 16, 16);
  add("model.layers.0.self_attn.k_proj", 8, 16);
  add("model.layers.0.mlp.down_proj", 16, 32);
  // Two parts of one stored module.
  AdapterTarget& gate = add("model.layers.0.mlp.gate_up_proj", 32, 16);
  gate.rows = 64;
  AdapterTarget& up = add("model.layers.0.mlp.gate_up_proj", 32, 16);
  up.rows = 64;
  up.row = 32;
  add("lm_head", 48, 16).resident = false;
  return out;
}

void bind(const weir::card::AdapterCard& card) {
  const std::vector<AdapterTarget> all = targets();
  const auto& ops = weir::kernels::ops_for(weir::kernels::Isa::kScalar);
  for (const bool paired : {false, true}) {
    const weir::model::AdapterForm form = {.bf16 = paired,
                                           .paired_rows = paired,
                                           .head_dim = 8,
                                           .rank_max = 16,
                                           .bytes_max = kBytesMax};
    const auto adapter = weir::model::Adapter::bind(card, all, form, ops);
    if (!adapter) {
      CHECK(!adapter.error().message.empty());
      continue;
    }
    CHECK((*adapter)->bytes() <= kBytesMax && (*adapter)->rank() <= form.rank_max);
    for (const AdapterTarget& target : all) {
      const weir::model::AdaptedMatrix* matrix = (*adapter)->find(target.weight.target);
      if (matrix == nullptr || !matrix->low_rank()) continue;
      std::array<float, 64> y{}, t{};
      ops.add_low_rank(matrix->outer, t.data(), matrix->outer.rank,
                       {.rows = 1, .end = matrix->outer.n, .y = y.data(), .y_stride = 64});
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  if (line == std::string_view::npos || size > kHeaderBytesMax) return 0;
  const std::string_view config = input.substr(0, line), rest = input.substr(line + 1);
  std::string file(rest);
  if (!weir::card::is_gguf(std::as_bytes(std::span(rest)))) {
    const uint64_t length = rest.size();
    file.assign(reinterpret_cast<const char*>(&length), kLengthBytes);
    file += rest;
    file.resize(file.size() + weir::safetensors_data_bytes(rest, kDataBytesMax));
  }
  const auto card = weir::card::AdapterCard::read(
      config, weir::FileView::borrow("fuzz", std::as_bytes(std::span(file))));
  if (!card) {
    CHECK(!card.error().message.empty());
    return 0;
  }
  CHECK(!card->parts().empty() && card->rank() <= weir::card::kAdapterRankMax);
  bind(*card);
  return 0;
}
