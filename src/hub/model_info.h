// ModelInfo: what the hub says of a model beside its files.
//
// Threads: any; values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::hub {

struct ModelInfo {
  std::string id;      // As the hub spells it now, also where it was asked by an older name.
  std::string commit;  // What the revision means at present. Empty in answers to a search.
  bool is_private = false;
  std::string gated;  // "auto", "manual"; empty: it is not.
  bool disabled = false;
  std::string pipeline_tag;       // "text-generation"; may be empty.
  std::vector<std::string> tags;  // "mlx", "license:apache-2.0".
  std::string last_modified;      // RFC 3339; may be empty.
  int64_t downloads = 0, likes = 0;
  std::map<std::string, int64_t> parameters;  // By type ("BF16", "U32"), of its safetensors.
  int64_t parameters_total = 0;

  // GET /api/models/ID[/revision/REVISION].
  static Result<ModelInfo> parse(std::string_view json);
  // GET /api/models?search=...: an array of the same; entries that are none are left out.
  static Result<std::vector<ModelInfo>> parse_list(std::string_view json);
};

}  // namespace weir::hub
