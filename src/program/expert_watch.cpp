#include "program/expert_watch.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "ssd/calibration.h"
#include "ssd/expert_metrics.h"
#include "ssd/expert_store.h"

namespace weir {

namespace {

// How often the disk's notices are logged, and what happened is summed up.
constexpr uint64_t kNoticeMs = 1000, kExpertLineMs = 60'000;

}  // namespace

void watch_experts(net::Loop& loop, api::Api& api, model::Model& model) {
  ssd::ExpertStore& store = *model.experts();
  const auto calibration = ssd::load_calibration(model.expert_catalogue()->main_file());
  api.set_more_metrics(
      [page = ssd::ExpertPage(store, calibration ? calibration->bytes_per_second : 0)](
          std::string& text) mutable { page.render(text); });
  loop.every(kNoticeMs, [&store] {
    while (const auto notice = store.take_notice()) log::warn("experts " + *notice);
  });
  loop.every(kExpertLineMs, [&store, minute = std::make_shared<ssd::ExpertMinute>()] {
    if (const std::string line = minute->line(store); !line.empty()) log::info("experts " + line);
  });
}

}  // namespace weir
