// MemoryPlan: where all memory goes, added up in one place with one line per consumer, before any
// of it is taken. Another consumer is another line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "exec/executor.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "program/memory_limit.h"
#include "program/network_memory.h"
#include "program/options.h"

namespace weir {

struct MemoryLine {
  std::string what;
  int64_t taken = 0;  // From the start on, whether it is used or not;
  int64_t bytes = 0;  // at most, that included.
  std::string note;
};

// What the plan needs to know of a model; loaded_model.h says it.
struct ModelFootprint {
  int64_t packed_weights = 0;  // Of anonymous memory.
  int64_t mapped_weights = 0;  // Read in place from the file.
  int64_t scratch = 0;         // Activations and logits of one step.
  // Of a model that sees images: its tower's weights, and activations of the largest picture. 0: it
  // sees none.
  int64_t image_tower = 0, image_scratch = 0;
  // The same of sounds.
  int64_t sound_encoder = 0, sound_scratch = 0;

  bool takes_media() const { return image_tower > 0 || sound_encoder > 0; }

  int64_t adapter = 0;         // An adapter of every layer, of the largest rank.
  kv::Format kv_format = {};
  // Groups of layers, with the bytes of one of their KV pages (32 tokens).
  std::vector<kv::MemoryLayout::Group> kv_groups = {{}};
  // What a running sequence has beside its pages, in all layers, and of that what a checkpoint needs.
  int64_t state_bytes = 0, checkpoint_bytes = 0;
  // What it attends to besides (kv::CrossNeed), in all layers, and what an encoder gives of that.
  int64_t cross_bytes = 0, encoded_bytes = 0;
  int32_t slab_rows = 0;    // Tokens of prompts that are computed beside a step.
  // Of a step that has a span of tokens which see both ways, where it may be larger than others.
  int32_t span_rows_max = 0;
  int32_t context_max = 0;  // The model's own.
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  int64_t experts = 0;       // All of them, where they are streamed; else 0.
  int64_t expert_cycle = 0;  // Those that one token needs.
};

// What a process takes that serves several models, whichever are loaded. Each of them has a plan of
// its own beside it.
struct ProcessPlan {
  std::vector<MemoryLine> lines;
  int64_t taken = 0;
  int64_t total = 0;
  int64_t request_bytes = 0;  // As in MemoryPlan.
  BodyPlan bodies;
  int64_t responses_bytes = 0;
  int64_t image_bytes = 0;
};

struct MemoryPlan {
  std::vector<MemoryLine> lines;
  int64_t taken = 0;
  int64_t total = 0;  // At most.
  int64_t limit = 0;
  std::string limit_from;   // "--mem-limit", "cgroup", "MemAvailable", "CommitLimit".
  int32_t context_max = 0;  // Positions of one sequence.
  // Where those are fewer than the model has, because there is no room for more: its own, how much
  // more memory they would take, and the --kv-memory they need where that option is in the way.
  // Else 0.
  int32_t context_wanted = 0;
  int64_t context_lacks = 0;
  int64_t context_kv_memory = 0;
  int32_t kv_pages = 0;                 // For whole contexts.
  std::vector<int32_t> kv_page_counts;  // By group: those, then pages of windows.
  int32_t parallel = 0;                 // Sequences that decode at once.
  int64_t state_bytes = 0;              // Of each of them, and of each checkpoint.
  int32_t checkpoints = 0;              // Of states, for the prefix cache.
  int32_t cross_slots = 0;              // Of sounds that sequences attend to, where they do.
  int64_t request_bytes = 0;  // Prompts and token logs of all requests, waiting or running.
  BodyPlan bodies;
  int64_t responses_bytes = 0;  // Stored responses.
  int64_t image_bytes = 0;      // Images of requests, until the model has seen them.
  int64_t automata_bytes = 0;   // Compiled grammars that are kept.
  int64_t expert_bytes = 0;     // Experts in memory, and buffers to read them.
  int64_t adapter_bytes = 0;    // Of all adapters.
  int32_t answer_texts = 0;     // Of earlier answers, for drafts.
  int64_t model_bytes = 0;      // Of the total: what would not be there without this model.
};

// Without --ctx-size, the least that a plan is made for; shorter, chats with tools do not begin.
inline constexpr int32_t kContextLeast = 4096;

// Without --ctx-size the context is the model's own, or the longest that fits. An error says what
// does not fit, by how much, which context would, and which option changes it.
Result<MemoryPlan> plan_memory(const Options& options, const MemoryLimit& limit,
                               const ModelFootprint& model);

ProcessPlan plan_process(const Options& options, const MemoryLimit& limit);
// A model beside others: `others` bytes are theirs. Without --kv-memory, keys and values get a
// quarter of what is left, so that more models find room; without --ctx-size the context is the
// longest of which one sequence fits that, but not shorter than kSharedContext.
Result<MemoryPlan> plan_model(const Options& options, const MemoryLimit& limit,
                              const ProcessPlan& process, int64_t others,
                              const ModelFootprint& model);
// What such a model takes at the least.
int64_t least_model_bytes(const Options& options, const MemoryLimit& limit,
                          const ProcessPlan& process, const ModelFootprint& model);
inline constexpr int32_t kSharedContext = 8192;

// What so many sequences of whole contexts take at once, with all that is planned beside them but
// experts that get what is left; and whether that is within the limit, and --kv-memory.
struct ContextNeed {
  int64_t bytes = 0;
  bool fits = false;
};
ContextNeed context_need(const Options& options, const MemoryLimit& limit,
                         const ModelFootprint& model, int32_t context, int32_t sequences = 1);
// The longest context of which one sequence fits so, at most the model's own: it, or whole pages;
// 0: not one page.
int32_t longest_context(const Options& options, const MemoryLimit& limit,
                        const ModelFootprint& model);

// The executor takes the planned memory for keys and values. All of it is reserved at once; where
// the system refuses that, the error names the option that helps. REQUIRES: it has an encoder where
// slots of sounds are planned (check_hearing() in program/media_towers.h).
Result<void> take_kv(exec::Executor& executor, kv::MemoryLayout layout, const MemoryPlan& plan);

// What a plan that has made the context shorter says of it; empty: it has not.
std::string context_note(const MemoryPlan& plan);

}  // namespace weir
