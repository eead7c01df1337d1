#include "model/rows/grouped_rows.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/rows/stored_numbers.h"
#include "model/stored_matrix.h"

namespace weir::model {

namespace {

std::string name_of(const std::string& name, const GroupedRows::Sizes& s) {
  return name + " " + std::to_string(s.bits) + "-bit g" + std::to_string(s.group) +
         (s.order_piece != 0 ? " in activation order" : "");
}

std::optional<kernels::QuantShape> shape_of(const GroupedRows::Sizes& s) {
  const int64_t group = s.groups == 1 ? s.k : s.group;
  const int32_t held = common_group(s.k, group);
  if (held == 0 || (s.order_piece != 0 && s.order.empty())) return std::nullopt;
  return kernels::QuantShape{
      .k = s.k,
      .group = held,
      .bits = s.bits,
      .scales = s.zero.has_value() ? kernels::ScaleForm::kScales : kernels::ScaleForm::kZeros,
      .scale_type = float_type(s.scale_type),
      .offset = s.zero.value_or(0)};
}

}  // namespace

GroupedRows::GroupedRows(const std::string& name, const std::string& layout, const Sizes& sizes)
    : RowSource(name_of(name, sizes),
                layout + " " + std::to_string(sizes.groups) + " " + dtype_name(sizes.scale_type),
                shape_of(sizes)),
      sizes_(sizes) {}

void GroupedRows::rows(const Bases& bases, int64_t first, int32_t count,
                       kernels::RowNumbers* out) const {
  std::vector<uint8_t*> to;
  for (int32_t i = 0; i < count; ++i) to.push_back(out[i].codes);
  codes(bases, first, count, to.data());
  if (!sizes_.order.empty()) {
    std::vector<uint8_t> stored(static_cast<size_t>(sizes_.k));
    for (uint8_t* row : to) {
      std::copy_n(row, sizes_.k, stored.begin());
      for (const int32_t column : sizes_.order) *row++ = stored[static_cast<size_t>(column)];
    }
  }
  const int32_t held = shape()->group;
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t g = 0; g < sizes_.k / held; ++g) {
      const int64_t group = int64_t{g} * held / sizes_.group;
      kernels::put_number(shape()->scale_type, scale(bases, first + i, group), out[i].scales, g);
      if (!sizes_.zero.has_value()) out[i].zeros[g] = zero(bases, first + i, group);
    }
  }
}

void GroupedRows::floats(const Bases& bases, int64_t first, int32_t count, float* out) const {
  const auto k = static_cast<size_t>(sizes_.k);
  const auto groups = static_cast<size_t>(sizes_.groups);
  std::vector<uint8_t> code(k * static_cast<size_t>(count));
  std::vector<uint8_t*> to;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) to.push_back(code.data() + i * k);
  codes(bases, first, count, to.data());
  // Checked when the tensors were bound, but the file may have been changed since.
  std::vector<size_t> group_of(k);
  const auto order = static_cast<size_t>(sizes_.order_piece);
  for (size_t c = 0; c < k; ++c)
    group_of[c] = std::min(order == 0 ? c / static_cast<size_t>(sizes_.group)
                                      : size_t{load_u32(bases[order], static_cast<int64_t>(c))},
                           groups - 1);
  std::vector<float> scales(groups), zeros(groups);
  for (int32_t i = 0; i < count; ++i) {
    for (size_t g = 0; g < groups; ++g) {
      scales[g] = scale(bases, first + i, static_cast<int64_t>(g));
      zeros[g] =
          sizes_.zero.has_value() ? *sizes_.zero : zero(bases, first + i, static_cast<int64_t>(g));
    }
    for (size_t c = 0; c < k; ++c)
      *out++ = scales[group_of[c]] *
               (static_cast<float>(to[static_cast<size_t>(i)][c]) - zeros[group_of[c]]);
  }
}

}  // namespace weir::model
