#include "encoder/spec.h"

#include <algorithm>
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

std::string text(const TimeConv::Axis& axis) {
  return format("%d/%d (%d+%d)", axis.taps, axis.stride, axis.before, axis.after);
}

std::string text(const TimeConv& op) {
  std::string s = "convolution " + text(op.time);
  if (op.bands > 1) s += format(" x %s of %d bands", text(op.band).c_str(), op.bands);
  s += format(" to %d", op.channels);
  if (op.bias) s += ", bias";
  if (op.norm) s += (op.running ? ", then running " : ", then ") + text(*op.norm);
  s += std::string(", ") + act_name(op.act);
  if (!op.positions.empty()) s += format(", positions one by one (%d)", op.positions_max);
  return s;
}

std::string text(const Attention& op) {
  std::string s = format("attention %d x %d, scale ", op.heads, op.head_dim) + number(op.scale);
  if (!op.fused.empty()) s += ", fused";
  if (op.bias) s += ", bias";
  if (op.bias && !op.key_bias) s += ", keys without";
  if (op.out_bias != op.bias) s += op.out_bias ? ", bias of the output" : ", output without";
  if (op.q_norm) s += ", queries " + text(*op.q_norm);
  if (op.k_norm) s += ", keys " + text(*op.k_norm);
  if (op.v_norm) s += ", values " + text(*op.v_norm);
  if (op.norms_heads) s += ", head by head";
  if (op.windows) s += ", in windows";
  if (op.clipped) s += ", clipped";
  return s;
}

std::string text(const LocalAttention& op) {
  std::string s = format("attention %d x %d to %d rows, %d positions from %d back", op.heads,
                         op.head_dim, op.window, op.positions, op.past);
  if (op.key_scale != 1) s += ", keys x" + number(op.key_scale);
  if (op.softcap != 0) s += ", soft cap " + number(op.softcap);
  if (op.clipped) s += ", clipped";
  if (op.turned) s += format(", turned in chunks of %d", op.chunk);
  return s;
}

std::string text(const LightConv& op) {
  return format("light convolution %d, %s, %s%s", op.taps, text(op.norm).c_str(), act_name(op.act),
                op.clipped ? ", clipped" : "");
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
  return format("%d x %d merged, %s%s", op.side, op.side,
                op.order == Merge::kPatchByPatch ? "patch by patch" : "number by number",
                op.transposed ? ", grid transposed" : "");
}

std::string text(const Standardise&) { return "standardised"; }

std::string text(const Pool& op) {
  return format("%d x %d averaged", op.side, op.side) +
         (op.factor == 1 ? "" : ", x" + number(op.factor));
}

std::string text(const Thin& op) {
  return format(op.mean ? "%d rows averaged" : "one of %d rows", op.step);
}

std::string text(const FillUp& op) {
  return format("filled up to %d rows with the last of %d entries, ", op.rows, op.entries) +
         text(op.norm);
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
  if (stage.factor != 1) s += "; x" + number(stage.factor);
  if (stage.limit != 0) s += "; within " + number(stage.limit);
  if (stage.replaces) s += "; in its place";
  return s;
}

std::string text(const EncoderSpec& spec) {
  if (spec.medium == Medium::kSound) {
    std::string s = format("%s: frames of %d bands", spec.family.c_str(), spec.bands);
    if (spec.frames_multiple > 1) s += format(", multiples of %d", spec.frames_multiple);
    return s + (spec.all_frames ? ", silence too" : "");
  }
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

// Blocks of so many stages that repeat are one line.
std::string text(const std::vector<Stage>& stages) {
  std::vector<std::string> lines;
  for (const Stage& stage : stages) lines.push_back(text(stage));
  const auto repeats = [&](size_t from, size_t block) {
    size_t times = 1;
    while (from + (times + 1) * block <= lines.size() &&
           std::equal(lines.begin() + static_cast<std::ptrdiff_t>(from),
                      lines.begin() + static_cast<std::ptrdiff_t>(from + block),
                      lines.begin() + static_cast<std::ptrdiff_t>(from + times * block)))
      ++times;
    return times;
  };
  std::string s;
  for (size_t i = 0; i < lines.size();) {
    // A block of a transformer has two stages, one of a conformer five.
    size_t block = 1, times = 1;
    for (const size_t size : {2, 5})
      if (times == 1 && (times = repeats(i, size)) > 1) block = size;
    if (block == 1) {
      s += lines[i++] + "\n";
      continue;
    }
    s += format("%zu x (", times);
    for (size_t j = 0; j < block; ++j) s += (j > 0 ? " | " : "") + lines[i + j];
    s += ")\n";
    i += times * block;
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
