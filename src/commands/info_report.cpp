#include "commands/info_report.h"

#include <cstdio>
#include <string>

#include "base/byte_size.h"
#include "base/json.h"
#include "fit/fit_json.h"
#include "program/draft_sources.h"
#include "program/expert_streaming.h"
#include "program/kv_formats.h"
#include "program/prompt_cache.h"

namespace weir {

namespace {

int64_t tensor_bytes(const card::Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const card::StoredTensor& stored : checkpoint.tensors()) bytes += stored.tensor.bytes();
  return bytes;
}

void print_model(const ModelReport& r) {
  std::printf("%s\n%s\n", r.found.files.name().c_str(), model::describe(r.model.spec()).c_str());
  if (!r.found.here)
    std::printf("at the hub, commit %s: %s to fetch\n", r.found.commit.c_str(),
                human_bytes(r.found.file_bytes).c_str());
  if (r.model.cross_layers() > 0)
    std::printf("it transcribes: only /v1/audio/transcriptions and /v1/audio/translations\n");
  for (const std::string& change : r.options.config_override)
    std::printf("config.json is overridden: %s\n", change.c_str());
  std::printf("weights: %s\n", r.model.memory().formats.c_str());
  std::printf("weights read per token: %s; multiply-adds per token: %.1f M\n",
              human_bytes(r.model.token_work().weight_bytes).c_str(),
              static_cast<double>(r.model.token_work().macs) / 1e6);
  std::printf("kernels: %s on %s, %d threads, compute %s, kv %s\n\n",
              std::string(kernels::isa_name(r.choice.isa)).c_str(),
              kernels::processor_name().c_str(), r.choice.threads,
              std::string(word_of(r.choice.compute)).c_str(), r.choice.kv_format.name());
}

void print_plan(const MemoryPlan& plan) {
  std::printf("%-18s   %10s %10s\n", "memory plan", "taken", "at most");
  const auto print = [](const std::string& what, int64_t taken, int64_t bytes,
                        const std::string& note) {
    std::printf("  %-18s %10s %10s   %s\n", what.c_str(), human_bytes(taken).c_str(),
                human_bytes(bytes).c_str(), note.c_str());
  };
  for (const MemoryLine& line : plan.lines) print(line.what, line.taken, line.bytes, line.note);
  print("total", plan.taken, plan.total,
        "of " + human_bytes(plan.limit) + " (" + plan.limit_from + ")");
  std::printf("\n");
}

Result<void> print_experts(const model::Model& model, const MemoryPlan& plan) {
  const ssd::ExpertCatalogue* experts = model.expert_catalogue();
  if (experts == nullptr) return {};
  WEIR_ASSIGN(const ssd::StorePlan store,
              ssd::plan_store(*experts, static_cast<uint64_t>(plan.expert_bytes),
                              model.experts_per_token()));
  std::printf("experts: %s\nread from %s\n", expert_summary(model, store).c_str(),
              expert_source(model).c_str());
  const std::string warning = expert_warning(store);
  if (!warning.empty()) std::printf("warning: %s\n", warning.c_str());
  return {};
}

void print_limits(const MemoryPlan& plan) {
  std::printf("limits: context %d tokens, %d sequences at once, %lld tokens of KV cache\n",
              plan.context_max, plan.parallel,
              static_cast<long long>(plan.kv_pages) * kernels::kPageTokens);
  if (const std::string note = context_note(plan); !note.empty()) std::printf("%s\n", note.c_str());
}

void print_prompt_cache(const ModelReport& r) {
  std::printf("prompt cache on disk: %s\n",
              prompt_cache_note(r.options, r.footprint, r.model.spec().family).c_str());
}

void write_found(JsonWriter& w, const fit::Found& found) {
  w.field("model", found.files.name());
  if (!found.commit.empty()) w.field("commit", found.commit);
  w.field("here", found.here);
  if (!found.here) w.field("file_bytes", found.file_bytes);
}

void write_plan(JsonWriter& w, const MemoryPlan& plan) {
  w.begin_object().field("taken", plan.taken).field("total", plan.total);
  w.field("limit", plan.limit).field("limit_from", plan.limit_from);
  w.field("context", plan.context_max).field("parallel", plan.parallel);
  w.field("kv_tokens", int64_t{plan.kv_pages} * kernels::kPageTokens);
  w.key("lines").begin_array();
  for (const MemoryLine& line : plan.lines) {
    w.begin_object().field("what", line.what).field("taken", line.taken);
    w.field("bytes", line.bytes).field("note", line.note).end_object();
  }
  w.end_array().end_object();
}

void write_assessment(JsonWriter& w, const fit::Assessment& assessment) {
  w.key("fit");
  fit::write_json(w, assessment.fit);
  w.key("speed");
  if (assessment.speed)
    fit::write_json(w, *assessment.speed);
  else
    w.null();
}

}  // namespace

Result<void> print_info_text(const ModelReport& r) {
  print_model(r);
  if (r.plan) {
    print_plan(*r.plan);
    WEIR_TRY(print_experts(r.model, *r.plan));
    print_limits(*r.plan);
    std::printf("speculation: %s\n", describe_drafts(r.options, r.model).c_str());
    print_prompt_cache(r);
  }
  if (const std::string note = format_note(r.model, r.choice.kv_format); !note.empty())
    std::printf("%s\n", note.c_str());
  std::printf("%s\n", fit::describe(r.assessment.fit).c_str());
  if (r.assessment.speed)
    std::printf("expected: %s\n", fit::describe(*r.assessment.speed).c_str());
  else if (r.assessment.fit.verdict != fit::Verdict::kNo)
    std::printf("how fast: known after 'weir calibrate'%s\n",
                r.assessment.fit.experts > 0 ? " with --model DIR, on the disk that has it" : "");
  return {};
}

void print_info_json(const ModelReport& r) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  write_found(w, r.found);
  w.field("family", r.model.spec().family).field("weights", r.model.memory().formats);
  w.field("parameters", r.model.memory().parameters);
  w.field("tensor_bytes", tensor_bytes(*r.choice.model_card.tensors));
  w.field("context", r.model.spec().context_max);
  w.field("transcribes", r.model.cross_layers() > 0);
  w.field("isa", kernels::isa_name(r.choice.isa)).field("threads", r.choice.threads);
  w.field("compute", word_of(r.choice.compute)).field("kv", r.choice.kv_format.name());
  w.key("kv_token_bytes").begin_object();
  for (const FormatCost& cost : format_costs(r.model))
    w.field(cost.format.name(), cost.token_bytes);
  w.end_object();
  w.key("token").begin_object();
  w.field("weight_bytes", r.model.token_work().weight_bytes);
  w.field("macs", r.model.token_work().macs).end_object();
  w.key("footprint");
  fit::write_json(w, r.footprint);
  w.field("speculation", describe_drafts(r.options, r.model));
  w.key("plan");
  if (r.plan)
    write_plan(w, *r.plan);
  else
    w.null();
  write_assessment(w, r.assessment);
  w.end_object();
  std::printf("%s\n", out.c_str());
}

void print_unknown_json(const fit::Found& found, const fit::Assessment& assessment) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  write_found(w, found);
  write_assessment(w, assessment);
  w.end_object();
  std::printf("%s\n", out.c_str());
}

}  // namespace weir
