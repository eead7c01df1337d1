#include "commands/info.h"

#include <cstdio>
#include <string>

#include "base/byte_size.h"
#include "program/expert_streaming.h"
#include "program/loaded_model.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"

namespace weir {

Result<void> show_info(const Options& options) {
  const MemoryLimit limit = memory_limit(options);
  WEIR_ASSIGN(ModelChoice choice, choose_model(options));
  model::ModelOptions model_options;
  model_options.compute = choice.compute;
  model_options.rows_max = options.prefill_size;
  model_options.context_max = options.ctx_size;
  model_options.stream_experts = options.stream_experts;
  model_options.quantise_bits = options.quantize;
  WEIR_ASSIGN(const std::unique_ptr<model::Model> model,
              bind_model(choice.model_card, model_options, limit, kernels::ops_for(choice.isa),
                         choice.threads));
  std::printf("%s\n%s\n", choice.model_card.files.name().c_str(),
              model::describe(model->spec()).c_str());
  for (const std::string& change : options.config_override)
    std::printf("config.json is overridden: %s\n", change.c_str());
  std::printf("weights: %s\n", model->memory().formats.c_str());
  std::printf("weights read per token: %s; multiply-adds per token: %.1f M\n",
              human_bytes(model->token_work().weight_bytes).c_str(),
              static_cast<double>(model->token_work().macs) / 1e6);
  std::printf("kernels: %s on %s, %d threads, compute %s, kv %s\n\n",
              std::string(kernels::isa_name(choice.isa)).c_str(), kernels::processor_name().c_str(),
              choice.threads, std::string(word_of(choice.compute)).c_str(),
              choice.kv_type == kernels::FloatType::kF32 ? "f32" : "f16");
  // A plan that does not fit is an answer too: the error says by how much and what helps.
  WEIR_ASSIGN(const ModelFootprint needed, footprint(*model, choice.kv_type));
  WEIR_ASSIGN(const MemoryPlan plan, plan_memory(options, limit, needed));
  std::printf("%-18s   %10s %10s\n", "memory plan", "taken", "at most");
  const auto print = [](const std::string& what, int64_t taken, int64_t bytes,
                        const std::string& note) {
    std::printf("  %-18s %10s %10s   %s\n", what.c_str(), human_bytes(taken).c_str(),
                human_bytes(bytes).c_str(), note.c_str());
  };
  for (const MemoryLine& line : plan.lines) print(line.what, line.taken, line.bytes, line.note);
  print("total", plan.taken, plan.total,
        "of " + human_bytes(plan.limit) + " (" + plan.limit_from + "): it fits");
  std::printf("\n");
  if (const ssd::ExpertCatalogue* experts = model->expert_catalogue()) {
    WEIR_ASSIGN(const ssd::StorePlan store,
                ssd::plan_store(*experts, static_cast<uint64_t>(plan.expert_bytes),
                                model->experts_per_token()));
    std::printf("experts: %s\nread from %s\n", expert_summary(*model, store).c_str(),
                expert_source(*model).c_str());
    const std::string warning = expert_warning(store);
    if (!warning.empty()) std::printf("warning: %s\n", warning.c_str());
  }
  std::printf("limits: context %d tokens, %d sequences at once, %lld tokens of KV cache\n",
              plan.context_max, plan.parallel,
              static_cast<long long>(plan.kv_pages) * kernels::kPageTokens);
  if (const std::string note = context_note(plan); !note.empty()) std::printf("%s\n", note.c_str());
  return {};
}

}  // namespace weir
