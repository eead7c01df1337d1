#include "program/adapters.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/byte_size.h"
#include "base/json.h"
#include "base/log.h"
#include "card/adapter_card.h"
#include "hub/cache.h"
#include "hub/model_name.h"
#include "model/adapter.h"
#include "program/model_source.h"

namespace weir {

namespace {

namespace fs = std::filesystem;

Result<api::AdapterWeights> read_adapter(const model::Model& model, const std::string& path,
                                         int64_t bytes_max) {
  WEIR_ASSIGN(const card::AdapterCard card, card::AdapterCard::open(path));
  WEIR_ASSIGN(std::shared_ptr<const model::Adapter> weights, model.bind_adapter(card, bytes_max));
  WEIR_TRY(card.tensors().files()[0].check_unchanged());
  const int64_t bytes = weights->bytes();
  const bool scales = weights->scales();
  return api::AdapterWeights{.weights = std::move(weights), .bytes = bytes, .scales = scales};
}

// The folder of a name of the hub that has been pulled.
Result<std::optional<std::string>> find_in_cache(const Options& options, const std::string& given) {
  if (!hub::ModelName::looks_like(given)) return std::optional<std::string>();
  WEIR_ASSIGN(const hub::ModelName name, hub::ModelName::parse(given));
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options));
  const hub::Cache cache(settings.cache);
  const std::optional<std::string> commit = cache.commit_of(name.id, name.revision);
  if (!commit) return std::optional<std::string>();
  const std::string folder = cache.snapshot_folder(name.id, *commit);
  std::error_code error;
  return fs::is_directory(folder, error) ? std::optional(folder) : std::nullopt;
}

// A path of the command line is trusted; a name of the hub where there is no such path.
Result<std::string> find_module(const Options& options, const std::string& given) {
  std::error_code error;
  if (fs::exists(given, error)) return given;
  WEIR_ASSIGN(const std::optional<std::string> cached, find_in_cache(options, given));
  if (cached) return *cached;
  return fail(
      ErrorCode::kConfig,
      "--lora-modules: expected a folder, a GGUF file or ORG/NAME in the hub's cache, found "
      "no " +
          given);
}

struct Module {
  std::string name, path;
};

// NAME=PATH, or vLLM's {"name": ..., "path": ..., "base_model_name": ...}.
Result<Module> parse_module(const std::string& text) {
  const auto wrong = [&] {
    return fail(ErrorCode::kConfig,
                "--lora-modules: expected NAME=PATH or {\"name\": NAME, \"path\": PATH}, found '" +
                    text + "'");
  };
  if (text.starts_with('{')) {
    const Result<JsonDoc> doc = JsonDoc::parse(text);
    std::string_view name, path;
    if (!doc || doc->root()["name"].get(name) != simdjson::SUCCESS ||
        doc->root()["path"].get(path) != simdjson::SUCCESS || name.empty() || path.empty())
      return wrong();
    return Module{std::string(name), std::string(path)};
  }
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) return wrong();
  return Module{text.substr(0, equals), text.substr(equals + 1)};
}

bool lies_below(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

}  // namespace

Result<std::string> find_adapter(const Options& options, const std::string& given) {
  std::error_code error;
  const fs::path folder = fs::canonical(options.lora_dir, error);
  if (error)
    return fail(ErrorCode::kForbidden, "This server loads no adapters from folders: --lora-dir.",
                "lora_path");
  // Without links: what they lead to counts.
  const fs::path path = fs::canonical(folder / given, error);
  if (!error && lies_below(path, folder)) return path.string();
  WEIR_ASSIGN(const std::optional<std::string> cached, find_in_cache(options, given));
  if (cached) return *cached;
  if (!error)
    return fail(ErrorCode::kForbidden,
                "Invalid value for 'lora_path': expected a path below --lora-dir, found another.",
                "lora_path");
  return fail(ErrorCode::kNotFound,
              "Invalid value for 'lora_path': expected a path below --lora-dir, or ORG/NAME in the "
              "hub's cache; found neither.",
              "lora_path");
}

std::vector<std::string> adapter_names(const Options& options) {
  std::vector<std::string> names;
  for (const std::string& text : options.lora_modules)
    if (const Result<Module> module = parse_module(text)) names.push_back(module->name);
  return names;
}

Result<std::unique_ptr<api::Adapters>> load_adapters(const Options& options,
                                                     const model::Model& model,
                                                     const MemoryPlan& plan) {
  if (!options.takes_adapters()) return std::unique_ptr<api::Adapters>();
  api::Adapters::Loader loader;
  if (!options.lora_dir.empty())
    loader = [&options, &model](const std::string& given,
                                int64_t bytes_max) -> Result<api::AdapterWeights> {
      WEIR_ASSIGN(const std::string path, find_adapter(options, given));
      auto weights = read_adapter(model, path, bytes_max);
      // What is wrong with a file is the request's fault here.
      if (!weights && weights.error().code == ErrorCode::kConfig)
        weights.error().code = ErrorCode::kInvalid;
      return weights;
    };
  auto adapters =
      std::make_unique<api::Adapters>(api::Adapters::Limits{.count_max = options.adapters_max(),
                                                            .bytes_max = plan.adapter_bytes,
                                                            .in_step_max = options.max_loras},
                                      std::move(loader));
  int64_t left = plan.adapter_bytes;
  for (const std::string& text : options.lora_modules) {
    WEIR_ASSIGN(const Module module, parse_module(text));
    WEIR_ASSIGN(const std::string path, find_module(options, module.path));
    WEIR_ASSIGN(api::AdapterWeights weights, read_adapter(model, path, left));
    left -= weights.bytes;
    log::info("adapter " + module.name + " rank=" + std::to_string(weights.weights->rank()) + " " +
              human_bytes(weights.bytes));
    WEIR_TRY(adapters->add(module.name, module.path, std::move(weights), std::time(nullptr)));
  }
  return adapters;
}

}  // namespace weir
