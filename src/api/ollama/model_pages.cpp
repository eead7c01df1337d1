#include "api/ollama/model_pages.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <limits>

#include "api/ollama/names.h"
#include "api/ollama/time_text.h"
#include "api/request/json_fields.h"
#include "base/json.h"

namespace weir::api::ollama {

namespace {

// The version of Ollama whose API this is, where that can be told apart: log-probabilities,
// `capabilities`, thinking. Clients ask for a least one, and read it as numbers with dots.
constexpr std::string_view kApiVersion = "0.12.0";

// What a model is called that stays loaded: Ollama's longest duration from now, 292 years.
constexpr int64_t kForEverSeconds = std::numeric_limits<int64_t>::max() / 1'000'000'000;

// "4.0B", "135.0M".
std::string count_text(int64_t count) {
  struct Unit {
    double size;
    char letter;
  };
  std::array<char, 32> text{};
  for (const Unit unit : {Unit{1e9, 'B'}, {1e6, 'M'}, {1e3, 'K'}}) {
    if (static_cast<double>(count) < unit.size) continue;
    std::snprintf(text.data(), text.size(), "%.1f%c", static_cast<double>(count) / unit.size,
                  unit.letter);
    return text.data();
  }
  return std::to_string(count);
}

// The format of most weights, without what stands in its way: "4bit" of "4-bit g32 79 %, bf16 21
// %".
std::string quantisation(std::string_view formats) {
  std::string word(formats.substr(0, formats.find_first_of(" ,")));
  std::erase(word, '-');
  return word;
}

void write_details(JsonWriter& json, const ModelEntry& model) {
  json.key("details").begin_object().field("parent_model", "").field("format", model.facts.files);
  json.field("family", model.facts.family).key("families").begin_array();
  json.value(model.facts.family).end_array();
  json.field("parameter_size", count_text(model.facts.parameters));
  json.field("quantization_level", quantisation(model.facts.formats));
  json.field("context_length", model.context_max);
  json.field("embedding_length", model.facts.hidden_size).end_object();
}

void write_abilities(JsonWriter& json, const ModelAbilities& abilities) {
  json.key("capabilities").begin_array();
  if (abilities.completion) json.value("completion");
  if (abilities.tools) json.value("tools");
  if (abilities.infill) json.value("insert");
  if (abilities.vision) json.value("vision");
  if (abilities.audio) json.value("audio");
  if (abilities.thinking) json.value("thinking");
  if (abilities.embedding) json.value("embedding");
  json.end_array();
}

// What lists have in common; the object stays open.
void open_entry(JsonWriter& json, const ModelEntry& model) {
  const std::string name = tagged_name(model.name);
  json.begin_object().field("name", name).field("model", name);
  json.field("size", model.facts.bytes).field("digest", model.facts.digest);
  write_details(json, model);
}

void write_info(JsonWriter& json, const ModelEntry& model) {
  const std::string& family = model.facts.family;
  const auto number = [&](const char* key, int64_t value) { json.field(family + key, value); };
  json.key("model_info").begin_object().field("general.architecture", family);
  json.field("general.parameter_count", model.facts.parameters);
  number(".context_length", model.facts.context_trained);
  number(".embedding_length", model.facts.hidden_size);
  number(".block_count", model.facts.layers);
  if (model.facts.heads > 0) {
    number(".attention.head_count", model.facts.heads);
    number(".attention.head_count_kv", model.facts.kv_heads);
  }
  json.end_object();
}

// As a Modelfile names them, a line each.
std::string parameters_text(const GenerationDefaults& defaults) {
  const sample::SamplingParams& sampling = defaults.sampling;
  std::string text;
  const auto line = [&](std::string_view name, auto value) {
    text.append(name).append(" ");
    JsonWriter(text).value(value);
    text += '\n';
  };
  line("temperature", sampling.temperature);
  line("top_k", sampling.top_k);
  line("top_p", sampling.top_p);
  line("min_p", sampling.min_p);
  line("repeat_penalty", sampling.repetition_penalty);
  text.pop_back();
  return text;
}

using enum Treatment;
const FieldDoc kModel{"model", "string", "The model."};
const FieldDoc kName{"name", "string", "The older name of model."};

Result<ModelBody> parse(std::string_view text) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(text));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  ModelBody body;
  for (const std::string_view key : {"name", "model"}) {  // The newer one wins.
    const auto value = json_get(object, key);
    if (!value) continue;
    WEIR_ASSIGN(const std::string_view name, as_string(key, *value));
    if (!name.empty()) body.model = name;
  }
  if (body.model.empty()) return missing("model");
  return body;
}

}  // namespace

std::string version_page() {
  std::string out;
  JsonWriter(out).begin_object().field("version", kApiVersion).end_object();
  return out;
}

std::string tags_page(std::span<const ModelEntry> models) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("models").begin_array();
  for (const ModelEntry& model : models) {
    open_entry(json, model);
    write_abilities(json, model.abilities);
    json.field("modified_at", time_text(model.facts.modified)).end_object();
  }
  json.end_array().end_object();
  return out;
}

std::string ps_page(std::span<const ModelEntry> models) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("models").begin_array();
  for (const ModelEntry& model : models) {
    if (!model.loaded) continue;
    open_entry(json, model);
    json.field("expires_at",
               time_text(model.expires.value_or(std::time(nullptr) + kForEverSeconds)));
    json.field("size_vram", 0).field("context_length", model.context_max).end_object();
  }
  json.end_array().end_object();
  return out;
}

std::string show_page(const ModelDetails& model) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("license", "");
  json.field("modelfile", "FROM " + tagged_name(model.entry.name) + "\n");
  json.field("parameters", parameters_text(model.defaults));
  json.field("template", model.chat_template);
  write_details(json, model.entry);
  write_info(json, model.entry);
  write_abilities(json, model.entry.abilities);
  json.field("modified_at", time_text(model.entry.facts.modified)).end_object();
  return out;
}

Result<ModelBody> parse_show(std::string_view body) { return parse(body); }
Result<ModelBody> parse_delete(std::string_view body) { return parse(body); }

Result<ModelBody> parse_pull(std::string_view text) {
  WEIR_ASSIGN(ModelBody body, parse(text));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(text));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  if (const auto stream = json_get(object, "stream");
      stream && stream->get(body.stream) != simdjson::SUCCESS)
    return wrong_type("stream", "a boolean", *stream);
  return body;
}

std::vector<FieldDoc> show_fields() {
  return {kModel, kName, {"verbose", "boolean", "Accepted; vocabularies are not shown.", kIgnored}};
}

std::vector<FieldDoc> pull_fields() {
  return {{"model", "string", "A model of the hub: ORG/NAME[:FILE], also with hf.co/ before it."},
          kName,
          {"stream", "boolean", "A line of JSON for each step; absent: true."},
          {"insecure", "boolean", "Accepted; the hub is the server's own choice.", kIgnored}};
}

std::vector<FieldDoc> delete_fields() {
  return {{"model", "string", "A model of the hub that lies in the cache and is not served."},
          kName};
}

}  // namespace weir::api::ollama
