#include "hub/client.h"

#include <algorithm>
#include <utility>

#include "base/concat.h"
#include "hub/blob_hash.h"
#include "hub/fetcher.h"
#include "hub/selection.h"

namespace weir::hub {

namespace {

using std::chrono::milliseconds;

// How long a request may run before the caller is asked whether it should.
constexpr milliseconds kTurn{100};
constexpr int kHopsMax = 5;
// An answer in JSON may take so many times longer than a head: a page of files has 300 KB.
constexpr int kAnswerTimes = 6;
// 1,000 files a page: Tree::kFilesMax of them, and as many pages again of folders.
constexpr int kPagesMax = 200;
// Ranges under way at once; a download has as many connections.
constexpr size_t kRangesAtOnce = 4;

// A whole answer in memory.
class Collected final : public Receiver {
 public:
  bool on_head(const ResponseHead& answer) override {
    head = answer;
    return true;
  }
  bool on_data(std::string_view bytes) override {
    if (body.size() + bytes.size() > Client::kAnswerBytesMax) {
      too_large = ended = true;
      return false;
    }
    body += bytes;
    return true;
  }
  void on_end(Ending how, const std::string& text) override {
    ended = true;
    ending = how;
    why = text;
  }

  ResponseHead head;
  std::string body;
  bool ended = false, too_large = false;
  Ending ending = Ending::kWhole;
  std::string why;
};

// The address of the relation "next" in a Link header; empty: there is none.
std::string next_link(std::string_view header) {
  while (!header.empty()) {
    const size_t open = header.find('<'), close = header.find('>');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) break;
    const size_t end = std::min(header.find(",", close), header.size());
    if (header.substr(close, end - close).find("rel=\"next\"") != std::string_view::npos)
      return std::string(header.substr(open + 1, close - open - 1));
    header.remove_prefix(end);
  }
  return {};
}

// The value of a parameter of an address, as it is encoded there.
std::string parameter_of(std::string_view url, std::string_view name) {
  size_t at = url.find('?');
  while (at != std::string_view::npos) {
    const std::string_view rest = url.substr(at + 1);
    const size_t end = rest.find('&');
    if (rest.starts_with(name) && rest.substr(name.size()).starts_with('='))
      return std::string(rest.substr(0, end).substr(name.size() + 1));
    at = end == std::string_view::npos ? end : at + 1 + end;
  }
  return {};
}

// Pieces into strings, by key.
class Strings final : public Fetcher::Sink {
 public:
  explicit Strings(std::vector<std::string>& texts) : texts_(texts) {}
  Result<void> take(size_t key, uint64_t, std::string_view bytes) override {
    texts_[key] += bytes;
    return {};
  }

 private:
  std::vector<std::string>& texts_;
};

}  // namespace

Result<Client> Client::create(Settings settings, Transport& transport) {
  WEIR_ASSIGN(Url endpoint, Url::parse(settings.endpoint));
  return Client(std::move(settings), std::move(endpoint), transport);
}

Request Client::request_for(const Url& url) const {
  Request request{.url = url.text};
  if (url.same_origin(endpoint_)) request.token = settings_.token;
  return request;
}

Asked Client::asked_for(const HubModel& model, const TreeFile& file) const {
  return {.id = model.name.id,
          .revision = model.tree.commit,
          .file = file.path,
          .with_token = !settings_.token.empty(),
          .endpoint = settings_.endpoint};
}

void Client::tell(const std::string& why) const {
  if (told_) told_(why);
}

const std::string* Client::fetched(const std::string& blob) const {
  const auto found = fetched_.find(blob);
  return found == fetched_.end() ? nullptr : &found->second;
}

Result<void> Client::wait(milliseconds time, const std::string& why) {
  tell(concat({why, "; again in ", std::to_string(time.count() / 1000), " s"}));
  const auto until = transport_->now() + time;
  while (transport_->now() < until) {
    if (stopped()) return fail(ErrorCode::kCancelled, "stopped");
    transport_->run(kTurn);
  }
  return {};
}

