#include "program/pull_desk.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "hub/cache_removal.h"
#include "hub/selection.h"
#include "net/digest.h"

namespace weir {

namespace {

// The server's options are about the model that it serves.
Options pull_options(Options options) {
  options.command = Command::kPull;
  options.config_override.clear();
  options.include.clear();
  options.dry_run = false;
  return options;
}

// Of what a model is: the paths and the hashes of its files.
std::string digest_of(const hub::HubModel& model) {
  net::Digest digest(net::Digest::Kind::kSha256);
  for (const hub::TreeFile& file : model.files) digest.add(file.path + "\n" + file.blob + "\n");
  return digest.finish();
}

}  // namespace

PullDesk::PullDesk(const Options& options, std::function<std::vector<std::string>()> served,
                   std::function<void(std::function<void()>)> post)
    : options_(pull_options(options)), served_(std::move(served)), post_(std::move(post)) {}

PullDesk::~PullDesk() { stopping_ = true; }

Result<void> PullDesk::room() const {
  if (tasks_.size() < kOpenMax) return {};
  return fail(ErrorCode::kOverloaded,
              "Too many models are being fetched or deleted: expected at "
              "most " +
                  std::to_string(kOpenMax) + "; try again later.");
}

std::function<void()> PullDesk::pull(const std::string& name, Progress progress, Done done) {
  Result<hub::ModelName> parsed = hub::ModelName::parse(name);
  Result<void> allowed =
      parsed ? room() : Result<void>(fail(ErrorCode::kInvalid, parsed.error().message));
  if (!allowed) {
    done(allowed);
    return [] {};
  }
  const uint64_t number = ++begun_;
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  tasks_.emplace(number, Task{std::move(progress), std::move(done), stop});
  if (!pulls_) pulls_.emplace("weir-pull");
  pulls_->run([this, number, name = std::move(*parsed), stop] { fetch(number, name, *stop); });
  return [this, number, stop, alive = std::weak_ptr(alive_)] {
    *stop = true;
    if (!alive.expired()) tasks_.erase(number);
  };
}

// On the thread of pulls.
void PullDesk::fetch(uint64_t number, const hub::ModelName& name, const std::atomic<bool>& stop) {
  if (stop || stopping_) return;
  log::info("pull begins model=" + name.text());
  api::PullProgress now;
  PullWatch watch;
  watch.stop = [&] { return stop || stopping_; };
  watch.on_begin = [&](const hub::HubModel& model, int64_t missing) {
    now = {.digest = digest_of(model), .bytes = hub::total_bytes(model.files)};
    now.bytes_done = now.bytes - missing;
    tell(number, now);
  };
  watch.on_progress = [&](const hub::Progress& progress) {
    now.bytes = progress.bytes;
    now.bytes_done = progress.bytes_done;
    tell(number, now);
  };
  const Result<hub::Snapshot> snapshot = pull_model(options_, name, watch);
  log::info("pull ends model=" + name.text() +
            (snapshot ? std::string(" it is here") : " error=" + snapshot.error().message));
  finish(number, snapshot ? Result<void>() : tl::unexpected(snapshot.error()));
}

void PullDesk::remove(const std::string& name, Done done) {
  // What is no name of the hub's is in no cache.
  const Result<hub::ModelName> parsed = hub::ModelName::parse(name);
  if (!parsed) return done(fail(ErrorCode::kNotFound, parsed.error().message));
  if (const Result<void> allowed = room(); !allowed) return done(allowed);
  const uint64_t number = ++begun_;
  tasks_.emplace(number, Task{.done = std::move(done)});
  if (!removals_) removals_.emplace("weir-remove");
  removals_->run([this, number, name = *parsed, served = served_()] {
    finish(number, remove_now(name, served));
  });
}

// On the thread of removals.
Result<void> PullDesk::remove_now(const hub::ModelName& name,
                                  const std::vector<std::string>& served) const {
  WEIR_ASSIGN(const hub::Settings settings, hub_settings(options_));
  const hub::Cache cache(settings.cache);
  const std::string folder = cache.model_folder(name.id) + "/";
  if (std::ranges::any_of(served,
                          [&](const std::string& path) { return path.starts_with(folder); }))
    return fail(ErrorCode::kInvalid,
                "The model '" + name.id + "' is served at present: expected one that is not.");
  WEIR_ASSIGN(const hub::Removed removed, hub::remove_model(cache, name));
  log::info("cache removed model=" + name.text() + " files=" + std::to_string(removed.files) +
            " bytes=" + std::to_string(removed.bytes));
  return {};
}

void PullDesk::tell(uint64_t number, const api::PullProgress& progress) {
  post_([this, number, progress, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    const auto task = tasks_.find(number);
    if (task == tasks_.end() || !task->second.progress) return;
    const Progress told = task->second.progress;  // It may end the task.
    told(progress);
  });
}

void PullDesk::finish(uint64_t number, const Result<void>& result) {
  post_([this, number, result, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    const auto task = tasks_.find(number);
    if (task == tasks_.end()) return;
    const Done done = std::move(task->second.done);
    tasks_.erase(task);
    done(result);
  });
}

}  // namespace weir
