#include "api/pages/model_pages.h"

#include <algorithm>
#include <utility>

#include "api/pages/adapter_pages.h"
#include "base/json.h"

namespace weir::api::pages {

namespace {

// In llama-server's four words.
std::string_view value_of(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded:
      return "unloaded";
    case ModelState::kDownloading:
      return "downloading";
    case ModelState::kQueued:
    case ModelState::kLoading:
      return "loading";
    case ModelState::kLoaded:
    case ModelState::kDraining:
      return "loaded";
  }
  return {};
}

void write_status(JsonWriter& json, const ModelStatus& status) {
  json.begin_object().field("value", value_of(status.state));
  if (status.progress >= 0) json.field("progress", status.progress);
  if (!status.failure.empty()) json.field("failed", true).field("message", status.failure);
  json.end_object();
}

// llama-server's form, of a model that is one file.
void write_progress(JsonWriter& json, std::string_view file, int64_t done, int64_t total) {
  json.begin_object().key(file).begin_object();
  json.field("done", done).field("total", total).end_object().end_object();
}

int32_t percent_of(const PullStatus& pull) {
  constexpr int64_t kAll = 100;
  return pull.bytes > 0 ? static_cast<int32_t>(pull.bytes_done * kAll / pull.bytes) : -1;
}

void write_names(JsonWriter& json, const ModelLine& line) {
  // llama-server's list has all names that a person gave, the id too.
  if (line.config != nullptr ? line.config->given_names.empty() : line.status.aliases.empty())
    return;
  json.key("aliases").begin_array();
  for (const std::string& name :
       line.config != nullptr ? line.config->given_names : line.status.aliases)
    json.value(name);
  json.end_array();
}

void write_facts(JsonWriter& json, const ModelLine& line) {
  const ApiConfig& config = *line.config;
  json.key("meta").begin_object();  // llama.cpp's.
  json.field("n_vocab", config.vocab_size).field("n_ctx", line.tokens_max);
  json.field("n_ctx_train", config.facts.context_trained);
  json.field("n_embd", config.facts.hidden_size);
  json.field("n_params", config.facts.parameters).field("size", config.facts.bytes);
  json.field("ftype", config.facts.formats).end_object();
}

void write_model(JsonWriter& json, const ModelLine& line, std::string_view id) {
  json.begin_object().field("id", id);
  write_names(json, line);
  json.field("object", "model");
  json.field("created", line.status.created).field("owned_by", "weir");
  // vLLM's name; Continue reads it.
  if (line.config != nullptr) json.field("max_model_len", line.tokens_max);
  if (id != line.status.id) json.field("root", line.status.id);
  write_status(json.key("status"), line.status);
  json.key("architecture").begin_object();
  json.key("input_modalities").begin_array().value("text");
  if (line.config != nullptr && line.config->processor != nullptr) json.value("image");
  const bool hears =
      line.config != nullptr && (line.config->front_end != nullptr || line.config->speech);
  if (hears) json.value("audio");
  json.end_array().key("output_modalities").begin_array().value("text").end_array();
  json.end_object();
  json.field("pinned", line.status.pinned);
  if (line.status.expires_at > 0) json.field("expires_at", line.status.expires_at);
  if (line.config != nullptr) write_facts(json, line);
  json.end_object();
}

}  // namespace

std::string model_page(const ModelLine& line, std::string_view id) {
  std::string body;
  JsonWriter json(body);
  const auto adapter = line.config != nullptr && line.config->adapters != nullptr
                           ? line.config->adapters->find(id)
                           : std::nullopt;
  if (adapter)
    write_adapter(json, *line.config, *adapter, line.tokens_max);
  else
    write_model(json, line, id);
  return body;
}

std::string models_page(std::span<const ModelLine> lines, std::span<const PullStatus> pulls) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().field("object", "list").key("data").begin_array();
  // Not the aliases: a list to choose from has each model once.
  for (const ModelLine& line : lines) {
    write_model(json, line, line.status.id);
    if (line.config == nullptr || line.config->adapters == nullptr) continue;
    for (const ServedAdapter& adapter : line.config->adapters->list())
      write_adapter(json, *line.config, adapter, line.tokens_max);
  }
  for (const PullStatus& pull : pulls) {
    const auto is_it = [&](const ModelLine& line) { return line.status.id == pull.name; };
    if (std::ranges::any_of(lines, is_it)) continue;
    ModelStatus status;
    status.id = pull.name;
    status.state = ModelState::kDownloading;
    status.progress = percent_of(pull);
    write_model(json, {.status = std::move(status)}, pull.name);
  }
  json.end_array().end_object();
  return body;
}

std::string model_event(ModelEvent event, const ModelStatus& status) {
  std::string out = "data: ";
  JsonWriter json(out);
  json.begin_object();
  if (event == ModelEvent::kReread) {
    json.field("event", "models_reload");
  } else if (event == ModelEvent::kRemoved) {
    json.field("model", status.id).field("event", "model_remove");
  } else if (status.state == ModelState::kDownloading && status.progress >= 0) {
    constexpr int32_t kAll = 100;  // Per cent.
    json.field("model", status.id).field("event", "download_progress").key("data");
    write_progress(json, status.id, status.progress, kAll);
  } else {
    json.field("model", status.id).field("event", "model_status").key("data");
    write_status(json, status);
  }
  json.end_object();
  return out + "\n\n";
}

std::string pull_event(const PullStatus& pull) {
  std::string out = "data: ";
  JsonWriter json(out);
  json.begin_object().field("model", pull.name);
  switch (pull.state) {
    case PullStatus::State::kRuns:
      json.field("event", "download_progress").key("data");
      write_progress(json, pull.name, pull.bytes_done, pull.bytes);
      break;
    case PullStatus::State::kFinished:
      json.field("event", "download_finished");
      break;
    case PullStatus::State::kFailed:
      json.field("event", "download_failed").key("data").begin_object();
      json.field("message", pull.failure).end_object();
      break;
  }
  json.end_object();
  return out + "\n\n";
}

}  // namespace weir::api::pages
