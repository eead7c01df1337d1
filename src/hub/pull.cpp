#include "hub/pull.h"

namespace weir::hub {

Result<Snapshot> pull(Client& client, const Cache& cache, const ModelName& name,
                      const PullOptions& options) {
  WEIR_ASSIGN(const HubModel model, client.resolve(name, options.include));
  if (options.check) WEIR_TRY(options.check(client, model));
  return download(client, cache, model, options);
}

}  // namespace weir::hub
