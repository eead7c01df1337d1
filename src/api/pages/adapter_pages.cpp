#include "api/pages/adapter_pages.h"

#include <algorithm>
#include <set>
#include <vector>

#include "api/request/json_fields.h"
#include "base/metrics.h"

namespace weir::api::pages {

namespace {

Error no_adapters() {
  return {ErrorCode::kUnsupported,
          "This server takes no adapters: it was started without --enable-lora.",
          {},
          "unsupported_endpoint"};
}

// Names, sorted, separated by commas.
std::string names_of(const std::vector<ServedAdapter>& adapters, std::span<const OpenRequest> open,
                     bool begun) {
  std::set<std::string_view> names;
  for (const OpenRequest& request : open) {
    if (request.adapter == nullptr || request.begun != begun) continue;
    const auto found = std::ranges::find_if(adapters, [&](const ServedAdapter& adapter) {
      return adapter.loaded.weights.get() == request.adapter;
    });
    if (found != adapters.end()) names.insert(found->name);
  }
  std::string list;
  for (const std::string_view name : names) (list += list.empty() ? "" : ",") += name;
  return list;
}

}  // namespace

void write_adapter(JsonWriter& json, const ApiConfig& config, const ServedAdapter& adapter,
                   int32_t tokens_max) {
  json.begin_object().field("id", adapter.name).field("object", "model");
  json.field("created", adapter.created).field("owned_by", "weir");
  json.field("root", adapter.path).field("parent", config.model_id);
  json.field("max_model_len", tokens_max).end_object();
}

Result<std::string> load_adapter(Adapters* adapters, std::string_view body, int64_t now) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  WEIR_ASSIGN(const std::string_view name, required_string("", object, "lora_name"));
  WEIR_ASSIGN(const std::string_view path, required_string("", object, "lora_path"));
  if (adapters == nullptr) return tl::unexpected(no_adapters());
  WEIR_TRY(adapters->load(std::string(name), std::string(path), now));
  return "Success: LoRA adapter '" + std::string(name) + "' added successfully.";
}

Result<std::string> unload_adapter(Adapters* adapters, std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  WEIR_ASSIGN(const std::string_view name, required_string("", object, "lora_name"));
  if (adapters == nullptr) return tl::unexpected(no_adapters());
  WEIR_TRY(adapters->remove(std::string(name)));
  return "Success: LoRA adapter '" + std::string(name) + "' removed successfully.";
}

std::string adapter_scales_page(const Adapters* adapters) {
  std::string body;
  JsonWriter json(body);
  json.begin_array();
  if (adapters != nullptr)
    for (const ServedAdapter& adapter : adapters->list())
      json.begin_object()
          .field("id", adapter.id)
          .field("name", adapter.name)
          .field("path", adapter.path)
          .field("scale", adapters->default_scale(adapter.id))
          .end_object();
  json.end_array();
  return body;
}

Result<std::string> set_adapter_scales(Adapters* adapters, std::string_view body) {
  // Without a body: none of them counts.
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body.empty() ? "[]" : body));
  WEIR_ASSIGN(const std::vector<AdapterScale> scales, parse_adapter_scales("body", doc.root()));
  if (adapters == nullptr) return tl::unexpected(no_adapters());
  WEIR_TRY(adapters->set_defaults(scales));
  return std::string("{\"success\":true}");
}

void AdapterUse::render(std::string& out, std::span<const Adapters* const> all,
                        std::span<const OpenRequest> open, double now) {
  std::vector<ServedAdapter> served;
  int32_t in_step_max = 0;
  for (const Adapters* adapters : all) {
    const std::vector<ServedAdapter> more = adapters->list();
    served.insert(served.end(), more.begin(), more.end());
    in_step_max = std::max(in_step_max, adapters->limits().in_step_max);
  }
  std::string labels =
      metric_label("max_lora", std::to_string(in_step_max)) + "," +
      metric_label("running_lora_adapters", names_of(served, open, /*begun=*/true)) + "," +
      metric_label("waiting_lora_adapters", names_of(served, open, /*begun=*/false));
  if (labels != labels_) changed_ = now;
  labels_ = std::move(labels);
  weir::render(out, "vllm:lora_requests_info",
               "Adapters of requests; the value is when they changed.", MetricType::kGauge,
               changed_, labels_);
}

}  // namespace weir::api::pages
