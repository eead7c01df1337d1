#include "api/models/model_pulls.h"

#include <memory>
#include <optional>
#include <utility>

namespace weir::api {

Result<void> ModelPulls::begin(const std::string& name) {
  if (hub_ == nullptr) return fail(ErrorCode::kUnsupported, "This server fetches no models.");
  const auto [pull, is_new] = pulls_.try_emplace(name, Pull{{.name = name}});
  if (!is_new) return {};
  // What is refused is refused before pull() returns.
  struct Beginning {
    bool over = false;
    std::optional<Error> refusal;
  };
  const auto beginning = std::make_shared<Beginning>();
  auto stop = hub_->pull(
      name, [this, name](const PullProgress& now) { progress(name, now); },
      [this, name, beginning](const Result<void>& result) {
        if (!beginning->over && !result)
          beginning->refusal = result.error();
        else
          end(name, result);
      });
  beginning->over = true;
  if (beginning->refusal) {
    pulls_.erase(name);
    return tl::unexpected(*beginning->refusal);
  }
  if (const auto running = pulls_.find(name); running != pulls_.end()) {
    running->second.stop = std::move(stop);
    listener_(PullStatus(running->second.status));
  }
  return {};
}

void ModelPulls::progress(const std::string& name, const PullProgress& now) {
  const auto pull = pulls_.find(name);
  if (pull == pulls_.end()) return;
  pull->second.status.bytes = now.bytes;
  pull->second.status.bytes_done = now.bytes_done;
  listener_(PullStatus(pull->second.status));
}

void ModelPulls::end(const std::string& name, const Result<void>& result) {
  const auto pull = pulls_.find(name);
  if (pull == pulls_.end()) return;
  PullStatus status = std::move(pull->second.status);
  pulls_.erase(pull);
  status.state = result ? PullStatus::State::kFinished : PullStatus::State::kFailed;
  if (!result) status.failure = result.error().message;
  listener_(status);
}

bool ModelPulls::stop(std::string_view name) {
  const auto pull = pulls_.find(name);
  if (pull == pulls_.end()) return false;
  const auto stop = std::move(pull->second.stop);
  PullStatus status = std::move(pull->second.status);
  pulls_.erase(pull);
  if (stop) stop();
  status.state = PullStatus::State::kFailed;
  status.failure = "The pull was ended.";
  listener_(status);
  return true;
}

void ModelPulls::stop_all() {
  for (const auto& [name, pull] : std::exchange(pulls_, {}))
    if (pull.stop) pull.stop();
}

std::vector<PullStatus> ModelPulls::list() const {
  std::vector<PullStatus> list;
  list.reserve(pulls_.size());
  for (const auto& [name, pull] : pulls_) list.push_back(pull.status);
  return list;
}

}  // namespace weir::api
