// What the server says of its adapters: in vLLM's shapes, and in llama-server's; and what requests
// ask of them.
//
// Threads: pure functions, but for what Adapters locks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/serving/adapters.h"
#include "api/serving/api_config.h"
#include "api/stream/open_request.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api::pages {

// An entry of /v1/models: `root` is where it is, `parent` the model that it is for.
void write_adapter(JsonWriter& json, const ApiConfig& config, const ServedAdapter& adapter,
                   int32_t tokens_max);

// vLLM's: {"lora_name", "lora_path"}; the text of its answer. Slow: reads the adapter.
Result<std::string> load_adapter(Adapters* adapters, std::string_view body, int64_t now);
Result<std::string> unload_adapter(Adapters* adapters, std::string_view body);

// llama-server's: [{id, path, scale}], where the scale is that of requests which ask for none; and
// [{id, scale}], which sets it.
std::string adapter_scales_page(const Adapters* adapters);
Result<std::string> set_adapter_scales(Adapters* adapters, std::string_view body);

// The adapters of open requests as vllm:lora_requests_info names them, and when that has changed.
class AdapterUse {
 public:
  // Appends the metric, of all models' adapters. `now`: seconds since the epoch.
  void render(std::string& out, std::span<const Adapters* const> all,
              std::span<const OpenRequest> open, double now);

 private:
  std::string labels_;
  double changed_ = 0;
};

}  // namespace weir::api::pages
