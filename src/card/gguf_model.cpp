#include "card/gguf_model.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/json.h"
#include "card/gguf.h"
#include "card/gguf_architecture.h"
#include "card/gguf_config.h"

namespace weir::card {

namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.";

Result<GgufPart> open_part(const ModelFiles& files, const std::string& name) {
  GgufPart part;
  WEIR_ASSIGN(part.file, files.open_file(name));
  WEIR_ASSIGN(part.header, parse_gguf(part.file.name(), part.file.bytes()));
  return part;
}

tl::unexpected<Error> wrong_key(const std::string& file, std::string_view key,
                                std::string_view expected, const GgufValue* found,
                                ErrorCode code = ErrorCode::kConfig) {
  const auto text = found == nullptr ? std::nullopt : found->text();
  return fail(code, file + ": key " + shown_name(key) + ": expected " + std::string(expected) +
                        ", found " +
                        (text    ? shown_name(*text)
                         : found ? found->kind_text()
                                 : "nothing"));
}

// An error for the files beside models: what they are, and what to give in their place.
Result<void> check_model(const std::string& file, const GgufMetadata& metadata) {
  const GgufValue* type = metadata.find("general.type");
  const GgufValue* name = metadata.find("general.architecture");
  const auto is = [](const GgufValue* value, std::string_view text) {
    return value != nullptr && value->text() == text;
  };
  if (is(type, "adapter"))
    return wrong_key(file, "general.type", "a model, which the adapter is for", type,
                     ErrorCode::kUnsupported);
  if (is(type, "mmproj") || is(name, "clip"))
    return wrong_key(file, "general.architecture",
                     "a model of text; a projector of images or sound is not run: give the file "
                     "of the model beside it",
                     name, ErrorCode::kUnsupported);
  if (type != nullptr && !is(type, "model") && !is(type, ""))
    return wrong_key(file, "general.type", "a model", type, ErrorCode::kUnsupported);
  return {};
}

Result<const GgufArchitecture*> architecture_of(const std::string& file,
                                                std::span<const GgufPart> parts) {
  constexpr std::string_view kKey = "general.architecture";
  const GgufValue* value = parts[0].header.metadata.find(kKey);
  const auto name = value == nullptr ? std::nullopt : value->text();
  if (!name) return wrong_key(file, kKey, "a string", value);
  const GgufArchitecture* found = gguf_architecture(*name, parts);
  if (found == nullptr)
    return fail(ErrorCode::kUnsupported,
                file + ": key \"general.architecture\": expected one of " +
                    gguf_architecture_names() + ", found " + shown_name(*name) +
                    ": take the model's original files, if 'weir info' knows their family");
  return found;
}

// Tensors that nothing is bound to: factors that config.json has, scales of activations, and layers
// that guess further tokens.
bool is_left_out(std::string_view name, int64_t layers) {
  constexpr std::string_view kBlock = "blk.";
  if (name.starts_with("rope_") || name.ends_with(".input_scale")) return true;
  if (!name.starts_with(kBlock)) return false;
  name.remove_prefix(kBlock.size());
  int64_t layer = 0;
  for (const char c : name.substr(0, name.find('.'))) {
    if (c < '0' || c > '9' || layer > layers) break;
    layer = layer * 10 + (c - '0');
  }
  return layer >= layers;
}

// Blocks are rows of bytes. What converters have squeezed has its dimensions again: a router of one
// row, a convolution with one input a channel.
StoredTensor stored(const GgufTensor& tensor, std::string name, const FileView& file) {
  StoredTensor out;
  std::vector<int64_t> shape = tensor.shape;
  if (name.ends_with("shared_expert_gate.weight") && shape.size() == 1)
    shape.insert(shape.begin(), 1);
  if ((name.ends_with("conv1d.weight") || name.ends_with("conv.conv.weight")) && shape.size() == 2)
    shape.insert(shape.begin() + 1, 1);
  out.name = std::move(name);
  out.blocks = tensor.type.blocks;
  out.tensor.type = out.blocks != nullptr ? DType::kU8 : tensor.type.floats;
  if (out.blocks != nullptr) shape.back() = shape.back() / out.blocks->numbers * out.blocks->bytes;
  out.tensor.rank = static_cast<int>(shape.size());
  std::ranges::copy(shape, out.tensor.shape.begin());
  out.tensor.data = file.bytes().data() + tensor.offset;
  out.offset = tensor.offset;
  return out;
}

Result<void> add_tensors(GgufPart part, const GgufArchitecture& architecture, int64_t layers,
                         Checkpoint& checkpoint) {
  std::vector<StoredTensor> tensors;
  for (const GgufTensor& tensor : part.header.tensors)
    if (!is_left_out(tensor.name, layers))
      tensors.push_back(stored(tensor, published_name(architecture, tensor.name), part.file));
  return checkpoint.add(std::move(part.file), std::move(tensors));
}

// How many parts the first one says there are.
Result<void> check_parts(const std::vector<GgufPart>& parts) {
  const GgufValue* value = parts[0].header.metadata.find("split.count");
  const int64_t count = value == nullptr ? 1 : value->integer().value_or(0);
  // A file that was put together again may still say 0.
  if (std::max<int64_t>(count, 1) == static_cast<int64_t>(parts.size())) return {};
  return fail(ErrorCode::kConfig, parts[0].file.name() + ": expected " + std::to_string(count) +
                                      " parts (split.count) under names that end in "
                                      "-00001-of-0000N.gguf, found " +
                                      std::to_string(parts.size()));
}

std::optional<std::string_view> token_text(const GgufMetadata& metadata, std::string_view key,
                                           const std::vector<std::string_view>& tokens) {
  const GgufValue* value = metadata.find(std::string(kTokens).append(key));
  const int64_t id = value == nullptr ? -1 : value->integer().value_or(-1);
  if (id < 0 || id >= static_cast<int64_t>(tokens.size())) return std::nullopt;
  return tokens[static_cast<size_t>(id)];
}

std::vector<std::string_view> tokens_of(const GgufMetadata& metadata) {
  const GgufValue* value = metadata.find(std::string(kTokens).append("tokens"));
  return value == nullptr ? std::vector<std::string_view>{}
                          : value->texts().value_or(std::vector<std::string_view>{});
}

TokenizerSettings tokenizer_settings(const GgufMetadata& metadata) {
  TokenizerSettings settings;
  const auto text = [&](std::string_view key) -> std::optional<std::string> {
    const GgufValue* value = metadata.find(key);
    const auto found = value == nullptr ? std::nullopt : value->text();
    return found ? std::optional<std::string>(*found) : std::nullopt;
  };
  settings.chat_template = text("tokenizer.chat_template");
  settings.tool_use_template = text("tokenizer.chat_template.tool_use");
  const std::vector<std::string_view> tokens = tokens_of(metadata);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames = {{
      {"bos_token", "bos_token_id"},
      {"eos_token", "eos_token_id"},
      {"unk_token", "unknown_token_id"},
      {"sep_token", "seperator_token_id"},  // As the files spell it.
      {"pad_token", "padding_token_id"},
      {"mask_token", "mask_token_id"},
  }};
  for (const auto& [name, key] : kNames)
    if (const auto token = token_text(metadata, key, tokens))
      settings.special_tokens.emplace_back(name, *token);
  return settings;
}

// Tokens that end a turn in the formats of published models; a file may name only one of them.
constexpr std::array<std::string_view, 11> kTurnEnds = {
    "<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<turn|>", "<|eom_id|>",      "<|endoftext|>",
    "<|return|>", "<|call|>",   "<|user|>",      "<|end|>", "<|end_of_text|>",
};

std::vector<int32_t> end_ids(const GgufMetadata& metadata) {
  std::vector<int32_t> ids;
  const auto add = [&](int64_t id) {
    if (id >= 0 && id <= INT32_MAX && std::ranges::count(ids, id) == 0)
      ids.push_back(static_cast<int32_t>(id));
  };
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    if (const GgufValue* value = metadata.find(std::string(kTokens).append(key)))
      add(value->integer().value_or(-1));
  const std::vector<std::string_view> tokens = tokens_of(metadata);
  const GgufValue* types = metadata.find(std::string(kTokens).append("token_type"));
  const auto kinds = types == nullptr ? std::nullopt : types->integers();
  constexpr int64_t kControl = 3;
  const bool harmony = std::ranges::count(tokens, "<|return|>") > 0;
  for (size_t i = 0; kinds && i < std::min(tokens.size(), kinds->size()); ++i) {
    if ((*kinds)[i] != kControl || std::ranges::count(kTurnEnds, tokens[i]) == 0) continue;
    if (harmony && tokens[i] == "<|end|>") continue;  // There it ends a message, not an answer.
    add(static_cast<int64_t>(i));
  }
  return ids;
}

GenerationSettings generation_settings(const GgufMetadata& metadata) {
  GenerationSettings settings;
  const auto number = [&](std::string_view key) -> std::optional<double> {
    const GgufValue* value = metadata.find(std::string("general.sampling.").append(key));
    return value == nullptr ? std::nullopt : value->number();
  };
  const auto within = [](std::optional<double> value, double min, double max) {
    return value && *value >= min && *value <= max ? value : std::nullopt;
  };
  settings.temperature = within(number("temp"), 0, 100);
  settings.top_k = within(number("top_k"), 0, INT32_MAX);
  settings.top_p = within(number("top_p"), 0, 1);
  settings.min_p = within(number("min_p"), 0, 1);
  settings.repetition_penalty = within(number("penalty_repeat"), 0.01, 100);
  settings.eos_ids = end_ids(metadata);
  return settings;
}

EmbeddingSettings embedding_settings(const GgufMetadata& metadata, std::string_view architecture) {
  EmbeddingSettings settings;
  const GgufValue* value = metadata.find(std::string(architecture) + ".pooling_type");
  switch (value == nullptr ? 0 : value->integer().value_or(0)) {
    case 1:
      settings.pooling = Pooling::kMean;
      break;
    case 2:
      settings.pooling = Pooling::kCls;
      break;
    default:  // 3 is the last token's; 0 says nothing, 4 is of scores.
      settings.pooling = Pooling::kLast;
  }
  return settings;
}

// A value of the metadata as JSON; false for lists of lists.
bool write_value(JsonWriter& writer, const GgufValue& value) {
  if (const auto text = value.text()) return writer.value(*text), true;
  if (const auto flag = value.flag()) return writer.value(*flag), true;
  if (const auto integer = value.integer()) return writer.value(*integer), true;
  if (const auto number = value.number()) return writer.value(static_cast<float>(*number)), true;
  if (const auto texts = value.texts()) {
    writer.begin_array();
    for (const std::string_view text : *texts) writer.value(text);
  } else if (const auto integers = value.integers()) {
    writer.begin_array();
    for (const int64_t integer : *integers) writer.value(integer);
  } else if (const auto numbers = value.numbers()) {
    writer.begin_array();
    for (const double number : *numbers) writer.value(static_cast<float>(number));
  } else {
    return false;
  }
  writer.end_array();
  return true;
}

}  // namespace

