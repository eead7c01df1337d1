// Client: what the hub answers, as values: a model's commit and files, small files, parts of large
// ones, searches. Whole large files come through download.h.
//
// It tries again what may come right by itself (broken connections, 5xx, 429 after the time that
// the hub names) and says plainly what does not: no such model, gated, private, no such revision.
// The token goes to the endpoint only; a link to a CDN is followed without it.
//
// Threads: one at a time, which waits for the answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/answer.h"
#include "hub/model_info.h"
#include "hub/model_name.h"
#include "hub/settings.h"
#include "hub/transport.h"
#include "hub/tree.h"
#include "hub/url.h"

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
  std::string text = {}, author = {};
  std::string filter = {};         // A tag: "mlx", "gguf".
  std::string sort = "downloads";  // likes, lastModified, createdAt, trendingScore.
  std::string parameters = {};     // "min:1B,max:9B".
  int32_t limit = 20;              // At most 100.
  std::string cursor = {};         // SearchPage::next of the page before; empty: the first.
};
struct SearchPage {
  std::vector<ModelInfo> models;
  std::string next;  // Empty: this was the last.
};

class Client {
 public:
  // Largest answer of the hub's API: a page of 1,000 files has 300 KB.
  static constexpr size_t kAnswerBytesMax = size_t{16} << 20;

  // `transport` outlives it. The error: the endpoint is no address.
  static Result<Client> create(Settings settings, Transport& transport);

  const Settings& settings() const { return settings_; }
  // Told when a request waits to be tried again, and why; for people who look on.
  void on_wait(std::function<void(const std::string& why)> told) { told_ = std::move(told); }
  // Asked often; true ends what runs with kCancelled.
  void stop_when(std::function<bool()> asked) { asked_ = std::move(asked); }

  // Info and tree. Errors: kNotFound, kForbidden (gated, private, disabled), kUnavailable (the hub
  // does not answer, or must not be asked: Settings::offline), kInvalid (it answers nonsense).
  Result<HubModel> resolve(const ModelName& name, std::span<const std::string> include = {});
  // A whole small file, its hash checked. It is kept: a download does not fetch it again.
  Result<std::string> fetch_file(const HubModel& model, const TreeFile& file, size_t bytes_max);
  // Parts of files, several at once; in the order asked. No hash proves a part: the whole file is
  // checked when it is downloaded.
  Result<std::vector<std::string>> fetch_ranges(const HubModel& model,
                                                std::span<const FileRange> ranges);
  Result<SearchPage> search(const SearchQuery& query);

  // For the others of this folder.

  // Where a file's bytes come from; a CDN's link expires.
  struct Link {
    Url url;
    bool at_hub = false;
  };
  std::map<std::string, Link>& links() { return links_; }  // By commit and path.
  // What fetch_file() has fetched of that blob. Null: nothing.
  const std::string* fetched(const std::string& blob) const;
  Transport& transport() { return *transport_; }
  const Url& endpoint() const { return endpoint_; }
  // With the token where it may go.
  Request request_for(const Url& url) const;
  Asked asked_for(const HubModel& model, const TreeFile& file) const;
  void tell(const std::string& why) const;
  bool stopped() const { return asked_ && asked_(); }

 private:
  struct Answer {
    ResponseHead head;
    std::string body;
  };

  Client(Settings settings, Url endpoint, Transport& transport)
      : settings_(std::move(settings)), endpoint_(std::move(endpoint)), transport_(&transport) {}

  Result<Answer> ask(const std::string& path, const Asked& asked);
  Result<Answer> ask_once(const Url& url, std::string& broken);
  Result<void> wait(std::chrono::milliseconds time, const std::string& why);
  Result<Tree> fetch_tree(const ModelInfo& info, const Asked& asked);

  Settings settings_;
  Url endpoint_;
  Transport* transport_;
  std::function<void(const std::string& why)> told_;
  std::function<bool()> asked_;
  std::map<std::string, Link> links_;
  std::map<std::string, std::string> fetched_;  // By blob.
};

}  // namespace weir::hub
