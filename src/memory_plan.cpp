#include "memory_plan.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>

#include "api/memory_cost.h"
#include "base/cgroup.h"
#include "kernels/ops.h"
#include "ssd/expert_store.h"

namespace weir {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// What the program itself, the tokenizer, the thread stacks and the allocator's slack take:
// measured at 40 to 70 MiB for vocabularies of 8 to 150 thousand tokens.
constexpr int64_t kProgramBytes = 72 * kMiB;
// A connection's buffers while it is idle, its parser included.
constexpr int64_t kConnectionBytes = 2048;
// What OpenSSL holds beside it, measured 17 KiB of an idle session: its state and keys. Buffers are
// held only while they are used.
constexpr int64_t kTlsSessionBytes = 18 << 10;
// Without --max-connections; with TLS so many that they take about the same memory, 40 MiB.
constexpr int32_t kConnectionsDefault = 16384;
constexpr int32_t kTlsConnectionsDefault = kConnectionsDefault / 8;
// A request that waits or runs: prompt ids, token log, stream state. 64 KiB hold a prompt of 4,096
// ids and as many answered tokens with their log-probabilities.
constexpr int64_t kRequestBytes = 64 << 10;
// Without --max-body: enough for a few photographs in base64, and on small machines a hundredth of
// the memory, so that all bodies together (see plan_bodies) take a ninth.
constexpr int64_t kBodyDefaultMax = 32 * kMiB;
constexpr int64_t kBodyDefaultMin = kMiB;
constexpr int64_t kBodiesPerLimit = 100;
// Two of the largest may arrive at once: one that doubles its memory needs half again.
constexpr int64_t kArrivingBodies = 2;
// Large machines give more to bodies that arrive and are prepared: these shares, up to these sizes.
constexpr int64_t kArrivingShare = 64, kArrivingMax = 512 * kMiB;
constexpr int64_t kPreparingShare = 32, kPreparingMax = 1024 * kMiB;
// Without --responses-store: conversations of a few hundred turns; less where memory is short.
constexpr int64_t kResponsesMax = 64 * kMiB;
constexpr int64_t kResponsesShare = 64;
// Compiled grammars. Measured of an object of 24 to 48 properties (text, numbers, choices, lists of
// text): 186 to 387 KiB where all are required, 324 to 674 where any may be missing. Less where
// memory is short, where they are compiled again.
constexpr int64_t kAutomataMax = 64 * kMiB;
constexpr int64_t kAutomataShare = 64;
// Without --parallel: how many sequences may decode at once at the most, and how many tokens of KV
// each is planned with.
constexpr int32_t kParallelDefaultMax = 256;
constexpr int32_t kTokensPerSequence = 1024;
// Without --kv-memory: the cache is planned for at most this many full contexts.
constexpr int64_t kFullContextsMax = 64;
// Experts from disk: the catalogue (24 bytes for each of 9 ranges of an expert: 3 MiB of 15,000),
// the cache's tables, and the prefetcher's counts of transitions, at most 16 MiB.
constexpr int64_t kExpertTableBytes = 24 * kMiB;
// Without --kv-memory and --expert-memory: every expert that is in memory need not be read.
constexpr int64_t kKvShareBesideExperts = 8;

int64_t mem_available() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t value = 0;
  while (file >> key >> value >> unit)
    if (key == "MemAvailable:") return value << 10;
  return -1;
}

}  // namespace

std::string human_bytes(int64_t bytes) {
  char text[32];
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 1024) {
    std::snprintf(text, sizeof text, "%.0f KiB", kib);
  } else if (kib < 1024 * 1024) {
    std::snprintf(text, sizeof text, "%.0f MiB", kib / 1024);
  } else {
    std::snprintf(text, sizeof text, "%.1f GiB", kib / 1024 / 1024);
  }
  return text;
}