// One request and its redirects within the hub. `broken`: why there is no whole answer.
Result<Client::Answer> Client::ask_once(const Url& url, std::string& broken) {
  Url at = url;
  for (int hops = 0; hops <= kHopsMax; ++hops) {
    Collected answer;
    Request request = request_for(at);
    request.time = kAnswerTimes * settings_.metadata_time;
    const Transport::Id id = transport_->start(request, answer);
    while (!answer.ended && !stopped()) transport_->run(kTurn);
    if (!answer.ended) {
      transport_->cancel(id);
      return fail(ErrorCode::kCancelled, "stopped");
    }
    if (answer.too_large)
      return fail(ErrorCode::kInvalid, concat({at.host, ": expected an answer of at most ",
                                               std::to_string(kAnswerBytesMax), " bytes"}));
    if (answer.ending == Ending::kRefused) return fail(ErrorCode::kForbidden, answer.why);
    if (answer.ending == Ending::kBroken) broken = answer.why;
    if (answer.head.status < 300 || answer.head.status >= 400)
      return Answer{std::move(answer.head), std::move(answer.body)};
    WEIR_ASSIGN(at, at.join(std::string(answer.head.header("location"))));
    if (!at.same_origin(endpoint_))
      return fail(ErrorCode::kForbidden,
                  concat({settings_.endpoint, ": the hub's API redirects to another host, ",
                          at.host, "; it may be the one that HF_ENDPOINT should name"}));
  }
  return fail(ErrorCode::kInvalid, settings_.endpoint + ": the hub redirects in circles");
}

Result<Client::Answer> Client::ask(const std::string& path, const Asked& asked) {
  if (settings_.offline)
    return fail(ErrorCode::kUnavailable,
                concat({asked.id, ": expected it in the cache, ", settings_.cache,
                        ", for the hub must not be asked (HF_HUB_OFFLINE, --offline)"}));
  WEIR_ASSIGN(const Url url, Url::parse(settings_.endpoint + path));
  for (Tries tries;;) {
    std::string broken;
    WEIR_ASSIGN(Answer answer, ask_once(url, broken));
    const int status = answer.head.status;
    if (broken.empty() && status >= 200 && status < 300) return answer;
    if (broken.empty() && !may_come_right(status))
      return tl::unexpected(error_of(answer.head, asked));
    if (broken.empty())
      broken = concat({settings_.endpoint, ": the hub answers ", std::to_string(status)});
    const std::optional<milliseconds> usual = tries.next();
    if (!usual) return fail(ErrorCode::kUnavailable, broken + ", after five further tries");
    WEIR_TRY(wait(wait_asked(answer.head).value_or(*usual), broken));
  }
}

Result<Tree> Client::fetch_tree(const ModelInfo& info, const Asked& asked) {
  Tree tree{.commit = info.commit, .files = {}};
  std::string path =
      concat({"/api/models/", info.id, "/tree/", info.commit, "?recursive=true&expand=false"});
  for (int page = 0; page < kPagesMax; ++page) {
    WEIR_ASSIGN(const Answer answer, ask(path, asked));
    WEIR_TRY(tree.add_page(answer.body));
    const std::string next = next_link(answer.head.header("link"));
    if (next.empty()) {
      WEIR_TRY(tree.finish());
      return tree;
    }
    WEIR_ASSIGN(const Url url, endpoint_.join(next));
    // A hub below a path of its host has it in its links, too.
    if (!url.same_origin(endpoint_) || !url.text.starts_with(settings_.endpoint + "/"))
      return fail(ErrorCode::kInvalid, concat({"the hub's list of files: expected its next page ",
                                               "at the hub, found it at ", url.host}));
    path = url.text.substr(settings_.endpoint.size());
  }
  return fail(ErrorCode::kInvalid, concat({info.id, ": expected at most ",
                                           std::to_string(kPagesMax), " pages of files"}));
}

