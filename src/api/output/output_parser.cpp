#include "api/output/output_parser.h"

#include "api/output/call_format.h"
#include "api/output/harmony_parser.h"
#include "api/output/reasoning_format.h"
#include "api/output/tagged_parser.h"

namespace weir::api::output {

std::unique_ptr<OutputParser> make_parser(const ParserOptions& options) {
  if (!options.calls && !options.reasoning) return nullptr;
  const bool messages = (options.calls && options.calls->messages) ||
                        (options.reasoning && options.reasoning->messages);
  if (messages) return std::make_unique<HarmonyParser>(options);
  return std::make_unique<TaggedParser>(options);
}

}  // namespace weir::api::output