ModelFootprint footprint(const model::Model& model, kernels::FloatType kv_type) {
  const model::ModelMemory memory = model.memory();
  const ssd::ExpertCatalogue* experts = model.expert_catalogue();
  return {
      .packed_weights = memory.packed_weights,
      .mapped_weights = memory.mapped_weights,
      .scratch = memory.scratch,
      .page_bytes = kv::page_bytes(model.kv_shapes(), kv_type),
      .context_max = model.spec().context_max,
      .vocab_size = model.spec().vocab_size,
      .experts = experts == nullptr ? 0 : static_cast<int64_t>(ssd::whole_memory(*experts)),
      .expert_cycle = experts == nullptr
                          ? 0
                          : static_cast<int64_t>(experts->cycle_bytes(model.experts_per_token()))};
}

MemoryLimit memory_limit(const Options& options) {
  if (options.mem_limit > 0) return {options.mem_limit, "--mem-limit"};
  const int64_t available = mem_available(), cgroup = cgroup_memory_left();
  const bool in_cgroup = cgroup >= 0 && (available < 0 || cgroup < available);
  const int64_t free = in_cgroup ? cgroup : available;
  if (free < 0) return {std::numeric_limits<int64_t>::max() / 4, "unknown"};
  return {free / 10 * 9, in_cgroup ? "cgroup" : "MemAvailable"};
}

BodyPlan plan_bodies(const Options& options, const MemoryLimit& limit) {
  BodyPlan plan;
  plan.largest = options.max_body > 0
                     ? options.max_body
                     : std::clamp(limit.bytes / kBodiesPerLimit, kBodyDefaultMin, kBodyDefaultMax);
  plan.arriving = std::max(kArrivingBodies * plan.largest,
                           std::min(limit.bytes / kArrivingShare, kArrivingMax));
  plan.preparing = std::max(static_cast<int64_t>(api::kPreparingPerByte) * plan.largest,
                            std::min(limit.bytes / kPreparingShare, kPreparingMax));
  return plan;
}

int32_t plan_connections(const Options& options) {
  if (options.max_connections > 0) return options.max_connections;
  return options.tls_cert.empty() ? kConnectionsDefault : kTlsConnectionsDefault;
}

namespace {

// For the KV cache, whether there is room for it or not: what it was told to have, else a share of
// what is left, but at least one whole context and at most as many as are of use.
int64_t wanted_kv_bytes(const Options& options, const ModelFootprint& model, int64_t left,
                        int64_t context_bytes) {
  if (options.kv_memory > 0) return options.kv_memory;
  const bool experts_wait = model.experts > 0 && options.expert_memory == 0;
  const int64_t share = experts_wait ? left / kKvShareBesideExperts : left / 2;
  return std::min(context_bytes * kFullContextsMax, std::max(share, context_bytes));
}

// Why the KV cache finds no room beside all that is planned, how much is missing, and what helps.
tl::unexpected<Error> no_room(const Options& options, const MemoryPlan& plan,
                              int64_t context_bytes) {
  const std::string context = "one sequence of " + std::to_string(plan.context_max) + " tokens";
  if (options.kv_memory > 0 && options.kv_memory < context_bytes)
    return fail(ErrorCode::kCapacity,
                "--kv-memory: expected at least " + human_bytes(context_bytes) + " for " + context +
                    ", found " + human_bytes(options.kv_memory) + " (a smaller --ctx-size helps)");
  const int64_t kv = std::max(options.kv_memory, context_bytes);
  const bool told = kv > context_bytes;
  return fail(ErrorCode::kCapacity,
              "not enough memory: the KV cache takes " + human_bytes(kv) + " (" +
                  (told ? "--kv-memory" : context) + ") and all else " + human_bytes(plan.total) +
                  ", which is " + human_bytes(plan.total + kv - plan.limit) + " more than the " +
                  human_bytes(plan.limit) + " that " + plan.limit_from + " allows (a smaller " +
                  (told ? "--kv-memory" : "--ctx-size") +
                  (options.expert_memory > 0 ? ", --expert-memory" : "") +
                  ", --max-body or --queue helps, or a larger --mem-limit)");
}

}  // namespace