Result<HubModel> Client::resolve(const ModelName& name, std::span<const std::string> include) {
  Asked asked{.id = name.id,
              .revision = name.revision,
              .file = {},
              .with_token = !settings_.token.empty(),
              .endpoint = settings_.endpoint};
  WEIR_ASSIGN(
      const Answer answer,
      ask(concat({"/api/models/", name.id, "/revision/", percent_encode(name.revision)}), asked));
  HubModel model{.name = name, .info = {}, .tree = {}, .files = {}};
  WEIR_ASSIGN(model.info, ModelInfo::parse(answer.body));
  if (model.info.disabled)
    return fail(ErrorCode::kForbidden, name.id + ": the hub has disabled this model");
  model.name.id = asked.id = model.info.id;
  WEIR_ASSIGN(model.tree, fetch_tree(model.info, asked));
  std::string index;
  if (wants_index(model.tree, name.file, include)) {
    WEIR_ASSIGN(index, fetch_file(model, *model.tree.find(kIndexFile), kAnswerBytesMax));
  }
  Result<std::vector<TreeFile>> files = select_files(model.tree, name.file, include, index);
  if (!files) return fail(files.error().code, name.text() + ": " + files.error().message);
  model.files = std::move(*files);
  return model;
}

Result<std::string> Client::fetch_file(const HubModel& model, const TreeFile& file,
                                       size_t bytes_max) {
  if (file.size > static_cast<int64_t>(bytes_max))
    return fail(ErrorCode::kTooLarge,
                concat({model.name.id, "/", file.path, ": expected at most ",
                        std::to_string(bytes_max), " bytes, found ", std::to_string(file.size)}));
  if (const std::string* kept = fetched(file.blob)) return *kept;
  std::string found;
  // As with large files: what is wrong once may have been the network, twice it is the hub.
  for (int round = 0; round < 2; ++round) {
    const FileRange whole{.file = &file, .range = {0, static_cast<uint64_t>(file.size)}};
    WEIR_ASSIGN(std::vector<std::string> texts, fetch_ranges(model, {&whole, 1}));
    BlobHash hash(file.blob, file.size);
    hash.add(texts[0]);
    found = hash.finish();
    if (found == file.blob) return fetched_[file.blob] = std::move(texts[0]);
  }
  return fail(ErrorCode::kInvalid, concat({model.name.id, "/", file.path, ": expected bytes whose ",
                                           "hash is ", file.blob, ", found ", found, ", twice"}));
}

Result<std::vector<std::string>> Client::fetch_ranges(const HubModel& model,
                                                      std::span<const FileRange> ranges) {
  std::vector<std::string> texts(ranges.size());
  Strings sink(texts);
  Fetcher fetcher(*this, model, sink);
  for (size_t next = 0; next < ranges.size() || fetcher.open() > 0;) {
    if (stopped()) return fail(ErrorCode::kCancelled, "stopped");
    for (; next < ranges.size() && fetcher.open() < kRangesAtOnce; ++next) {
      const TreeFile& file = *ranges[next].file;
      ByteRange range = ranges[next].range;
      range.end = std::min(range.end, static_cast<uint64_t>(file.size));
      if (range.begin < range.end)
        fetcher.add({.key = next, .file = &file, .range = range, .from_whole = true});
    }
    if (fetcher.open() > 0) WEIR_TRY(fetcher.run(kTurn));
  }
  return texts;
}

Result<SearchPage> Client::search(const SearchQuery& query) {
  std::string path = concat({"/api/models?limit=", std::to_string(query.limit)});
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) path.append("&").append(name).append("=").append(percent_encode(value));
  };
  add("search", query.text);
  add("author", query.author);
  add("filter", query.filter);
  add("sort", query.sort);
  add("num_parameters", query.parameters);
  if (!query.cursor.empty()) path.append("&cursor=").append(query.cursor);  // Encoded, as it came.
  WEIR_ASSIGN(const Answer answer, ask(path, {.endpoint = settings_.endpoint}));
  SearchPage page;
  WEIR_ASSIGN(page.models, ModelInfo::parse_list(answer.body));
  page.next = parameter_of(next_link(answer.head.header("link")), "cursor");
  return page;
}

}  // namespace weir::hub
