#include "model/spec.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <span>

namespace weir::model {

namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  std::array<char, 256> buffer{};
  va_list args;
  va_start(args, pattern);
  std::vsnprintf(buffer.data(), buffer.size(), pattern, args);
  va_end(args);
  return buffer.data();
}

std::string number(float value) { return format("%g", static_cast<double>(value)); }

std::string rope_text(const Rope& r) {
  if (r.dim == 0) return " nope";
  static constexpr std::array kScaling = {"",        " linear", " dynamic",
                                          " llama3", " yarn",   " longrope"};
  std::string s = format(" rope %d@%s", r.dim, number(r.theta).c_str());
  if (r.still_pairs > 0) s += format(" %d pairs of them", r.dim / 2 - r.still_pairs);
  s += kScaling[r.scaling];
  if (r.factor != 1) s += " x" + number(r.factor);
  if (r.scaling > Rope::kLinear) s += " of " + number(r.original_context);
  if (r.attention_factor != 1) s += " amplitude " + number(r.attention_factor);
  if (r.long_attention_factor != 0) s += " or " + number(r.long_attention_factor);
  if (r.layout == Rope::kInterleaved) s += " interleaved";
  if (r.backward) s += " backward";
  return s;
}

std::string qk_norm_text(const Attention& a) {
  std::string s = a.qk_norm_kind == Norm::kRms ? " qk-norm" : " qk-layernorm";
  if (a.qk_norm == Attention::kAllHeads) s += " over all heads";
  if (a.qk_norm == Attention::kEachHead) s += " by weights of each head";
  if (!a.qk_norm_weight) s += " without weights";
  if (a.qk_norm_bias) s += " bias";
  if (a.qk_norm_offset != 0) s += " 1+w";
  if (a.qk_norm_after_rope) s += " after rope";
  return s;
}

std::string text(const Attention& a) {
  std::string s = format("gqa %d/%dx%d", a.num_heads, a.num_kv_heads, a.head_dim);
  if (a.v_dim() != a.head_dim) s += format(" values %d", a.v_dim());
  if (a.window > 0) s += format(a.chunks ? " chunks %d" : " window %d", a.window);
  s += rope_text(a.rope);
  s += " scale " + number(a.scale);
  if (a.logit_softcap > 0) s += " softcap " + number(a.logit_softcap);
  if (a.qkv_limit > 0) s += " limit " + number(a.qkv_limit);
  if (a.position_beta != 0)
    s += " queries x1+" + number(a.position_beta) + format(" ln by %d tokens", a.position_step);
  if (a.qk_norm != Attention::kNoQkNorm) s += qk_norm_text(a);
  if (a.v_norm) s += " v-norm";
  if (a.values_are_keys) s += " values are keys";
  if (a.conv_taps > 0) s += format(" conv %d", a.conv_taps);
  if (a.qkv_bias) s += " qkv-bias";
  if (a.out_bias) s += " out-bias";
  if (a.sinks) s += " sinks";
  if (a.out_gate == Attention::kAfterQuery) s += " gated";
  if (a.out_gate == Attention::kOwnModule) s += " gated by gate_proj";
  return s;
}

std::string text(const GatedDelta& d) {
  return format("gated-delta %dx%d/%dx%d conv %d", d.value_heads, d.value_dim, d.key_heads,
                d.key_dim, d.conv_taps);
}

std::string text(const LatentAttention& a) {
  std::string s = format("mla %dx%d+%d", a.num_heads, a.nope_dim, a.rope_dim);
  s += format(" values %d latent %d", a.v_head_dim, a.kv_rank);
  if (a.q_rank > 0) s += format(" queries by %d", a.q_rank);
  return s + rope_text(a.rope) + " scale " + number(a.scale);
}

std::string text(const Dense& f) {
  static constexpr std::array kGated = {"swiglu", "geglu-tanh",  "geglu", "relu2-glu",
                                        "reglu",  "quick-geglu", "glu"};
  static constexpr std::array kPlain = {"silu", "gelu-tanh",  "gelu",   "relu2",
                                        "relu", "quick-gelu", "sigmoid"};
  const auto act = static_cast<size_t>(f.act);
  const char* name = f.xielu ? "xielu" : f.gated ? kGated[act] : kPlain[act];
  std::string s = format("%s %d", name, f.width);
  if (f.limit > 0) s += " limit " + number(f.limit);
  if (f.up_offset != 0) s += " up + " + number(f.up_offset);
  if (f.up_by_token) s += " by token";
  if (f.linear) s = format("low rank %d", f.width);
  if (f.gate_cut) s += " above " + number(*f.gate_cut) + " deviations";
  if (f.bias) s += " bias";
  return s;
}

std::string text(const Router& r) {
  static constexpr std::array kScores = {"softmax", "softmax of top k", "sigmoid",
                                         "sigmoid of top k", "sparse mixer"};
  std::string s = kScores[r.score];
  if (r.jitter != 0) s += " jitter " + number(r.jitter);
  if (r.bias) s += " bias";
  if (r.selection_bias) s += " chosen with bias";
  if (r.groups > 1) s += format(" in %d of %d groups", r.groups_kept, r.groups);
  if (r.groups > 1 && r.group_score == Router::kTwoBest) s += " by their two best";
  if (r.renormalise) s += " renormalised";
  if (r.scale != 1) s += " x" + number(r.scale);
  if (r.expert_scale) s += " by expert";
  if (r.own_norm) s += " own norm";
  if (r.logit_scale != 1) s += " logits x" + number(r.logit_scale);
  return s;
}

std::string text(const Moe& moe) {
  std::string s = format("moe %d of %d x ", moe.top_k, moe.num_experts) + text(moe.expert);
  s += ", " + text(moe.router);
  if (moe.weighs_input) s += " on inputs";
  if (moe.shared) s += ", shared " + text(*moe.shared);
  if (moe.shared_gate) s += " gated";
  return s;
}

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
    if (sublayer.predicts) s += ", predicted";
    if (sublayer.corrects) s += ", corrected";
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

namespace {

const Rope* rope_in(const Attention& a) { return &a.rope; }
const Rope* rope_in(const GatedDelta&) { return nullptr; }
const Rope* rope_in(const LatentAttention& a) { return &a.rope; }
const Rope* rope_in(const Dense&) { return nullptr; }
const Rope* rope_in(const Moe&) { return nullptr; }

}  // namespace

const Rope* rope_of(const Operation& op) {
  return std::visit([](const auto& kind) { return rope_in(kind); }, op);
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
