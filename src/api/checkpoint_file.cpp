#include "api/checkpoint_file.h"

#include <utility>

namespace weir::api {

Result<std::optional<JsonDoc>> read_file(const ModelFiles& files, const std::string& file) {
  if (!files.has(file)) return std::nullopt;
  WEIR_ASSIGN(const FileView view, files.open_file(file));
  Result<JsonDoc> doc = JsonDoc::parse(view.text());
  if (!doc) return fail(ErrorCode::kConfig, view.name() + ": " + doc.error().message);
  return std::optional<JsonDoc>(std::move(*doc));
}

tl::unexpected<Error> wrong_file(std::string_view file, const std::string& expected,
                                 JsonValue found) {
  return fail(ErrorCode::kConfig,
              std::string(file) + ": expected " + expected + ", found " + json_excerpt(found));
}

}  // namespace weir::api
