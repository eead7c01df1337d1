#include "suite/small_kv.h"

#include "suite/child.h"
#include "suite/json_value.h"

namespace weir::suite {

namespace {

constexpr const char* kKvMemory = "--kv-memory=256M";

// The plan's total with these words; 0: the model does not fit so.
Result<int64_t> planned_bytes(const Run& run, const std::vector<std::string>& words) {
  std::vector<std::string> all = words_passed_on(run.options(), Command::kInfo);
  all.insert(all.begin(), "info");
  all.insert(all.end(), words.begin(), words.end());
  all.emplace_back("--json");
  WEIR_ASSIGN(const std::string output, output_of(all));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(output));
  return value_or(doc.root()["plan"]["total"], int64_t{0});
}

}  // namespace

Result<SmallKv> small_kv(const Run& run) {
  SmallKv small;
  if (run.options().kv_memory == 0) small.words.emplace_back(kKvMemory);
  WEIR_ASSIGN(small.planned, planned_bytes(run, small.words));
  if (small.planned == 0 && !small.words.empty()) {
    small.words.clear();
    WEIR_ASSIGN(small.planned, planned_bytes(run, small.words));
  }
  return small;
}

}  // namespace weir::suite
