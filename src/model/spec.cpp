#include "model/spec.h"

#include <algorithm>
#include <span>

#include "model/operations/describe_sizes.h"

namespace weir::model {

namespace {

std::string norm_text(const Norm& norm) {
  std::string s = norm.kind == Norm::kRms ? "rms " : "layernorm ";
  s += number(norm.eps);
  if (norm.weight_offset != 0) s += " 1+w";
  if (!norm.weight) s += " without weights";
  if (norm.bias) s += " bias";
  return s;
}

// Where the sublayer's norms stand.
std::string norms_text(const Sublayer& sublayer) {
  if (sublayer.pre && sublayer.post) return ", sandwich norms";
  if (sublayer.post) return ", norm after";
  return sublayer.pre ? ", norm before" : ", no norm";
}

// The sublayers of one layer. What is the same as for the sublayer before is not repeated.
std::string layer_text(std::span<const Sublayer> all, size_t first, size_t end) {
  const std::span sublayers = all.subspan(first, end - first);
  std::string s, norms = ", norm before";
  float scale = 1;
  for (size_t i = 0; i < sublayers.size(); ++i) {
    const Sublayer& sublayer = sublayers[i];
    if (i > 0) s += sublayer.input == Sublayer::kSameAsBefore ? " & " : " | ";
    s += std::visit([](const auto& op) { return text(op); }, sublayer.op);
    if (sublayer.memory_of >= 0)
      s += format(", keys of layer %d", all[static_cast<size_t>(sublayer.memory_of)].stored_layer);
    if (sublayer.input == Sublayer::kResidual)
      if (const std::string here = norms_text(sublayer); here != norms) s += norms = here;
    if (sublayer.held) s += ", held";
    if (sublayer.joint) s += ", joined, norm of both";
    if (sublayer.adds_held) s += ", then what was held";
    if (sublayer.predicts) s += ", predicted";
    if (sublayer.corrects) s += ", corrected";
    if (sublayer.carries_input || sublayer.carry != 1)
      s += format(", to its %s x", sublayer.carries_input ? "input" : "stream") +
           number(sublayer.carry);
    if (sublayer.plus_input) s += ", with its input";
    if (sublayer.to_others) s += ", to other streams";
    if (sublayer.stream_factor != 1) s += ", stream x" + number(sublayer.stream_factor);
    if (!sublayer.stream_scale.empty()) s += ", stream scaled";
    if (sublayer.late) s += ", added late";
    if (sublayer.scale != scale) s += ", residual x" + number(scale = sublayer.scale);
  }
  return s;
}

// "A5 B A5 B": runs of equal layers.
std::string pattern_text(const std::vector<size_t>& kinds) {
  std::string out;
  for (size_t i = 0; i < kinds.size();) {
    size_t end = i;
    while (end < kinds.size() && kinds[end] == kinds[i]) ++end;
    // Beyond Z the letters are numbered: models with that many kinds exist only on paper.
    out += kinds[i] < 26 ? format(" %c", static_cast<char>('A' + kinds[i]))
                         : format(" #%zu-", kinds[i]);
    if (end - i > 1) out += format("%zu", end - i);
    i = end;
  }
  return out;
}

}  // namespace

int layer_count(const ModelSpec& spec) {
  int count = 0;
  for (const Sublayer& sublayer : spec.sublayers)
    count = std::max(count, sublayer.stored_layer + 1);
  return count;
}

const Rope* rope_of(const Operation& op) {
  return std::visit([](const auto& kind) { return rope_in(kind); }, op);
}

bool has_three_positions(const ModelSpec& spec) {
  return std::ranges::any_of(spec.sublayers, [](const Sublayer& sublayer) {
    const Rope* const rope = rope_of(sublayer.op);
    return rope != nullptr && rope->sections != decltype(rope->sections){};
  });
}

std::string describe(const ModelSpec& spec) {
  std::string out = format("%s: vocab %d, width %d, %d layers, context %d, ", spec.family.c_str(),
                           spec.vocab_size, spec.hidden_size, layer_count(spec), spec.context_max);
  out += norm_text(spec.final_norm);
  if (spec.tied_head) out += spec.tied_unless_stored ? ", tied unless stored" : ", tied";
  if (spec.head_bias) out += ", head bias";
  if (spec.unit_head) out += ", unit head";
  if (spec.learned_positions > 0) out += ", learned positions";
  if (spec.embed_norm) out += ", embeddings " + norm_text(*spec.embed_norm);
  if (spec.embed_scale != 1) out += ", embed x" + number(spec.embed_scale);
  if (spec.logit_scale != 1) out += ", logits x" + number(spec.logit_scale);
  if (spec.logit_softcap > 0) out += ", logits capped at " + number(spec.logit_softcap);
  if (spec.token_inputs) out += format(", tokens bring %d a layer", spec.token_inputs->width);
  if (spec.hyper)
    out += format(", %d streams with hyper-connections, %d Sinkhorn rounds", spec.hyper->streams,
                  spec.hyper->sinkhorn_rounds);
  if (spec.streams) out += format(", %d streams", spec.streams->count);
  out += "\n";

  std::vector<std::string> lines;
  std::vector<size_t> kinds;
  const std::span all(spec.sublayers);
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].stored_layer == all[begin].stored_layer) ++end;
    const std::string line = layer_text(all, begin, end);
    size_t kind = 0;
    while (kind < lines.size() && lines[kind] != line) ++kind;
    if (kind == lines.size()) lines.push_back(line);
    kinds.push_back(kind);
  }
  for (size_t i = 0; i < lines.size(); ++i)
    out += (i < 26 ? format("  %c = ", static_cast<char>('A' + i)) : format("  #%zu = ", i)) +
           lines[i] + "\n";
  return out + " " + pattern_text(kinds) + "\n";
}

}  // namespace weir::model
