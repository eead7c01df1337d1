#include "program/memory_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "api/memory/memory_cost.h"
#include "api/vectors/embedding_request.h"
#include "base/byte_size.h"
#include "base/fair_budget.h"
#include "kernels/ops.h"
#include "kv/checkpoints.h"
#include "kv/disk/disk_cache.h"
#include "kv/kv_cost.h"
#include "program/draft_sources.h"
#include "program/prompt_cache.h"
#include "sched/answer_drafts.h"
#include "sched/engine.h"
#include "ssd/expert_store.h"

namespace weir {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int32_t kPageTokens = kernels::kPageTokens;

// What the program itself, the tokenizer, the thread stacks and the allocator's slack take:
// measured at 40 to 70 MiB for vocabularies of 8 to 150 thousand tokens. Lines of the log that wait
// to be written are at most 1 MiB of it (base/log_writer.h).
constexpr int64_t kProgramBytes = 72 * kMiB;
// A request that waits or runs: prompt ids, token log, stream state. 64 KiB hold a prompt of 4,096
// ids and as many answered tokens with their log-probabilities.
constexpr int64_t kRequestBytes = 64 << 10;
// Tokens of all inputs of one request for embeddings: OpenAI's limit.
constexpr size_t kEmbeddingTokens = 300'000;
// Without --responses-store: conversations of a few hundred turns; less where memory is short.
constexpr int64_t kResponsesMax = 64 * kMiB;
constexpr int64_t kResponsesShare = 64;
// Compiled grammars. Measured of an object of 24 to 48 properties (text, numbers, choices, lists of
// text): 186 to 387 KiB where all are required, 324 to 674 where any may be missing. Less where
// memory is short, where they are compiled again.
constexpr int64_t kAutomataMax = 64 * kMiB;
constexpr int64_t kAutomataShare = 64;
// Texts of earlier answers, of 640 KiB each: a million tokens of sixteen callers with keys; less
// where memory is short.
constexpr int32_t kAnswerTextsMax = 16;
constexpr int64_t kAnswersShare = 256;
// Without --parallel: how many sequences may decode at once at the most, and how many tokens of KV
// each is planned with.
constexpr int32_t kParallelDefaultMax = 256;
constexpr int32_t kTokensPerSequence = 1024;
// With windows each is planned with so many of the widest, because models have them for the sake of
// long texts: then the windows of all take a third of the pages that whole contexts would. But so
// many as these may decode at once all the same.
constexpr int64_t kWindowsPerSequence = 4;
constexpr int64_t kWindowedLeast = 8;
// Of the memory of keys, values and states, what checkpoints may take at the most: the other parts
// are what they are of use for.
constexpr int64_t kCheckpointsShare = 4;
// And as many as these for each running sequence beside those on the way through all pages: ends of
// its prompt and its answer, and of as many others that may go on.
constexpr int64_t kCheckpointsPerSequence = 4;
// Without --kv-memory: the cache is planned for at most this many full contexts.
constexpr int64_t kFullContextsMax = 64;
// Experts from disk: the catalogue (24 bytes for each of 9 ranges of an expert: 3 MiB of 15,000),
// the cache's tables, and the prefetcher's counts of transitions, at most 16 MiB.
constexpr int64_t kExpertTableBytes = 24 * kMiB;
// Adapters' memory comes in pages of 2 MiB, and some bring whole weights besides.
constexpr int64_t kAdaptersLeast = 64 * kMiB;
// Beside other models, what is of one model and is otherwise counted in the program's line: the
// tables of its tokenizer. That line's measurements differ by 30 MiB over 142 thousand tokens.
constexpr int64_t kTextBytesPerToken = 222;
// The part of the memory that is left which a model's keys and values, or its experts, take beside
// other models.
constexpr int64_t kPartBesideModels = 4;
// Experts from disk beside other models: the ranges that one token needs, several times over.
constexpr int64_t kExpertsLeast = int64_t{1} << 30;
constexpr int64_t kExpertCyclesLeast = 8;
// Requests are planned for before it is known whose they are: for contexts and vectors so large.
constexpr int32_t kContextAssumed = 128 << 10;
constexpr int32_t kHiddenAssumed = 8192;
// Without --kv-memory and --expert-memory: every expert that is in memory need not be read.
constexpr int64_t kKvShareBesideExperts = 8;

}  // namespace

