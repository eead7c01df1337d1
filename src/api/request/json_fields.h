// Reading members of a request's body: each returns the value, or an error that names its path
// (`messages[0].content`).
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace weir::api {

// A client's text within an error message: its beginning.
std::string_view shown(std::string_view text);

// The value is a number, of any type.
bool is_number(JsonValue value);

// Errors about a field.
tl::unexpected<Error> wrong_type(std::string_view path, std::string_view expected, JsonValue found);
tl::unexpected<Error> out_of_range(std::string_view path, const std::string& message);
tl::unexpected<Error> missing(std::string_view path);
tl::unexpected<Error> unsupported(std::string_view path, const std::string& message);

// Paths of a member and of an element.
std::string join(std::string_view path, std::string_view key);
std::string at(std::string_view path, size_t index);

// A value of a type.
Result<JsonObject> as_object(std::string_view path, JsonValue value);
Result<JsonArray> as_array(std::string_view path, JsonValue value);
Result<std::string_view> as_string(std::string_view path, JsonValue value);

// A body that is to be an object.
Result<JsonObject> body_object(const JsonDoc& doc);

// A member that must be there.
Result<JsonValue> required_member(std::string_view path, JsonObject object, std::string_view key);
Result<std::string_view> required_string(std::string_view path, JsonObject object,
                                         std::string_view key);

// Numbers of a field. An integer may be written as 16.0.
Result<int64_t> integer_of(std::string_view path, JsonValue value);
Result<void> check_range(std::string_view path, double number, double min, double max);

}  // namespace weir::api
