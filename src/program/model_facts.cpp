#include "program/model_facts.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <variant>

#include "base/json.h"
#include "card/modules.h"
#include "net/digest.h"
#include "ssd/expert_catalogue.h"

namespace weir {

namespace {

// Of all weights, those of experts on disk too.
int64_t model_bytes(const model::Model& model) {
  const ssd::ExpertCatalogue* experts = model.expert_catalogue();
  return model.memory().packed_weights + model.memory().mapped_weights +
         (experts == nullptr ? 0 : static_cast<int64_t>(experts->bank_bytes()));
}

// When the GGUF file or config.json was written, in seconds since the epoch; of what is compiled in,
// the program. A folder changes also where only a bundle of experts is put into it.
int64_t modified(const card::ModelFiles& files) {
  std::string path = "/proc/self/exe";
  if (!files.folder().empty())
    path = files.gguf().empty() ? files.folder() + "/config.json" : files.path();
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mtim.tv_sec : 0;
}

// Of what is said here of the model and when it was written: its files may be hundreds of
// gigabytes.
std::string digest_of(const std::string& name, const api::ModelFacts& facts) {
  net::Digest digest(net::Digest::Kind::kSha256);
  for (const std::string& part :
       {name, facts.family, facts.formats, std::to_string(facts.parameters),
        std::to_string(facts.bytes), std::to_string(facts.modified)})
    digest.add(part + "\n");
  return digest.finish();
}

// The type that config.json names, else the architecture.
std::string family_of(const card::ModelCard& card, const model::ModelSpec& spec) {
  JsonObject config;
  std::string_view type;
  if (card.config.root().get(config) != simdjson::SUCCESS) return spec.family;
  const auto value = json_get(config, "model_type");
  return value && value->get(type) == simdjson::SUCCESS ? std::string(type) : spec.family;
}

// Of an operation that attends; others have no heads.
void set_heads(api::ModelFacts& facts, const model::Operation& operation) {
  std::visit(
      [&](const auto& op) {
        if constexpr (requires { op.num_heads; }) facts.heads = facts.kv_heads = op.num_heads;
        if constexpr (requires { op.num_kv_heads; }) facts.kv_heads = op.num_kv_heads;
      },
      operation);
}

}  // namespace

api::ModelFacts model_facts(const card::ModelCard& card, const model::Model& model) {
  const model::ModelSpec& spec = model.spec();
  api::ModelFacts facts{.context_trained = spec.context_max,
                        .hidden_size = spec.hidden_size,
                        .parameters = model.memory().parameters,
                        .bytes = model_bytes(model),
                        .formats = model.memory().formats,
                        .family = family_of(card, spec),
                        .files = card.files.gguf().empty() ? "safetensors" : "gguf",
                        .modified = modified(card.files),
                        .embeds = card.files.has(card::kModules)};
  for (const model::Sublayer& sublayer : spec.sublayers) {
    facts.layers = std::max(facts.layers, sublayer.stored_layer + 1);
    if (facts.heads == 0) set_heads(facts, sublayer.op);
  }
  facts.digest = digest_of(card.files.name(), facts);
  return facts;
}

}  // namespace weir
