// Catalogue: well-known models that run here, with what each takes: compiled in
// (models/catalogue.json), so that there is something to choose from without a network. What each
// takes was computed by the planner, from the shapes in the published settings (tools/
// make_catalogue); no file of theirs was needed for it.
//
// Threads: any; values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "fit/assessment.h"
#include "fit/verdict.h"

namespace weir::fit {

// A repository of a model's files, in one format.
struct CatalogueFormat {
  std::string id;          // "org/name".
  std::string format;      // "BF16", "4-bit g64".
  int64_t bytes = 0;       // Of the tensors, as the shape has them.
  std::string commit;      // The one that `file_bytes` is of; empty: not looked up.
  int64_t file_bytes = 0;  // Of what is fetched; 0: not looked up.
  ModelFootprint model;    // With default options, on eight threads.
  std::optional<ModelFootprint> streamed;  // The same with --stream-experts.
  TokenCost cost;                          // But for keys and values.
};

struct CatalogueModel {
  std::string name, family, license;
  bool gated = false;  // Its terms have to be accepted on its page.
  int64_t parameters = 0;
  int64_t active = 0;  // Multiplied for one token.
  int32_t context = 0;
  std::vector<CatalogueFormat> formats;  // The largest first.
};

class Catalogue {
 public:
  // The error names the model and the member.
  static Result<Catalogue> parse(std::string_view json);
  static Catalogue built_in();

  const std::vector<CatalogueModel>& models() const { return models_; }
  // Null: there is none of that id.
  const CatalogueFormat* find(std::string_view id) const;
  // Other files of the same model, the largest first, as ways to run it.
  std::vector<Way> others(std::string_view id, const Options& options) const;

 private:
  std::vector<CatalogueModel> models_;
};

// What these files come to here, as far as the catalogue knows: options that change what a model
// takes (--threads, --prefill-size, --compute) are left out of account.
Assessment assess(const Options& options, const MemoryLimit& limit, const CatalogueFormat& files,
                  const std::string& disk);

}  // namespace weir::fit
