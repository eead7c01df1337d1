// The endpoints about adapters: vLLM's, and llama-server's.
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "api/api_impl.h"
#include "api/pages/adapter_pages.h"

namespace weir::api {

namespace {

void respond_text(Exchange& exchange, const Result<std::string>& text) {
  if (!text) return exchange.respond_error(text.error());
  exchange.respond(200, "text/plain; charset=utf-8", *text);
}

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

// Read in the pool: no step waits for it.
void Api::Impl::load_adapter(const ExchangePtr& exchange, const net::RouteParams&) {
  in_pool<std::string>(
      exchange,
      [this, now = std::time(nullptr)](const std::string& body) {
        return pages::load_adapter(config.adapters, body, now);
      },
      [exchange](const Result<std::string>& text) { respond_text(*exchange, text); });
}

void Api::Impl::unload_adapter(const ExchangePtr& exchange, const net::RouteParams&) {
  in_pool<std::string>(
      exchange,
      [this](const std::string& body) { return pages::unload_adapter(config.adapters, body); },
      [exchange](const Result<std::string>& text) { respond_text(*exchange, text); });
}

void Api::Impl::adapter_scales(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(pages::adapter_scales_page(config.adapters));
}

void Api::Impl::set_adapter_scales(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_from_pool(exchange, [this](const std::string& body) {
    return pages::set_adapter_scales(config.adapters, body);
  });
}

void Api::Impl::render_adapters(std::string& page) {
  if (config.adapters == nullptr) return;
  std::vector<OpenRequest> open;
  const sched::Clock::time_point now = sched::Clock::now();
  for (const std::shared_ptr<ServedModel>& model : served) {
    if (!model) continue;
    for (const std::shared_ptr<Stream>& stream : model->streams) stream->list_open(open, now);
    for (const std::shared_ptr<BatchAnswer>& batch : model->batches) batch->list_open(open, now);
  }
  adapter_use.render(page, *config.adapters, open, static_cast<double>(std::time(nullptr)));
}

}  // namespace weir::api
