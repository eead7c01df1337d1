#include "api/output/output_parser.h"

#include "api/output/tagged_parser.h"

namespace weir::api::output {

std::unique_ptr<OutputParser> make_parser(const ParserOptions& options) {
  if (!options.calls && !options.reasoning) return nullptr;
  return std::make_unique<TaggedParser>(options);
}

}  // namespace weir::api::output
