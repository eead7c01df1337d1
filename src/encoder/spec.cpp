#include "encoder/spec.h"

#include <array>

#include "model/operations/describe_sizes.h"

namespace weir::encoder {

namespace {

using model::format;
using model::number;

const char* act_name(kernels::Act act) {
  static constexpr std::array kNames = {"silu", "gelu_tanh",  "gelu",   "relu2",
                                        "relu", "quick_gelu", "sigmoid"};
  return kNames[static_cast<size_t>(act)];
}

std::string text(const Norm& norm) {
  std::string s = norm.kind == Norm::kRms ? "rms " : "layernorm ";
  s += number(norm.eps);
  if (norm.weight_offset != 0) s += " 1+w";
  if (!norm.weight) s += " without weights";
  return s;
}

std::string text(const Patches& op) {
  std::string s = "patches";
  if (op.bias) s += ", bias";
  if (op.norm) s += ", then " + text(*op.norm);
  if (!op.class_row.empty()) s += op.class_last ? ", class row last" : ", class row first";
  static constexpr std::array kTables = {"",
                                         ", positions one by one",
                                         ", positions by fraction",
                                         ", positions resized",
                                         ", positions by axis",
                                         ", positions from corner to corner",
                                         ", positions bicubic"};
  s += kTables[op.positions.kind];
  if (op.positions.kind == PositionTable::kAxes)
    s += format(" (2 x %d)", op.positions.side);
  else if (op.positions.kind != PositionTable::kNone)
    s += format(" (%d x %d)", op.positions.side, op.positions.side);
  if (op.factor != 1) s += ", x" + number(op.factor) + " around " + number(op.middle);
  return s;
}

std::string text(const Depthwise& conv) {
  return format("depthwise %d x %d%s%s", conv.kernel, conv.kernel, conv.bias ? ", bias" : "",
                conv.batch_norm.empty() ? "" : ", batch norm");
}

std::string text(const PixelConv& op) {
  return format("convolution %d x %d, bias, %s", op.kernel, op.kernel, act_name(op.act));
}

std::string text(const Convolve& op) {
  std::string s = text(op.conv) + format(" to %d", op.width);
  if (op.stride > 1) s += format(", stride %d", op.stride);
  if (op.act) s += std::string(", ") + act_name(*op.act);
  return s;
}

std::string text(const SqueezeExcite& op) {
  return format("squeeze to %d and excite, %s", op.inner, act_name(op.act));
}

std::string text(const Attention& op) {
  std::string s = format("attention %d x %d, scale ", op.heads, op.head_dim) + number(op.scale);
  if (!op.fused.empty()) s += ", fused";
  if (op.bias) s += ", bias";
  if (op.out_bias != op.bias) s += op.out_bias ? ", bias of the output" : ", output without";
  if (op.q_norm) s += ", queries " + text(*op.q_norm);
  if (op.k_norm) s += ", keys " + text(*op.k_norm);
  if (op.v_norm) s += ", values " + text(*op.v_norm);
  if (op.norms_heads) s += ", head by head";
  if (op.windows) s += ", in windows";
  if (op.clipped) s += ", clipped";
  return s;
}

std::string text(const Mlp& op) {
  return format("%s %d %s%s%s", op.gate.empty() ? "mlp" : "gated mlp", op.width, act_name(op.act),
                op.bias ? ", bias" : "", op.clipped ? ", clipped" : "");
}

std::string text(const Normalise& op) {
  return "norm: " + text(op.norm) + (op.act ? std::string(", ") + act_name(*op.act) : "");
}
std::string text(const DropClassRow&) { return "class row dropped"; }

std::string text(const Merge& op) {
  return format("%d x %d merged, %s", op.side, op.side,
                op.order == Merge::kPatchByPatch ? "patch by patch" : "number by number");
}

std::string text(const Standardise&) { return "standardised"; }

std::string text(const Pool& op) {
  return format("%d x %d averaged", op.side, op.side) +
         (op.factor == 1 ? "" : ", x" + number(op.factor));
}

std::string text(const Project& op) {
  std::string s = format("linear %d", op.width);
  if (op.bias) s += ", bias";
  if (op.side > 1) s += format(", of squares of %d", op.side);
  if (op.act) s += std::string(", ") + act_name(*op.act);
  return s;
}

std::string text(const Stage& stage) {
  std::string s = std::visit([](const auto& op) { return text(op); }, stage.op);
  if (const auto* mlp = std::get_if<Mlp>(&stage.op); mlp != nullptr && mlp->conv)
    s += "; before: " + text(*mlp->conv);
  if (stage.pre) s += "; before: " + text(*stage.pre);
  if (stage.post) s += "; after: " + text(*stage.post);
  if (!stage.scale.empty()) s += "; scaled";
  if (stage.replaces) s += "; in its place";
  return s;
}

std::string text(const EncoderSpec& spec) {
  static constexpr std::array kLayouts = {"planes", "patches", "blocks"};
  static constexpr std::array kRopes = {"none", "interleaved rates", "equal rates", "neighbours",
                                        "halves"};
  std::string s = format("%s: %s of %d pixels, width %d", spec.family.c_str(),
                         kLayouts[static_cast<size_t>(spec.layout)], spec.patch, spec.width);
  if (spec.frames > 1) s += format(", %d frames", spec.frames);
  if (spec.merge > 1) s += format(", blocks of %d", spec.merge);
  if (spec.window > 0) s += format(", windows of %d", spec.window);
  if (spec.rope.kind != Rope::kNone)
    s += format(", rope by %s, theta ", kRopes[spec.rope.kind]) + number(spec.rope.theta);
  return s;
}

// Blocks of two stages that repeat are one line.
std::string text(const std::vector<Stage>& stages) {
  std::string s;
  for (size_t i = 0; i < stages.size();) {
    const std::string one = text(stages[i]);
    const std::string two = i + 1 < stages.size() ? text(stages[i + 1]) : "";
    size_t times = 0;
    for (size_t j = i;
         j + 1 < stages.size() && text(stages[j]) == one && text(stages[j + 1]) == two; j += 2)
      ++times;
    if (times > 1)
      s += format("%zu x (", times) + one + " | " + two + ")\n";
    else
      s += one + "\n";
    i += times > 1 ? 2 * times : 1;
  }
  return s;
}

}  // namespace

std::string describe(const EncoderSpec& spec) {
  std::string s = text(spec) + "\n" + text(spec.stages);
  for (const Level& level : spec.levels)
    s += format("after stage %zu, a level:\n", level.after) + text(level.stages);
  return s;
}

}  // namespace weir::encoder
