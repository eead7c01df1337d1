#include "api/exchange/api_error.h"

#include "base/json.h"
#include "sched/request.h"

namespace weir::api {

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kContextLength:
    case ErrorCode::kUnsupported:
      return 400;
    case ErrorCode::kUnauthorized:
      return 401;
    case ErrorCode::kForbidden:
      return 403;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kMethod:
      return 405;
    case ErrorCode::kTooLarge:
      return 413;
    case ErrorCode::kMediaType:
      return 415;
    case ErrorCode::kOverloaded:
      return 429;
    case ErrorCode::kUnavailable:
    case ErrorCode::kCapacity:
      return 503;
    case ErrorCode::kCancelled:
      return 499;  // nginx's number for a client that left; only ever in the log.
    case ErrorCode::kConfig:
    case ErrorCode::kIo:
      return 500;
  }
  return 500;
}

Error engine_error(const sched::Request& request, std::string_view thing) {
  if (!request.failure.empty())
    return {ErrorCode::kUnavailable, "A part of the model cannot be read: " + request.failure};
  if (request.no_numbers)
    return {ErrorCode::kIo, "The model computed no finite numbers for this " + std::string(thing) +
                                ": its checkpoint may be damaged, or the precision of its weights "
                                "too small."};
  return {ErrorCode::kIo, "The engine could not go on with this " + std::string(thing) + "."};
}

Error error_of_status(int status, std::string message) {
  Error error{ErrorCode::kInvalid, std::move(message)};
  switch (status) {
    case 401:
      error.code = ErrorCode::kUnauthorized;
      error.kind = "invalid_api_key";
      break;
    case 403:
      error.code = ErrorCode::kForbidden;
      break;
    case 404:
      error.code = ErrorCode::kNotFound;
      error.kind = "unknown_url";
      break;
    case 405:
      error.code = ErrorCode::kMethod;
      break;
    case 413:
      error.code = ErrorCode::kTooLarge;
      break;
    case 415:
      error.code = ErrorCode::kMediaType;
      break;
    case 429:
      error.code = ErrorCode::kOverloaded;
      break;
    case 503:
      error.code = ErrorCode::kUnavailable;
      break;
    default:
      if (status >= 500) error.code = ErrorCode::kIo;
  }
  return error;
}

bool is_temporary(ErrorCode code) {
  const int status = http_status(code);
  return status == 429 || status == 503;
}

std::string error_json(const Error& error) {
  const int status = http_status(error.code);
  const char* type = status == 429   ? "rate_limit_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  std::string code = error.kind;
  if (code.empty() && error.code == ErrorCode::kContextLength) code = "context_length_exceeded";
  if (code.empty() && error.code == ErrorCode::kOverloaded) code = "rate_limit_exceeded";

  std::string out;
  JsonWriter json(out);
  const auto text_or_null = [&](std::string_view name, const std::string& text) {
    json.key(name);
    if (text.empty())
      json.null();
    else
      json.value(text);
  };
  json.begin_object().key("error").begin_object();
  json.field("message", error.message);
  json.field("type", type);
  text_or_null("param", error.param);
  text_or_null("code", code);
  json.end_object().end_object();
  return out;
}

std::string prompt_too_long(int64_t tokens, int64_t tokens_max) {
  return std::string(kPromptTooLong) + std::to_string(tokens) + " tokens > " +
         std::to_string(tokens_max) + " maximum";
}

}  // namespace weir::api
