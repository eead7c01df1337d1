#include "api/request/adapter_scale.h"

#include <algorithm>
#include <string>

#include "api/request/json_fields.h"
#include "api/request/request_values.h"

namespace weir::api {

Result<std::vector<AdapterScale>> parse_adapter_scales(std::string_view path, JsonValue value) {
  WEIR_ASSIGN(const JsonArray array, as_array(path, value));
  if (array.size() > kAdapterScalesMax)
    return out_of_range(path, "expected at most " + std::to_string(kAdapterScalesMax) +
                                  " adapters, found " + std::to_string(array.size()));
  std::vector<AdapterScale> scales;
  size_t index = 0;
  for (const JsonValue element : array) {
    const std::string at_element = at(path, index++);
    JsonObject object;
    if (element.get(object) != simdjson::SUCCESS)
      return wrong_type(at_element, "an object with id and scale", element);
    AdapterScale scale;
    const auto id = json_get(object, "id"), factor = json_get(object, "scale");
    if (!id || !factor)
      return out_of_range(at_element, "expected id and scale, found one of them or none");
    WEIR_ASSIGN(scale.id, integer_of(at_element + ".id", *id));
    if (factor->get(scale.scale) != simdjson::SUCCESS)
      return wrong_type(at_element + ".scale", "a number", *factor);
    if (std::ranges::find(scales, scale.id, &AdapterScale::id) != scales.end())
      return out_of_range(at_element, "expected each id once, found " + std::to_string(scale.id) +
                                          " twice");
    scales.push_back(scale);
  }
  return scales;
}

}  // namespace weir::api