Result<void> take_kv(exec::Executor& executor, kv::MemoryLayout layout, const MemoryPlan& plan) {
  Result<void> taken =
      executor.take_memory(std::move(layout), plan.kv_page_counts,
                           {.running = plan.parallel,
                            .checkpoints = plan.checkpoints,
                            .cross = plan.cross_slots});
  if (!taken && taken.error().code == ErrorCode::kCapacity)
    return fail(ErrorCode::kCapacity,
                "KV cache: " + taken.error().message +
                    ": the system does not let this process reserve so much (a smaller "
                    "--kv-memory helps; see ulimit -v and vm.overcommit_memory)");
  return taken;
}

namespace {

bool keeps_on_disk(const Options& options, const ModelFootprint& model) {
  return options.disk_cache > 0 && options.prefix_cache && prompt_cache_refusal(model, {}).empty();
}

// As an option takes it, and no less.
std::string option_bytes(int64_t bytes) { return std::to_string((bytes + kMiB - 1) / kMiB) + "M"; }

// A plan is made for a context; without --ctx-size, for the longest that has room.
class Planner {
 public:
  // `process`: of several models; null: this one is the only one. `others`: bytes that others take.
  Planner(const Options& options, const MemoryLimit& limit, const ModelFootprint& model,
          const ProcessPlan* process = nullptr, int64_t others = 0)
      : options_(options),
        limit_(limit),
        model_(model),
        process_(process),
        others_(others),
        kv_cost_(model.kv_groups, model.state_bytes + model.cross_bytes,
                 std::max(options.prefill_size, model.span_rows_max) + model.slab_rows,
                 keeps_on_disk(options, model) ? kv::disk::loads_at_once(prompt_cache_shape(model))
                                               : 0) {}

  Result<MemoryPlan> plan() const;
  ContextNeed need(int32_t context, int32_t sequences) const;
  // Of this model alone.
  int64_t least() const;
  // The longest context that fits, in whole pages but for the longest asked for; 0: not one page.
  int32_t longest(int32_t context_max, bool leaves_experts) const;

 private:
  MemoryPlan without_kv(int32_t context) const;
  void add_process(MemoryPlan& plan) const;
  void add_tables(MemoryPlan& plan) const;
  void add_kv(MemoryPlan& plan) const;
  void choose_pages(MemoryPlan& plan, int64_t bytes) const;
  int32_t checkpoints_within(int64_t bytes, int32_t context, int64_t blocks, int32_t running) const;
  bool experts_wait() const { return model_.experts > 0 && options_.expert_memory == 0; }
  // Experts that get what is left shall have half of it; but a size that was asked for stands.
  int64_t share() const {
    if (options_.kv_memory > 0) return 1;
    if (process_ != nullptr) return kPartBesideModels;
    return experts_wait() ? 2 : 1;
  }
  // What experts from disk are of use with.
  int64_t least_experts() const {
    return std::min(model_.experts,
                    std::max(kExpertsLeast, kExpertCyclesLeast * model_.expert_cycle));
  }
  int32_t least_context() const {
    const bool shares = process_ != nullptr && options_.kv_memory == 0;
    return std::min(model_.context_max, shares ? kSharedContext : kContextLeast);
  }
  // Every running sequence must fit one step with one token, and prompts need room beside them:
  // else a server that is full of answers would never begin another.
  int32_t most_running() const {
    return std::min(options_.parallel > 0 ? options_.parallel : kParallelDefaultMax,
                    options_.prefill_size / 2);
  }
  // Of whole sequences, with the windows and states of the fewest that run beside one.
  int64_t context_bytes(int32_t context, int32_t sequences = 1) const {
    const int64_t least = options_.parallel > 0 ? options_.parallel : kWindowedLeast;
    return kv_cost_.bytes(sequences * kv::blocks_for(context),
                          static_cast<int32_t>(std::min<int64_t>(least, most_running())));
  }
  // What keys and values may take at the most, beside what is planned already.
  int64_t kv_room(const MemoryPlan& plan) const {
    const int64_t left = limit_.bytes - plan.total;
    return options_.kv_memory > 0 && options_.kv_memory <= left ? options_.kv_memory : left;
  }
  bool fits(int32_t context) const;
  Result<int32_t> choose_context() const;
  tl::unexpected<Error> no_room(int32_t context) const;

