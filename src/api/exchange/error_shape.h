// ErrorShape: how a protocol writes an error that is a whole answer: its status, its body, and the
// header in which clients look for the request's id.
//
// Threads: any; the objects are constant.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace weir::api {

class ErrorShape {
 public:
  virtual ~ErrorShape() = default;

  virtual int http_status(const Error& error) const = 0;
  // `request_id`: empty where there is none to name.
  virtual std::string json(const Error& error, std::string_view request_id) const = 0;
  // As an event of a stream that has begun.
  virtual std::string event(const Error& error) const {
    return "data: " + json(error, {}) + "\n\n";
  }
  // Beside x-request-id; empty: no other.
  virtual std::string_view id_header() const { return {}; }
};

// OpenAI's, which all speak that have no other.
const ErrorShape& openai_errors();

// The shape in which a request is answered, by its path and headers; api_table.cpp defines it.
const ErrorShape& error_shape_of(const net::HttpRequest& request);

}  // namespace weir::api
