// config.json: any bytes give a description or an error, in bounded memory.
#include <cstdint>
#include <string_view>

#include "card/config_reader.h"
#include "card/weight_format.h"
#include "model/families.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto doc = weir::card::parse_config({reinterpret_cast<const char*>(data), size});
  if (!doc) return 0;
  const auto spec = weir::model::spec_from_config(doc->root());
  if (spec && weir::model::describe(*spec).empty()) __builtin_trap();
  (void)weir::card::WeightFormat::from_config(doc->root());
  return 0;
}
