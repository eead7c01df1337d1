#include "program/model_choice.h"

#include <utility>

#include "base/thread_team.h"
#include "card/default_model.h"
#include "program/media_towers.h"

namespace weir {

Result<ModelChoice> choose_model(const Options& options) {
  WEIR_ASSIGN(card::ModelCard model_card,
              options.model.empty()
                  ? card::ModelCard::open(card::default_model(), options.config_override)
                  : card::ModelCard::open_folder(options.model, options.config_override));
  return choose_model(options, std::move(model_card));
}

Result<ModelChoice> choose_model(const Options& options, card::ModelCard model_card) {
  ModelChoice choice;
  choice.model_card = std::move(model_card);
  WEIR_ASSIGN(choice.isa, kernels::choose_isa(options.isa));
  choice.compute = options.compute;
  const kv::Format plain =
      choice.compute == model::Compute::kExact ? kv::Format::kF32 : kv::Format::kF16;
  choice.kv_format = options.kv_cache.value_or(options.turbo_kv ? kv::Format::kTq4 : plain);
  choice.threads = options.threads > 0 ? options.threads : ThreadTeam::usable_cores();
  WEIR_ASSIGN(choice.draft, choose_drafter(options, choice.model_card));
  return choice;
}

namespace {

std::optional<model::DraftOptions> draft_options(const Options& options,
                                                 const ModelChoice& choice) {
  if (!choice.draft.any()) return std::nullopt;
  const bool exact = choice.compute == model::Compute::kExact;
  return model::DraftOptions{.card = choice.draft.card.get(),
                             .drafts_max = options.num_draft_tokens,
                             .quantise_bits = exact ? 0 : options.draft_bits,
                             .vocabulary = options.draft_vocabulary};
}

}  // namespace

model::ModelOptions model_options(const Options& options, const ModelChoice& choice) {
  return {.compute = choice.compute,
          .rows_max = options.prefill_size + image_span_rows(choice.model_card),
          .draft_rows_max = options.speculative == Speculative::kOff ? 0 : kStateDraftsMax,
          .tape_tokens = options.speculative == Speculative::kOff ? 0 : options.num_draft_tokens,
          .context_max = options.ctx_size,
          .stream_experts = options.stream_experts,
          .quantise_bits = options.quantize,
          .adapter_rank = options.takes_adapters() ? options.max_lora_rank : 0,
          .draft = draft_options(options, choice)};
}

}  // namespace weir
