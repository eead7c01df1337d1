#include "fit/assessment.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "program/expert_streaming.h"
#include "program/loaded_model.h"

namespace weir::fit {

namespace {

// A way that is worth less than this is none: a model whose floats are few stays as large.
constexpr double kWorthwhile = 0.9;

bool has_experts(const model::ModelSpec& spec) {
  return std::ranges::any_of(spec.sublayers, [](const model::Sublayer& sublayer) {
    return std::holds_alternative<model::Moe>(sublayer.op);
  });
}

int64_t weights(const ModelFootprint& model) { return model.packed_weights + model.mapped_weights; }

// One way, judged, and what a token costs in it.
struct Candidate {
  Fit fit;
  TokenCost cost;
  std::optional<ssd::ExpertLoad> load{};  // Of experts on disk, without their memory.
};

class Assessor {
 public:
  // `first`: of the model with the options as they are, its encoders of media included, which no
  // option changes.
  Assessor(const Options& options, const MemoryLimit& limit, const ModelChoice& choice,
           const MediaTowers& towers, ModelFootprint first)
      : options_(options),
        limit_(limit),
        choice_(choice),
        towers_(towers),
        first_(std::move(first)) {}

  // Judges the model as it is bound with these options. False: it does not run so.
  bool judge_bound(const Options& options, const model::Model& model, const ModelFootprint& taken,
                   std::string flags, bool less) {
    if (options.quantize != options_.quantize && weights(taken) > kWorthwhile * weights(first_))
      return false;
    Candidate candidate = {
        .fit = judge({.options = options, .model = taken, .flags = std::move(flags), .less = less},
                     limit_),
        .cost = token_cost(model.token_work(), taken, options.compute == model::Compute::kExact)};
    if (const ssd::ExpertCatalogue* experts = model.expert_catalogue())
      candidate.load = {.bank_bytes = experts->bank_bytes(),
                        .cycle_bytes = experts->cycle_bytes(model.experts_per_token()),
                        .token_bytes = model.token_work().weight_bytes};
    return add(std::move(candidate));
  }
  // The same of options that it has to be bound with first.
  bool judge_with(const Options& options, std::string flags, bool less) {
    const Result<std::unique_ptr<model::Model>> model =
        bind_model(choice_.model_card, model_options(options, choice_), limit_,
                   kernels::ops_for(choice_.isa), choice_.threads);
    if (!model) return false;
    const Result<ModelFootprint> taken = footprint(**model, choice_.kv_format, towers_);
    return taken && judge_bound(options, **model, *taken, std::move(flags), less);
  }
  bool judge_elsewhere(const Way& way) {
    return weights(way.model) < weights(first_) &&
           add({.fit = judge(way, limit_), .cost = {}, .load = {}});
  }

  Assessment best(const std::string& disk) const {
    std::vector<Fit> fits;
    for (const Candidate& candidate : candidates_) fits.push_back(candidate.fit);
    const Fit& fit = best_of(fits);
    const Candidate& best = candidates_[static_cast<size_t>(&fit - fits.data())];
    return {.fit = best.fit, .speed = speed_of(best, disk)};
  }

 private:
  bool add(Candidate candidate) {
    candidates_.push_back(std::move(candidate));
    return candidates_.back().fit.verdict != Verdict::kNo;
  }

  static std::optional<Speed> speed_of(const Candidate& candidate, const std::string& disk) {
    if (candidate.fit.verdict == Verdict::kNo || candidate.cost.weight_bytes == 0)
      return std::nullopt;
    if (candidate.load) {
      const auto machine = load_read_speed(disk);
      if (!machine) return std::nullopt;
      ssd::ExpertLoad load = *candidate.load;
      load.memory_bytes = static_cast<uint64_t>(candidate.fit.expert_bytes);
      return expected_speed(load, *machine);
    }
    const auto machine = load_machine_speed();
    if (!machine) return std::nullopt;
    return expected_speed(candidate.cost, *machine);
  }

  const Options& options_;
  const MemoryLimit& limit_;
  const ModelChoice& choice_;
  const MediaTowers& towers_;
  const ModelFootprint first_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Result<Assessment> assess(const Options& options, const MemoryLimit& limit,
                          const ModelChoice& choice, const model::Model& bound,
                          const MediaTowers& towers, std::span<const Way> elsewhere,
                          const std::string& disk) {
  WEIR_ASSIGN(const ModelFootprint first, footprint(bound, choice.kv_format, towers));
  Assessor assessor(options, limit, choice, towers, first);
  const auto runs_somehow = [&] {
    if (assessor.judge_bound(options, bound, first, "", false)) return true;
    if (!options.stream_experts && has_experts(bound.spec())) {
      Options streamed = options;
      streamed.stream_experts = true;
      if (assessor.judge_with(streamed, "--stream-experts", false)) return true;
    }
    if (choice.kv_format == kernels::FloatType::kF32) {
      Options halved = options;
      halved.kv_cache = kernels::FloatType::kF16;
      const Result<ModelFootprint> taken = footprint(bound, kernels::FloatType::kF16, towers);
      if (taken && assessor.judge_bound(halved, bound, *taken, "--kv-cache f16", true)) return true;
    }
    for (const Way& way : elsewhere)
      if (assessor.judge_elsewhere(way)) return true;
    for (const int32_t bits : {8, 4}) {
      if (options.quantize != 0) break;
      Options smaller = options;
      smaller.quantize = bits;
      if (assessor.judge_with(smaller, "--quantize " + std::to_string(bits), true)) return true;
    }
    return false;
  };
  (void)runs_somehow();
  return assessor.best(disk);
}

Result<Assessment> assess(const Options& options, const MemoryLimit& limit, const Found& found) {
  const auto assessed = [&]() -> Result<Assessment> {
    WEIR_ASSIGN(card::ModelCard card, card::ModelCard::open(found.files, options.config_override));
    WEIR_ASSIGN(const ModelChoice choice, choose_model(options, std::move(card)));
    WEIR_ASSIGN(const std::unique_ptr<model::Model> model,
                bind_model(choice.model_card, model_options(options, choice), limit,
                           kernels::ops_for(choice.isa), choice.threads));
    WEIR_ASSIGN(const MediaTowers towers,
                bind_media_towers(choice, kernels::ops_for(choice.isa), choice.threads));
    return assess(options, limit, choice, *model, towers, {}, found.disk);
  }();
  return assessed ? assessed : not_read(assessed.error());
}

Result<Assessment> not_read(const Error& error) {
  if (error.code != ErrorCode::kConfig && error.code != ErrorCode::kUnsupported)
    return tl::unexpected(error);
  return Assessment{.fit = unknown(error.message), .speed = {}};
}

}  // namespace weir::fit