  const Options& options_;
  const MemoryLimit& limit_;
  const ModelFootprint& model_;
  const ProcessPlan* const process_;
  const int64_t others_;
  const kv::KvCost kv_cost_;
};

template <class Plan>
void add(Plan& plan, std::string what, int64_t taken, int64_t bytes, std::string note) {
  plan.taken += taken;
  plan.total += bytes;
  plan.lines.push_back({std::move(what), taken, bytes, std::move(note)});
}

// All but keys and values, and experts that get what those leave.
MemoryPlan Planner::without_kv(int32_t context) const {
  MemoryPlan plan;
  plan.limit = limit_.bytes;
  plan.limit_from = limit_.from;
  plan.context_max = context;
  if (process_ != nullptr) {
    add(plan, "process", process_->taken, process_->total, "whatever models are loaded");
    add(plan, "other models", others_, others_, "at most");
    plan.request_bytes = process_->request_bytes;
    plan.bodies = process_->bodies;
    plan.responses_bytes = process_->responses_bytes;
    plan.image_bytes = process_->image_bytes;
  }
  add(plan, "weights, packed", model_.packed_weights, model_.packed_weights,
      "anonymous memory, kernel layout");
  add(plan, "weights, mapped", model_.mapped_weights, model_.mapped_weights,
      "read in place from the file");
  add(plan, "step scratch", 0, model_.scratch, "activations and logits of one step");
  if (model_.image_tower > 0) {
    add(plan, "image tower", model_.image_tower, model_.image_tower, "weights");
    add(plan, "image scratch", 0, model_.image_scratch, "activations of the largest picture");
  }
  if (model_.sound_encoder > 0) {
    add(plan, "sound encoder", model_.sound_encoder, model_.sound_encoder, "weights");
    add(plan, "sound scratch", 0, model_.sound_scratch, "activations of the longest sound");
  }
  if (model_.cross_bytes > 0)
    add(plan, "sound in the making", 0, model_.cross_bytes + model_.encoded_bytes,
        "what the encoder gives of one sound, and what layers keep of it");
  else if (model_.takes_media())
    add(plan, "image cache", 0, options_.image_cache,
        "features of pictures and sounds (--image-cache)");
  if (options_.takes_adapters()) {
    plan.adapter_bytes = std::max(options_.adapters_max() * model_.adapter, kAdaptersLeast);
    add(plan, "adapters", 0, plan.adapter_bytes,
        std::to_string(options_.adapters_max()) + " of rank " +
            std::to_string(options_.max_lora_rank) + " at most");
  }
  if (drafts_copies(options_)) {
    const int64_t texts = limit_.bytes / kAnswersShare / sched::AnswerDrafts::memory_bytes(1);
    plan.answer_texts = static_cast<int32_t>(std::clamp<int64_t>(texts, 1, kAnswerTextsMax));
    add(plan, "drafts", 0, sched::AnswerDrafts::memory_bytes(plan.answer_texts),
        "earlier answers, to copy from");
  }
  add_tables(plan);
  if (process_ == nullptr) add_process(plan);
  if (keeps_on_disk(options_, model_))
    add(plan, "disk cache", 0,
        kv::disk::cache_memory(prompt_cache_shape(model_), options_.disk_cache),
        "buffers, and the index of " + human_bytes(options_.disk_cache));
  if (model_.experts > 0)
    add(plan, "expert tables", kExpertTableBytes, kExpertTableBytes,
        "where they are, what to guess");
  if (options_.expert_memory > 0 && model_.experts > 0) {
    plan.expert_bytes = std::min(options_.expert_memory, model_.experts);
    add(plan, "experts", plan.expert_bytes, plan.expert_bytes,
        "of " + human_bytes(model_.experts) + " on disk");
  }
  return plan;
}

// What is taken whichever models there are. `context` and `hidden_size`: of the largest requests.
template <class Plan>
void add_images(Plan& plan, const Options& options, const MemoryLimit& limit, bool several) {
  plan.image_bytes = plan_images(options, limit, several);
  add(plan, "images", 0, plan.image_bytes, "of requests, and sounds, until the model has taken them in");
}

template <class Plan>
void add_shared(Plan& plan, const Options& options, const MemoryLimit& limit, int32_t context,
                int32_t hidden_size) {
  // One request with all its context and alternatives must fit, whatever the queue, and one for as
  // many embeddings as there may be.
  const size_t largest =
      std::max(api::request_bytes(0, context, sched::kTopLogprobsMax),
               api::embeddings_bytes(api::vectors::kEmbeddingInputsMax, kEmbeddingTokens,
                                     static_cast<size_t>(hidden_size)));
  plan.request_bytes =
      std::max(kRequestBytes * options.queue, static_cast<int64_t>(FairBudget::size_for(largest)));
  add(plan, "requests", 0, plan.request_bytes, std::to_string(options.queue) + " at most");
  plan.bodies = plan_bodies(options, limit);
  add(plan, "bodies", 0, plan.bodies.arriving + plan.bodies.small + plan.bodies.preparing,
      "arriving and being prepared, each " + human_bytes(plan.bodies.largest) + " at most");
  plan.responses_bytes = options.responses_store >= 0
                             ? options.responses_store
                             : std::min(limit.bytes / kResponsesShare, kResponsesMax);
  add(plan, "responses", 0, plan.responses_bytes, "stored, to be continued");
  add(plan, "connections", 0, connection_bytes(options),
      std::to_string(plan_connections(options)) + " at most");
  add(plan, "heads", 0, plan_heads(options, limit), "of requests, as they are read");
  add(plan, "answers", 0, plan_answers(limit), "that clients have not taken yet");
  add(plan, "program", kProgramBytes, kProgramBytes, "code, tokenizer, stacks, allocator");
}

void Planner::add_process(MemoryPlan& plan) const {
  add_shared(plan, options_, limit_, plan.context_max, model_.hidden_size);
  if (model_.takes_media()) add_images(plan, options_, limit_, /*several=*/false);
}

// Of this model, beside its weights and what sequences remember.
void Planner::add_tables(MemoryPlan& plan) const {
  const int32_t parallel = options_.parallel > 0 ? options_.parallel : kParallelDefaultMax;
  const int64_t tables = int64_t{sched::sequences_max(options_.queue, parallel)} *
                         kv::blocks_for(plan.context_max) * std::ssize(model_.kv_groups) *
                         int64_t{sizeof(kv::PageId)};
  add(plan, "sequences", 0, tables, "which pages each has");
  plan.automata_bytes = std::min(limit_.bytes / kAutomataShare, kAutomataMax);
  add(plan, "grammars", 0,
      plan.automata_bytes + static_cast<int64_t>(api::trie_bytes(model_.vocab_size)),
      "compiled " + human_bytes(plan.automata_bytes) + " at most, and two tries of " +
          std::to_string(model_.vocab_size) + " tokens");
  if (process_ == nullptr) return;
  const int64_t text = model_.vocab_size * kTextBytesPerToken;
  add(plan, "tokenizer", text, text, std::to_string(model_.vocab_size) + " tokens");
}

bool Planner::fits(int32_t context) const {
  return context_bytes(context) <= kv_room(without_kv(context));
}

ContextNeed Planner::need(int32_t context, int32_t sequences) const {
  const MemoryPlan plan = without_kv(context);
  const int64_t wanted = context_bytes(context, sequences);
  const int64_t bytes = plan.total + std::max(wanted, options_.kv_memory);
  return {.bytes = bytes, .fits = bytes <= limit_.bytes && wanted <= kv_room(plan)};
}

int64_t Planner::least() const {
  const int32_t context = options_.ctx_size > 0 ? options_.ctx_size : least_context();
  return need(context, 1).bytes + (experts_wait() ? least_experts() : 0) - process_->total -
         others_;
}

int32_t Planner::longest(int32_t context_max, bool leaves_experts) const {
  const auto good = [&](int32_t context) {
    return context_bytes(context) <= kv_room(without_kv(context)) / (leaves_experts ? share() : 1);
  };
  if (good(context_max)) return context_max;
  int32_t fits = 0, too_long = kv::blocks_for(context_max);
  while (too_long - fits > 1) {
    const int32_t middle = fits + (too_long - fits) / 2;
    (good(middle * kPageTokens) ? fits : too_long) = middle;
  }
  return fits * kPageTokens;
}

Result<int32_t> Planner::choose_context() const {
  if (options_.ctx_size > model_.context_max)
    return fail(ErrorCode::kConfig, "--ctx-size: the model was made for at most " +
                                        std::to_string(model_.context_max) + " positions; found " +
                                        std::to_string(options_.ctx_size));
  if (options_.ctx_size > 0) {
    if (!fits(options_.ctx_size)) return no_room(options_.ctx_size);
    return options_.ctx_size;
  }
  const int32_t least = least_context();
  const int32_t context = longest(model_.context_max, /*leaves_experts=*/true);
  if (context >= least) return context;
  if (!fits(least)) return no_room(least);
  return least;
}

// Why the KV cache finds no room for a context beside all that is planned, how much is missing, and
// what helps.
tl::unexpected<Error> Planner::no_room(int32_t context) const {
  const MemoryPlan plan = without_kv(context);
  const std::string sequence = "one sequence of " + std::to_string(context) + " tokens";
  const int64_t needed = context_bytes(context);
  const int32_t longest_context = longest(context, /*leaves_experts=*/false);
  const std::string helps = longest_context > 0 ? "--ctx-size " + std::to_string(longest_context) +
                                                      " is the largest that fits"
                                                : "no --ctx-size would fit";
  if (options_.kv_memory > 0 && options_.kv_memory < needed)
    return fail(ErrorCode::kCapacity, "--kv-memory: expected at least " + human_bytes(needed) +
                                          " for " + sequence + ", found " +
                                          human_bytes(options_.kv_memory) + " (" + helps + ")");
  return fail(ErrorCode::kCapacity,
              "not enough memory: the KV cache takes " + human_bytes(needed) + " (" + sequence +
                  ") and all else " + human_bytes(plan.total) + ", which is " +
                  human_bytes(plan.total + needed - plan.limit) + " more than the " +
                  human_bytes(plan.limit) + " that " + plan.limit_from + " allows (" + helps +
                  "; a smaller " + (options_.expert_memory > 0 ? "--expert-memory, " : "") +
                  "--max-body or --queue helps, or a larger --mem-limit)");
}

// Keys and values get what they were told to have; else all that is left, as far as it is of use:
// they take it when it is used, and give it back. Experts from disk take all they get at once.
void Planner::add_kv(MemoryPlan& plan) const {
  const int64_t room = kv_room(plan);
  int64_t bytes = options_.kv_memory;
  if (bytes == 0) {
    const int64_t share = process_ != nullptr ? room / kPartBesideModels
                          : experts_wait()    ? room / kKvShareBesideExperts
                                              : room;
    bytes = std::min(room, std::max(share, context_bytes(plan.context_max)));
  }
  choose_pages(plan, bytes);
  for (size_t g = 0; g < plan.kv_page_counts.size(); ++g) {
    const int32_t pages = plan.kv_page_counts[g];
    const kv::MemoryLayout::Group& group = model_.kv_groups[g];
    const std::string coded =
        model_.kv_format.coded() ? std::string(" in ") + model_.kv_format.name() : "";
    const std::string of =
        g == 0      ? " pages of 32 tokens" + coded + ", as they are used"
        : group.hot ? " pages in f16, until 32 tokens are complete"
                    : " pages for windows of " + std::to_string(group.window) + " tokens";
    add(plan,
        g == 0      ? "KV cache"
        : group.hot ? "KV in the making"
                    : "KV windows",
        0, kv_cost_.bytes_of(g, pages), std::to_string(pages) + of);
  }
  plan.state_bytes = model_.state_bytes;
  const bool lacks_checkpoints = options_.prefix_cache && plan.checkpoints == 0;
  if (plan.state_bytes > 0)
    add(plan, "states", 0, plan.parallel * plan.state_bytes,
        std::to_string(plan.parallel) + " sequences, each " + human_bytes(plan.state_bytes) +
            (lacks_checkpoints ? "; no room for checkpoints: prompts share nothing" : ""));
  if (model_.cross_bytes > 0) {
    plan.cross_slots = plan.parallel + 1;  // One is in the making.
    add(plan, "sounds heard", 0, plan.parallel * model_.cross_bytes,
        std::to_string(plan.parallel) + " sounds, each " + human_bytes(model_.cross_bytes));
  }
  if (plan.checkpoints > 0)
    add(plan, "checkpoints", 0, plan.checkpoints * plan.state_bytes,
        std::to_string(plan.checkpoints) + " of states, for the prefix cache");
}

// A whole context goes before them, and where all fits there is no use for more than a text can
// have.
int32_t Planner::checkpoints_within(int64_t bytes, int32_t context, int64_t blocks,
                                    int32_t running) const {
  if (model_.state_bytes == 0 || !options_.prefix_cache) return 0;
  const int64_t spare = bytes - kv_cost_.bytes(context, running);
  const int64_t useful =
      blocks * kPageTokens / kv::kCheckpointTokens + kCheckpointsPerSequence * running;
  return static_cast<int32_t>(std::clamp(
      std::min(spare, bytes / kCheckpointsShare) / model_.state_bytes, int64_t{0}, useful));
}

// Each sequence that runs has pages of windows and a state of its own, which are no use to longer
// contexts. So fewer run at once, unless a number was asked for, where a whole context would not
// fit beside them, or windows would take most.
void Planner::choose_pages(MemoryPlan& plan, int64_t bytes) const {
  const int32_t context = kv::blocks_for(plan.context_max);
  const int64_t blocks_max =
      options_.kv_memory > 0 ? std::numeric_limits<int32_t>::max() : context * kFullContextsMax;
  const int32_t window = model_.kv_groups.size() > 1 ? model_.kv_groups[1].window : 0;
  const int64_t each = std::max<int64_t>(kTokensPerSequence, kWindowsPerSequence * window);
  const auto running = [&] {
    const int64_t tokens = int64_t{plan.kv_pages} * kPageTokens;
    return std::max(
        {tokens / each, std::min(tokens / kTokensPerSequence, kWindowedLeast), int64_t{1}});
  };
  const auto run = [&](int32_t sequences) {
    plan.parallel = sequences;
    plan.checkpoints = checkpoints_within(bytes, context, blocks_max, sequences);
    const int64_t rest = bytes - plan.checkpoints * model_.state_bytes;
    plan.kv_pages = static_cast<int32_t>(
        std::min<int64_t>(kv_cost_.blocks_within(rest, sequences), blocks_max));
  };
  run(most_running());
  while (options_.parallel == 0 && plan.parallel > 1 &&
         (plan.kv_pages < context || plan.parallel > running()))
    run(plan.parallel - 1);
  plan.kv_page_counts = kv_cost_.page_counts(plan.kv_pages, plan.parallel);
}

Result<MemoryPlan> Planner::plan() const {
  WEIR_ASSIGN(const int32_t context, choose_context());
  MemoryPlan plan = without_kv(context);
  if (options_.kv_memory > limit_.bytes - plan.total)
    return fail(ErrorCode::kCapacity,
                "not enough memory: --kv-memory is " + human_bytes(options_.kv_memory) +
                    " and all else " + human_bytes(plan.total) + ", which is " +
                    human_bytes(plan.total + options_.kv_memory - plan.limit) + " more than the " +
                    human_bytes(plan.limit) + " that " + plan.limit_from +
                    " allows (a smaller --kv-memory helps, or a larger --mem-limit)");
  if (options_.ctx_size == 0 && context < model_.context_max) {
    plan.context_wanted = model_.context_max;
    const int64_t needed = context_bytes(model_.context_max);
    plan.context_lacks =
        std::max<int64_t>(0, std::max(share() * needed, options_.kv_memory) +
                                 without_kv(model_.context_max).total - limit_.bytes);
    if (options_.kv_memory > 0 && options_.kv_memory < needed) plan.context_kv_memory = needed;
  }
  add_kv(plan);
  if (experts_wait()) {
    int64_t left = limit_.bytes - plan.total;
    if (process_ != nullptr) left = std::max(least_experts(), left / kPartBesideModels);
    plan.expert_bytes = std::min({left, limit_.bytes - plan.total, model_.experts});
    add(plan, "experts", plan.expert_bytes, plan.expert_bytes,
        "of " + human_bytes(model_.experts) + " on disk");
  }
  plan.model_bytes = plan.total - others_ - (process_ != nullptr ? process_->total : 0);
  return plan;
}

}  // namespace

