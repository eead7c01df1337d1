#include "api/request/request_field.h"

namespace weir::api {

bool is_empty_value(JsonValue value) {
  switch (value.type()) {
    case JsonType::STRING:
      return value.get_string().value_unsafe().empty();
    case JsonType::ARRAY:
      return value.get_array().value_unsafe().size() == 0;
    case JsonType::OBJECT:
      return value.get_object().value_unsafe().size() == 0;
    case JsonType::BOOL:
      return !value.get_bool().value_unsafe();
    default:
      return false;
  }
}

Result<void> refuse(const FieldInput& in, GenerateRequest&) {
  if (is_empty_value(in.value)) return {};
  return unsupported(in.path, "this server does not do that yet");
}

Result<bool> boolean_of(const FieldInput& in) {
  bool flag = false;
  if (in.value.get(flag) != simdjson::SUCCESS) return wrong_type(in.path, "a boolean", in.value);
  return flag;
}

Result<double> number_of(const FieldInput& in, double min, double max) {
  double number = 0;
  if (!is_number(in.value) || in.value.get(number) != simdjson::SUCCESS)
    return wrong_type(in.path, "a number", in.value);
  WEIR_TRY(check_range(in.path, number, min, max));
  return number;
}

Result<int64_t> count_of(const FieldInput& in, double min, double max) {
  WEIR_ASSIGN(const int64_t number, integer_of(in.path, in.value));
  WEIR_TRY(check_range(in.path, static_cast<double>(number), min, max));
  return number;
}

}  // namespace weir::api
