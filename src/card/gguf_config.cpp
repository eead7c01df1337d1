#include "card/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "card/checkpoint.h"

namespace weir::card {

namespace {

// Above any number of layers or experts published; lists by layer are no longer.
constexpr int64_t kLayersMax = 2048;
constexpr size_t kFactorsMax = 1024;

}  // namespace

GgufConfig::GgufConfig(std::span<const GgufPart> parts, const GgufArchitecture& architecture)
    : parts_(parts),
      architecture_(architecture),
      prefix_(std::string(architecture.name) + "."),
      writer_(text_) {
  writer_.begin_object();
  writer_.key("architectures").begin_array().value(architecture_.architecture).end_array();
  common_keys();
  if (architecture_.keys != nullptr && !error_) architecture_.keys(*this);
  if (!rope_written_) rope();
  writer_.end_object();
}

Result<std::string> GgufConfig::finish() {
  if (error_) return tl::unexpected(*error_);
  return std::move(text_);
}

void GgufConfig::reject(std::string message) {
  if (!error_)
    error_ = Error{ErrorCode::kConfig, parts_[0].file.name() + ": " + std::move(message)};
}

void GgufConfig::wrong(std::string_view key, std::string_view expected, const GgufValue* found) {
  reject("key " + shown_name(prefix_ + std::string(key)) + ": expected " + std::string(expected) +
         ", found " + (found == nullptr ? "nothing" : found->kind_text()));
}

const GgufValue* GgufConfig::find(std::string_view key) const {
  return parts_[0].header.metadata.find(prefix_ + std::string(key));
}

std::vector<int64_t> GgufConfig::integers(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (value->count() > static_cast<uint64_t>(kLayersMax)) {
    wrong(key, "at most " + std::to_string(kLayersMax) + " integers", value);
    return {};
  }
  auto found = value->integers();
  if (!found) wrong(key, "integers", value);
  return found.value_or(std::vector<int64_t>{});
}

std::optional<int64_t> GgufConfig::integer(std::string_view key) {
  const std::vector<int64_t> list = integers(key);
  if (list.empty()) return std::nullopt;
  if (std::ranges::any_of(list, [&](int64_t number) { return number != list[0]; })) {
    wrong(key, "the same number for all layers of this architecture", find(key));
    return std::nullopt;
  }
  if (list[0] < 0 || list[0] > INT32_MAX) wrong(key, "an integer from 0 to 2147483647", find(key));
  return list[0];
}

std::optional<float> GgufConfig::number(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> found = value->number();
  if (!found || !std::isfinite(*found)) wrong(key, "a finite number", value);
  return static_cast<float>(found.value_or(0));
}

std::optional<bool> GgufConfig::flag(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<bool> found = value->flag();
  if (!found) wrong(key, "a boolean", value);
  return found;
}

std::optional<std::string_view> GgufConfig::text(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::string_view> found = value->text();
  if (!found) wrong(key, "a string", value);
  return found;
}

int64_t GgufConfig::require_integer(std::string_view key) {
  const std::optional<int64_t> found = integer(key);
  if (!found) wrong(key, "an integer", find(key));
  return found.value_or(0);
}

void GgufConfig::copy_integer(std::string_view key, std::string_view name) {
  if (const std::optional<int64_t> found = integer(key)) writer_.field(name, *found);
}

void GgufConfig::copy_number(std::string_view key, std::string_view name) {
  if (const std::optional<float> found = number(key)) writer_.field(name, *found);
}

void GgufConfig::require_copied(std::string_view key, std::string_view name) {
  writer_.field(name, require_integer(key));
}

const GgufTensor* GgufConfig::tensor(std::string_view name) const {
  for (const GgufPart& part : parts_)
    for (const GgufTensor& tensor : part.header.tensors)
      if (tensor.name == name) return &tensor;
  return nullptr;
}

std::vector<float> GgufConfig::floats(const GgufTensor& tensor) {
  if (tensor.type.blocks != nullptr || tensor.type.floats != DType::kF32 ||
      tensor.shape.size() != 1 || tensor.shape[0] > static_cast<int64_t>(kFactorsMax)) {
    reject("tensor " + shown_name(tensor.name) + ": expected F32 of at most " +
           std::to_string(kFactorsMax) + " numbers in one dimension");
    return {};
  }
  std::vector<float> out(static_cast<size_t>(tensor.shape[0]), 1.0f);
  for (const GgufPart& part : parts_) {
    const std::vector<GgufTensor>& own = part.header.tensors;
    if (&tensor >= own.data() && &tensor < own.data() + own.size() && !part.file.only_beginning())
      std::memcpy(out.data(), part.file.bytes().data() + tensor.offset, out.size() * sizeof(float));
  }
  for (const float number : out)
    if (!std::isfinite(number) || number <= 0)
      reject("tensor " + shown_name(tensor.name) + ": expected finite numbers above 0");
  return out;
}

void GgufConfig::common_keys() {
  const GgufTensor* embedding = tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    return reject("tensor \"token_embd.weight\": expected two dimensions, found " +
                  std::string(embedding == nullptr ? "no such tensor" : "others"));
  writer_.field("vocab_size", embedding->shape[0]);
  writer_.field("tie_word_embeddings", tensor("output.weight") == nullptr);
  const int64_t hidden = require_integer("embedding_length");
  int64_t heads = 0;  // Layers without attention have none.
  for (const int64_t count : integers("attention.head_count")) heads = std::max(heads, count);
  writer_.field("hidden_size", hidden);
  require_copied("context_length", "max_position_embeddings");
  // Layers that guess further tokens come last, and are counted.
  const int64_t guessing = integer("nextn_predict_layers").value_or(0);
  layers_ = require_integer("block_count") - guessing;
  if (layers_ < 1 || layers_ > kLayersMax)
    reject("key " + shown_name(prefix_ + "block_count") + ": expected 1 to " +
           std::to_string(kLayersMax) + " layers before those that guess, found " +
           std::to_string(layers_));
  writer_.field("num_hidden_layers", layers_);
  writer_.field("num_attention_heads", heads);
  if (heads < 1 || heads > INT32_MAX)
    return wrong("attention.head_count", "a number of heads", find("attention.head_count"));
  head_dim_ = integer("attention.key_length").value_or(hidden / heads);
}

void GgufConfig::expert_keys(std::string_view count_name) {
  require_copied("expert_count", count_name);
  require_copied("expert_used_count", "num_experts_per_tok");
}

void GgufConfig::rope(bool partial) {
  rope_written_ = true;
  writer_.key("rope_parameters").begin_object();
  copy_number("rope.freq_base", "rope_theta");
  if (architecture_.paired_rows) writer_.field("pairs", "neighbours");
  const int64_t dims = integer("rope.dimension_count").value_or(head_dim_);
  if (partial && dims != head_dim_)
    writer_.field("partial_rotary_factor",
                  static_cast<double>(dims) / static_cast<double>(std::max<int64_t>(1, head_dim_)));
  const GgufTensor* same = tensor("rope_freqs.weight");
  const GgufTensor* slow = tensor("rope_factors_short.weight");
  const GgufTensor* fast = tensor("rope_factors_long.weight");
  if (same != nullptr)
    rope_factors(*same, *same);
  else if (slow != nullptr && fast != nullptr)
    rope_factors(*slow, *fast);
  else
    rope_scaling();
  writer_.end_object();
}

// Frequencies are divided by one vector, or by another where the text is longer than the model was
// first trained for.
void GgufConfig::rope_factors(const GgufTensor& slow, const GgufTensor& fast) {
  writer_.field("rope_type", "longrope");
  for (const auto& [name, tensor] : {std::pair{"short_factor", &slow}, {"long_factor", &fast}}) {
    writer_.key(name).begin_array();
    for (const float factor : floats(*tensor)) writer_.value(factor);
    writer_.end_array();
  }
  copy_integer("rope.scaling.original_context_length", "original_max_position_embeddings");
  writer_.field("attention_factor", number("rope.scaling.attn_factor").value_or(1));
}

void GgufConfig::rope_scaling() {
  std::string_view type = text("rope.scaling.type").value_or("none");
  const std::optional<float> factor = number("rope.scaling.factor");
  if (type == "none" && factor && !find("rope.scaling.type")) type = "linear";
  if (type == "none" || factor.value_or(1) == 1) return;
  if (type != "linear" && type != "yarn")
    return reject("key " + shown_name(prefix_ + "rope.scaling.type") +
                  ": expected none, linear or yarn, found " + shown_name(type));
  writer_.field("rope_type", type);
  writer_.field("factor", *factor);
  copy_integer("rope.scaling.original_context_length", "original_max_position_embeddings");
  if (type == "linear") return;
  copy_number("rope.scaling.yarn_beta_fast", "beta_fast");
  copy_number("rope.scaling.yarn_beta_slow", "beta_slow");
  if (const auto truncate = flag("rope.scaling.yarn_truncate"))
    writer_.field("truncate", *truncate);
  // How much of the extrapolation is mixed in; below 0 it is as usual, all.
  if (const auto share = number("rope.scaling.yarn_ext_factor");
      share && *share >= 0 && *share != 1)
    return reject("key " + shown_name(prefix_ + "rope.scaling.yarn_ext_factor") + ": expected 1");
  if (const auto more = number("rope.scaling.yarn_attn_factor"))
    writer_.field("attention_factor", *more * (0.1f * std::log(*factor) + 1));
  // Ten times what it says: 0.1 is in the formula.
  if (const auto multiplier = number("rope.scaling.yarn_log_multiplier")) {
    writer_.field("mscale", *multiplier * 10);
    writer_.field("mscale_all_dim", *multiplier * 10);
  }
}

}  // namespace weir::card