ProcessPlan plan_process(const Options& options, const MemoryLimit& limit) {
  ProcessPlan plan;
  add_shared(plan, options, limit, kContextAssumed, kHiddenAssumed);
  add_images(plan, options, limit, /*several=*/true);
  return plan;
}

Result<MemoryPlan> plan_model(const Options& options, const MemoryLimit& limit,
                              const ProcessPlan& process, int64_t others,
                              const ModelFootprint& model) {
  return Planner(options, limit, model, &process, others).plan();
}

int64_t least_model_bytes(const Options& options, const MemoryLimit& limit,
                          const ProcessPlan& process, const ModelFootprint& model) {
  return Planner(options, limit, model, &process).least();
}

Result<MemoryPlan> plan_memory(const Options& options, const MemoryLimit& limit,
                               const ModelFootprint& model) {
  return Planner(options, limit, model).plan();
}

ContextNeed context_need(const Options& options, const MemoryLimit& limit,
                         const ModelFootprint& model, int32_t context, int32_t sequences) {
  return Planner(options, limit, model).need(context, sequences);
}

int32_t longest_context(const Options& options, const MemoryLimit& limit,
                        const ModelFootprint& model) {
  return Planner(options, limit, model).longest(model.context_max, /*leaves_experts=*/false);
}

std::string context_note(const MemoryPlan& plan) {
  if (plan.context_wanted == 0) return {};
  const std::string lacks =
      plan.context_lacks > 0 ? human_bytes(plan.context_lacks) + " more memory" : "";
  return "context of " + std::to_string(plan.context_max) + " of the model's " +
         std::to_string(plan.context_wanted) + " tokens: " +
         (plan.context_kv_memory > 0
              ? "--kv-memory " + option_bytes(plan.context_kv_memory) +
                    (lacks.empty() ? "" : " and " + lacks) + " would hold all"
              : "more does not fit; all would need " + lacks);
}

}  // namespace weir
