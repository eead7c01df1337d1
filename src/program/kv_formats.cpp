#include "program/kv_formats.h"

#include <algorithm>
#include <cstdio>

#include "kv/layout.h"

namespace weir {

namespace {

// "3.3".
std::string ratio_of(int64_t more, int64_t less) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(more) / static_cast<double>(less));
  return text;
}

int64_t bytes_of(const std::vector<FormatCost>& costs, kv::Format format) {
  const auto found = std::ranges::find(costs, format, &FormatCost::format);
  return found == costs.end() ? 0 : found->token_bytes;
}

}  // namespace

std::vector<FormatCost> format_costs(const model::Model& model) {
  std::vector<FormatCost> costs;
  for (const kv::Format format :
       {kv::Format::kF16, kv::Format::kF32, kv::Format::kInt8, kv::Format::kTq4, kv::Format::kTq3})
    if (const auto layout = kv::MemoryLayout::make(model.memory_needs(), format);
        layout && layout->groups().front().page_bytes > 0)
      costs.push_back({format, layout->groups().front().page_bytes / kv::kPageTokens});
  return costs;
}

std::string format_note(const model::Model& model, kv::Format chosen) {
  const std::vector<FormatCost> costs = format_costs(model);
  const int64_t plain = bytes_of(costs, kv::Format::kF16), mine = bytes_of(costs, chosen);
  const int64_t four = bytes_of(costs, kv::Format::kTq4);
  if (plain == 0 || mine == 0) return {};
  const std::string takes = std::string("keys and values in ") + chosen.name() + ": " +
                            std::to_string(mine) + " bytes a token";
  if (chosen.coded())
    return takes + ", where f16 takes " + std::to_string(plain) + " (" + ratio_of(plain, mine) +
           " times as many tokens in the same memory)";
  if (four == 0) return {};
  return takes + "; --kv-cache tq4 would take " + std::to_string(four) + " (" +
         ratio_of(mine, four) + " times as many tokens in the same memory)";
}

}  // namespace weir
