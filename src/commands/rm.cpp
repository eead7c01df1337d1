#include "commands/rm.h"

#include <cstdio>

#include "base/byte_size.h"
#include "hub/cache_removal.h"
#include "program/model_source.h"

namespace weir {

Result<void> remove_from_cache(const Options& options) {
  if (options.model.empty())
    return fail(ErrorCode::kConfig,
                "expected a model of the cache: weir rm ORG/NAME[@REVISION][:FILE]; found none");
  WEIR_ASSIGN(const hub::ModelName name, hub::ModelName::parse(options.model));
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options));
  WEIR_ASSIGN(const hub::Removed removed, hub::remove_model(hub::Cache(settings.cache), name));
  std::printf("%s: %zu files deleted, %s free\n", name.text().c_str(), removed.files,
              human_bytes(removed.bytes).c_str());
  return {};
}

}  // namespace weir
