#include "api/exchange/error_shape.h"

#include "api/exchange/api_error.h"

namespace weir::api {

namespace {

class OpenAiErrors final : public ErrorShape {
 public:
  int http_status(const Error& error) const override {
    constexpr int kConflict = 409;
    return error.kind == kModelInUse ? kConflict : api::http_status(error.code);
  }
  std::string json(const Error& error, std::string_view) const override {
    return error_json(error);
  }
};

}  // namespace

const ErrorShape& openai_errors() {
  static const OpenAiErrors errors;
  return errors;
}

}  // namespace weir::api
