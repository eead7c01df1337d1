#include "api/ollama/error.h"

#include "api/exchange/api_error.h"
#include "base/json.h"

namespace weir::api::ollama {

namespace {

constexpr std::string_view kNotImplemented = "not_implemented";
// With Ollama's two spaces: clients that try again look for these words.
constexpr std::string_view kBusy =
    "server busy, please try again.  maximum pending requests exceeded";

bool is_busy(const Error& error) {
  return error.code == ErrorCode::kOverloaded && error.kind != "rate_limit_exceeded";
}

class OllamaErrors final : public ErrorShape {
 public:
  int http_status(const Error& error) const override {
    if (is_busy(error)) return 503;
    return error.kind == kNotImplemented ? 501 : api::http_status(error.code);
  }
  std::string json(const Error& error, std::string_view) const override {
    return error_json(error);
  }
};

}  // namespace

bool is_ollama_path(std::string_view path) { return path.starts_with("/api/"); }

Error not_implemented(std::string_view what) {
  return {ErrorCode::kUnsupported,
          "this server does not " + std::string(what),
          {},
          std::string(kNotImplemented)};
}

std::string error_json(const Error& error) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .field("error", is_busy(error) ? kBusy : std::string_view(error.message))
      .end_object();
  return out;
}

const ErrorShape& ollama_errors() {
  static const OllamaErrors errors;
  return errors;
}

}  // namespace weir::api::ollama
