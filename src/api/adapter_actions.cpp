// The endpoints about adapters: vLLM's, and llama-server's.
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/api_impl.h"
#include "api/models/model_orders.h"
#include "api/pages/adapter_pages.h"

namespace weir::api {

namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kJson = "application/json";

}  // namespace

std::vector<FieldDoc> load_adapter_fields() {
  return {{"lora_name", "string", "The name by which requests ask for it (model).",
           Treatment::kHonoured, 0, 0, true},
          {"lora_path", "string",
           "A folder or GGUF file below --lora-dir, or ORG/NAME in the hub's cache.",
           Treatment::kHonoured, 0, 0, true}};
}

std::vector<FieldDoc> unload_adapter_fields() {
  return {{"lora_name", "string", "Its name.", Treatment::kHonoured, 0, 0, true}};
}

// The adapters of the model that ?model= names, which is loaded first; without, of the first that
// is.
void Api::Impl::with_adapters(const ExchangePtr& exchange, WithModel then) {
  if (registry.only_one()) return with_model(exchange, std::move(then));
  std::string name = query_value(exchange->request().query, "model");
  if (name.empty())
    if (const auto first = first_loaded()) name = first->config.model_id;
  wait_for_model(exchange, name, /*events=*/false, std::move(then));
}

// Read in the pool: no step waits for it.
void Api::Impl::about_adapters(const ExchangePtr& exchange, AdapterWork work,
                               std::string_view type) {
  with_adapters(exchange, [this, exchange, work, type](const ModelUsePtr& use) {
    in_pool<std::string>(
        exchange,
        [use, work](const std::string& body) { return work(use->model->config.adapters, body); },
        [exchange, type](const Result<std::string>& text) {
          if (!text) return exchange->respond_error(text.error());
          exchange->respond(200, std::string(type), *text);
        });
  });
}

void Api::Impl::load_adapter(const ExchangePtr& exchange, const net::RouteParams&) {
  about_adapters(
      exchange,
      [now = std::time(nullptr)](Adapters* adapters, std::string_view body) {
        return pages::load_adapter(adapters, body, now);
      },
      kText);
}

void Api::Impl::unload_adapter(const ExchangePtr& exchange, const net::RouteParams&) {
  about_adapters(exchange, &pages::unload_adapter, kText);
}

void Api::Impl::adapter_scales(const ExchangePtr& exchange, const net::RouteParams&) {
  about_adapters(
      exchange,
      [](const Adapters* adapters, std::string_view) {
        return pages::adapter_scales_page(adapters);
      },
      kJson);
}

void Api::Impl::set_adapter_scales(const ExchangePtr& exchange, const net::RouteParams&) {
  about_adapters(exchange, &pages::set_adapter_scales, kJson);
}

void Api::Impl::render_adapters(std::string& page) {
  std::vector<OpenRequest> open;
  std::vector<const Adapters*> all;
  const sched::Clock::time_point now = sched::Clock::now();
  for (const std::shared_ptr<ServedModel>& model : served) {
    if (!model || model->config.adapters == nullptr) continue;
    all.push_back(model->config.adapters);
    for (const std::shared_ptr<Stream>& stream : model->streams) stream->list_open(open, now);
    for (const std::shared_ptr<BatchAnswer>& batch : model->batches) batch->list_open(open, now);
  }
  if (all.empty()) return;
  adapter_use.render(page, all, open, static_cast<double>(std::time(nullptr)));
}

}  // namespace weir::api
