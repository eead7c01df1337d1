// Client: what the hub answers, as values: a model's commit and files, small files, parts of large
// ones, searches. Whole large files come through download.h.
//
// It tries again what may come right by itself (broken connections, 5xx, 429 after the time that
// the hub names) and says plainly what does not: no such model, gated, private, no such revision.
// The token goes to the endpoint only; a link to a CDN is followed without it.
//
// Threads: one at a time, which waits for the answers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/model_info.h"
#include "hub/model_name.h"
#include "hub/settings.h"
#include "hub/transport.h"
#include "hub/tree.h"

namespace weir::hub {

// What a name means at the hub now.
struct HubModel {
  ModelName name;  // Its id as the hub spells it.
  ModelInfo info;
  Tree tree;                    // All files of info.commit.
  std::vector<TreeFile> files;  // Those that the model is (selection.h).
};

struct FileRange {
  const TreeFile* file = nullptr;
  ByteRange range;  // Cut at the file's end.
};

struct SearchQuery {
  std::string text, author;
  std::string filter;              // A tag: "mlx", "gguf".
  std::string sort = "downloads";  // likes, lastModified, createdAt, trendingScore.
  std::string parameters;          // "min:1B,max:9B".
  int32_t limit = 20;              // At most 100.
  std::string cursor;              // SearchPage::next of the page before; empty: the first.
};
struct SearchPage {
  std::vector<ModelInfo> models;
  std::string next;  // Empty: this was the last.
};

class Client {
 public:
  // `transport` outlives it.
  Client(Settings settings, Transport& transport);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Settings& settings() const { return settings_; }
  // Told while a request waits to be tried again, and why; for people who look on.
  void on_wait(std::function<void(const std::string& why)> told) { told_ = std::move(told); }
  // Asked often; true ends what runs with kCancelled.
  void stop_when(std::function<bool()> asked) { asked_ = std::move(asked); }

  // Info and tree. Errors: kNotFound, kForbidden (gated, private, disabled), kUnavailable (the hub
  // does not answer), kInvalid (it answers nonsense).
  Result<HubModel> resolve(const ModelName& name, std::span<const std::string> include = {});
  // A whole small file, its hash checked.
  Result<std::string> fetch_file(const HubModel& model, const TreeFile& file, size_t bytes_max);
  // Parts of files, several at once; in the order asked. What no hash can prove: others are
  // checked when the whole file is there.
  Result<std::vector<std::string>> fetch_ranges(const HubModel& model,
                                                std::span<const FileRange> ranges);
  Result<SearchPage> search(const SearchQuery& query);

 private:
  Settings settings_;
  Transport& transport_;
  std::function<void(const std::string& why)> told_;
  std::function<bool()> asked_;
};

}  // namespace weir::hub
