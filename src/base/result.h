// Error, Result<T> and WEIR_TRY: how Weir reports what the outside world did wrong.
//
// A bug of ours is a CHECK (check.h), never an Error. The only file that includes tl::expected, so
// that the change to std::expected is one line.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace weir {

// What kind of thing went wrong. api/exchange/api_error.cpp maps each to an HTTP status.
enum class ErrorCode : uint8_t {
  kInvalid,        // Malformed or out of range: 400.
  kContextLength,  // The prompt does not fit the context: 400, code context_length_exceeded.
  kUnauthorized,   // 401.
  kForbidden,      // 403.
  kNotFound,       // 404.
  kMethod,         // 405.
  kTooLarge,       // 413.
  kMediaType,      // 415.
  kOverloaded,     // A limit of ours is reached; try again later: 429.
  kUnavailable,    // Loading or draining: 503.
  kUnsupported,    // Well-formed, but this server does not do it: 400.
  kConfig,         // A model's file or an option is wrong; start-up only.
  kIo,             // A file or socket failed: 500.
  kCapacity,       // Memory or another resource is short: 503.
  kCancelled,      // The client left.
};

// An operating error: something the outside world did that we must report.
struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;     // One sentence: thing, expected, found. No trailing newline.
  std::string param = {};  // The request field at fault (`messages[0].role`), if there is one.
  std::string kind = {};   // OpenAI's `code`, where it has one (`model_not_found`).
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message,
                                                std::string param = {}, std::string kind = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(param), std::move(kind)});
}

}  // namespace weir

// Evaluates a Result; returns its error from the enclosing function, or goes on.
#define WEIR_TRY(expr)                                                      \
  do {                                                                      \
    if (auto weir_try_ = (expr); !weir_try_)                                \
      return ::tl::unexpected<::weir::Error>(std::move(weir_try_).error()); \
  } while (false)

#define WEIR_CONCAT_INNER(a, b) a##b
#define WEIR_CONCAT(a, b) WEIR_CONCAT_INNER(a, b)

// WEIR_ASSIGN(auto x, f()): declares x from a Result, or returns its error.
#define WEIR_ASSIGN(decl, expr)                                  \
  auto WEIR_CONCAT(weir_result_, __LINE__) = (expr);             \
  if (!WEIR_CONCAT(weir_result_, __LINE__))                      \
    return ::tl::unexpected<::weir::Error>(                      \
        std::move(WEIR_CONCAT(weir_result_, __LINE__)).error()); \
  decl = std::move(*WEIR_CONCAT(weir_result_, __LINE__))
