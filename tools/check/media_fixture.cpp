#include "media_fixture.h"

#include <utility>

#include "base/concat.h"
#include "base/file.h"
#include "card/config_reader.h"
#include "card/safetensors.h"

namespace weir::check {

Result<MediaFiles> MediaFiles::open(const std::string& folder) {
  WEIR_ASSIGN(FileView view, FileView::map(folder + "/expected.safetensors"));
  WEIR_ASSIGN(card::Checkpoint expected, card::open_safetensors(std::move(view)));
  WEIR_ASSIGN(const std::string preprocessor_text,
              read_file(folder + "/preprocessor_config.json", kFixtureFileMax));
  WEIR_ASSIGN(JsonDoc preprocessor, card::parse_config(preprocessor_text));
  WEIR_ASSIGN(const std::string config_text, read_file(folder + "/config.json", kFixtureFileMax));
  WEIR_ASSIGN(JsonDoc config, card::parse_config(config_text));
  return MediaFiles{std::move(expected), std::move(preprocessor), std::move(config)};
}

std::vector<int64_t> MediaFiles::placeholder_runs(std::string_view kind) const {
  const std::vector<int64_t> ids = read_tensor<int64_t>(expected, "input_ids", DType::kI64);
  const int64_t id = placeholder_id(config.root(), kind);
  std::vector<int64_t> runs;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != id) continue;
    if (i == 0 || ids[i - 1] != id) runs.push_back(0);
    ++runs.back();
  }
  return runs;
}

int64_t placeholder_id(JsonValue config, std::string_view kind) {
  int64_t id = -1;
  for (const char* key : {"_token_id", "_token_index"})
    if (config[concat({kind, key})].get(id) == simdjson::SUCCESS) break;
  return id;
}

}  // namespace weir::check