Result<MemoryPlan> plan_memory(const Options& options, const MemoryLimit& limit,
                               const ModelFootprint& model) {
  MemoryPlan plan;
  plan.limit = limit.bytes;
  plan.limit_from = limit.from;
  if (options.ctx_size > model.context_max)
    return fail(ErrorCode::kConfig, "--ctx-size: the model was made for at most " +
                                        std::to_string(model.context_max) + " positions; found " +
                                        std::to_string(options.ctx_size));
  plan.context_max = options.ctx_size > 0 ? options.ctx_size : model.context_max;

  const auto add = [&plan](std::string what, int64_t bytes, std::string note) {
    plan.lines.push_back({std::move(what), bytes, std::move(note)});
    plan.total += bytes;
  };
  add("weights, packed", model.packed_weights, "anonymous memory, kernel layout");
  add("weights, mapped", model.mapped_weights, "read in place from the file");
  add("step scratch", model.scratch, "activations and logits of one step");
  // One request with all its context and alternatives must fit, whatever the queue.
  const auto longest =
      static_cast<int64_t>(api::request_bytes(0, plan.context_max, sched::kTopLogprobsMax));
  plan.request_bytes = std::max(kRequestBytes * options.queue, longest);
  add("requests", plan.request_bytes, std::to_string(options.queue) + " at most");
  plan.bodies = plan_bodies(options, limit);
  add("bodies", plan.bodies.arriving + plan.bodies.preparing,
      "arriving and being prepared, each " + human_bytes(plan.bodies.largest) + " at most");
  plan.responses_bytes = options.responses_store >= 0
                             ? options.responses_store
                             : std::min(limit.bytes / kResponsesShare, kResponsesMax);
  add("responses", plan.responses_bytes, "stored, to be continued");
  plan.automata_bytes = std::min(limit.bytes / kAutomataShare, kAutomataMax);
  add("grammars", plan.automata_bytes + static_cast<int64_t>(api::trie_bytes(model.vocab_size)),
      "compiled " + human_bytes(plan.automata_bytes) + " at most, and two tries of " +
          std::to_string(model.vocab_size) + " tokens");
  const int64_t each = kConnectionBytes + (options.tls_cert.empty() ? 0 : kTlsSessionBytes);
  const int32_t connections = plan_connections(options);
  add("connections", each * connections, std::to_string(connections) + " at most");
  add("program", kProgramBytes, "code, tokenizer, stacks, allocator");
  if (model.experts > 0) add("expert tables", kExpertTableBytes, "where they are, what to guess");
  // Without --expert-memory experts get what the KV cache leaves.
  if (options.expert_memory > 0) {
    plan.expert_bytes = std::min(options.expert_memory, model.experts);
    add("experts", plan.expert_bytes, "of " + human_bytes(model.experts) + " on disk");
  }

  const int64_t left = limit.bytes - plan.total;
  const int64_t context_pages =
      (plan.context_max + kernels::kPageTokens - 1) / kernels::kPageTokens;
  const int64_t kv_bytes = wanted_kv_bytes(options, model, left, context_pages * model.page_bytes);
  const int64_t pages = kv_bytes / std::max<int64_t>(1, model.page_bytes);
  if (kv_bytes > left || pages < context_pages)
    return no_room(options, plan, context_pages * model.page_bytes);
  plan.kv_pages =
      static_cast<int32_t>(std::min<int64_t>(pages, std::numeric_limits<int32_t>::max() / 2));
  add("KV cache", plan.kv_pages * model.page_bytes,
      std::to_string(plan.kv_pages) + " pages of 32 tokens");
  if (model.experts > 0 && options.expert_memory == 0) {
    plan.expert_bytes = std::min(limit.bytes - plan.total, model.experts);
    add("experts", plan.expert_bytes, "of " + human_bytes(model.experts) + " on disk");
  }
  plan.parallel = options.parallel > 0
                      ? options.parallel
                      : static_cast<int32_t>(std::clamp<int64_t>(
                            int64_t{plan.kv_pages} * kernels::kPageTokens / kTokensPerSequence, 1,
                            kParallelDefaultMax));
  // Every running sequence must fit one step with one token, and prompts need room beside them:
  // else a server that is full of answers would never begin another.
  plan.parallel = std::min(plan.parallel, options.prefill_size / 2);
  return plan;
}

}  // namespace weir