Result<GgufModel> open_gguf(const ModelFiles& files) {
  std::vector<GgufPart> parts;
  for (const std::string& name : files.gguf()) {
    WEIR_ASSIGN(GgufPart part, open_part(files, name));
    parts.push_back(std::move(part));
  }
  return read_gguf(std::move(parts));
}

Result<GgufModel> read_gguf(std::vector<GgufPart> parts) {
  const std::string file = parts[0].file.name();
  WEIR_TRY(check_model(file, parts[0].header.metadata));
  WEIR_TRY(check_parts(parts));
  const auto empty = [](const GgufPart& part) { return part.header.tensors.empty(); };
  if (std::ranges::all_of(parts, empty))
    return fail(ErrorCode::kUnsupported,
                file + ": expected a model's tensors, found none: it is a vocabulary alone");
  WEIR_ASSIGN(const GgufArchitecture* architecture, architecture_of(file, parts));
  GgufModel model = {.config = "", .tensors = Checkpoint(file)};
  const GgufMetadata& metadata = parts[0].header.metadata;
  model.tokenizer = tokenizer_settings(metadata);
  model.generation = generation_settings(metadata);
  model.embedding = embedding_settings(metadata, architecture->name);
  GgufConfig config(parts, *architecture);
  WEIR_ASSIGN(model.config, config.finish());
  if (architecture->norms_are_sums) model.tensors.set_norms_are_sums();
  for (GgufPart& part : parts)
    WEIR_TRY(add_tensors(std::move(part), *architecture, config.layers(), model.tensors));
  return model;
}

Result<std::string> read_gguf_tokenizer(const GgufPart& part) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  for (const auto& [key, value] : part.header.metadata.values()) {
    if (!key.starts_with(kTokens)) continue;
    const std::string_view name = std::string_view(key).substr(kTokens.size());
    if (name == "precompiled_charsmap") continue;  // Of models that are not read.
    writer.key(name);
    if (!write_value(writer, value))
      return wrong_key(part.file.name(), key, "a value, or a list of values", &value);
  }
  writer.end_object();
  return text;
}

Result<std::string> gguf_tokenizer(const ModelFiles& files) {
  WEIR_ASSIGN(const GgufPart part, open_part(files, files.gguf()[0]));
  return read_gguf_tokenizer(part);
}

}  // namespace weir::card
