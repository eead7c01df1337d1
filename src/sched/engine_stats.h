// EngineStats: what the engine publishes about itself. A figure is declared once, with its name and
// what it says; pages of figures go through figures(), so another figure is another member.
//
// Threads: written by the engine thread only, with relaxed stores; read by any thread. The list is
// made with the object and never changes.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/metrics.h"
#include "sched/draft_kind.h"

namespace weir::sched {

// A figure as a page sees it. The name has neither the program's name before it nor an ending that
// tells counters from gauges: `value` is one or the other.
struct NamedFigure {
  std::string_view name, help;
  std::variant<const Counter*, const Gauge*, const Histogram*> value;
  // As base/metrics.h has them, where there are several of a name; those stand together, and the
  // first has the help.
  std::string labels{};
};

// The figures of an object, in the order of their declaration. It points to them, so it stays where
// it is, as they do.
class FigureList {
 public:
  FigureList() = default;
  FigureList(const FigureList&) = delete;
  FigureList& operator=(const FigureList&) = delete;

  std::span<const NamedFigure> figures() const { return figures_; }

 protected:
  // A member that is in the list. REQUIRES: texts that live as long as the program.
  template <typename Value>
  struct Figure : Value {
    Figure(FigureList& list, std::string_view name, std::string_view help,
           std::string labels = {}) {
      list.figures_.push_back({name, help, static_cast<const Value*>(this), std::move(labels)});
    }
  };

 private:
  std::vector<NamedFigure> figures_;
};

struct EngineStats : FigureList {
  // One of each kind of drafts.
  template <typename Value>
  struct KindFigures {
    KindFigures(FigureList& list, std::string_view name, std::string_view help)
        : of{{{list, name, help, label(0)},
              {list, name, "", label(1)},
              {list, name, "", label(2)},
              {list, name, "", label(3)},
              {list, name, "", label(4)},
              {list, name, "", label(5)},
              {list, name, "", label(6)}}} {}
    Value& operator[](DraftKind kind) { return of[index_of(kind)]; }

    std::array<Figure<Value>, kDraftKindNames.size()> of;

   private:
    static std::string label(size_t kind) {
      return metric_label("source", kDraftKindNames[kind]);
    }
  };
  static constexpr size_t kDraftPlaces = 15;

  Figure<Gauge> running{*this, "requests_running", "Sequences with KV pages."};
  // Submitted and not started, or preempted.
  Figure<Gauge> waiting{*this, "requests_waiting", "Requests without KV pages."};

  // Of the KV cache. Sizes do not change.
  Figure<Gauge> pages{*this, "kv_pages", "KV pages that there are."};
  Figure<Gauge> page_tokens{*this, "kv_page_tokens", "Tokens of a KV page."};
  Figure<Gauge> kv_bytes{*this, "kv_bytes", "Memory of all KV pages, once they have been used."};
  Figure<Gauge> kv_usage{*this, "kv_usage", "Share of KV pages held by sequences."};  // 0..1.
  Figure<Gauge> pages_cached{*this, "kv_pages_cached",
                             "KV pages that only the prefix cache holds."};
  Figure<Gauge> window_pages{*this, "kv_window_pages",
                             "KV pages of layers that see a window only."};
  Figure<Gauge> window_pages_held{*this, "kv_window_pages_held",
                                  "Of those, pages that sequences hold."};
  Figure<Gauge> window_pages_cached{*this, "kv_window_pages_cached",
                                    "Of those, pages that only the prefix cache holds."};
  Figure<Gauge> state_bytes{*this, "state_bytes",
                            "Memory of the states of one sequence, or of one checkpoint."};
  Figure<Gauge> checkpoint_slots{*this, "state_checkpoint_slots",
                                 "Checkpoints of states that there is room for."};
  Figure<Gauge> checkpoints{*this, "state_checkpoints",
                            "Checkpoints of states, for the prefix cache."};
  Figure<Gauge> kv_taken{*this, "kv_bytes_taken",
                         "Memory of KV pages now; what is unused goes back."};

  Figure<Counter> steps{*this, "steps", "Forward passes."};
  Figure<Counter> prompt_tokens{*this, "prompt_tokens_computed",
                                "Prompt tokens computed, cached ones left out."};
  Figure<Counter> generated_tokens{*this, "generated_tokens", "Tokens of answers."};
  Figure<Counter> forced_tokens{*this, "forced_tokens",
                                "Of those, the ones that a grammar left no choice about."};
  Figure<Counter> drafts{*this, "drafts", "Drafts of answers' tokens that steps have verified."};
  Figure<Counter> drafts_taken{*this, "drafts_taken", "Of those, the ones that were right."};
  // The same by DraftKind, those that a grammar has forced left out.
  KindFigures<Counter> drafted{*this, "speculative_drafts", "Drafts verified, by their source."};
  KindFigures<Counter> drafted_right{*this, "speculative_drafts_right", "Those that were right."};
  KindFigures<Gauge> draft_seconds{*this, "speculative_draft_seconds",
                                   "Time that sources have taken for drafts and to keep up."};
  Figure<Counter> draft_rounds{*this, "speculative_rounds", "Slices of a step that had drafts."};
  Figure<Counter> draft_steps{*this, "speculative_steps", "Steps that had drafts."};
  Figure<Counter> draft_steps_off{*this, "speculative_steps_off",
                                  "Steps without drafts, because those have cost too much."};
  Figure<Gauge> draft_loss{*this, "speculative_loss_seconds",
                           "Time that steps with drafts have cost lately, beyond plain ones."};
  // Drafts that were right, by their place in the slice; shown by vLLM's name only.
  std::array<Counter, kDraftPlaces> draft_places;
  Figure<Counter> prefix_queries{*this, "prefix_cache_queries",
                                 "Prompt tokens looked up in the prefix cache."};
  Figure<Counter> prefix_hits{*this, "prefix_cache_hits",
                              "Prompt tokens found in the prefix cache."};
  Figure<Counter> preemptions{*this, "preemptions",
                              "Sequences that gave their pages back for a while."};
  Figure<Counter> wakes{*this, "loop_wakes", "Wakes of the network loop by the engine."};
  Figure<Histogram> queue_time{*this, "queue_seconds", "From arrival to the first planned slice."};
  Figure<Histogram> step_time{*this, "step_seconds", "Duration of a forward pass."};

  // Of a model that reads pictures or sounds; 0 for others.
  Figure<Counter> image_encoded{*this, "image_encoded", "Pictures whose features were computed."};
  Figure<Counter> image_hits{*this, "image_cache_hits",
                             "Pictures whose features the image cache had."};
  Figure<Gauge> image_seconds{*this, "image_encode_seconds",
                              "Time that the features of pictures have taken."};
  Figure<Gauge> image_bytes{*this, "image_cache_bytes",
                            "Memory of pictures' and sounds' features that are kept."};
  Figure<Counter> audio_encoded{*this, "audio_encoded", "Sounds whose features were computed."};
  Figure<Counter> audio_hits{*this, "audio_cache_hits",
                             "Sounds whose features the image cache had."};
  Figure<Gauge> audio_seconds{*this, "audio_encode_seconds",
                              "Time that the features of sounds have taken."};

  // Of prompts and of answers together. Not in the list: pages show it by another name only.
  Histogram step_tokens{Histogram::Scale::kCounts};

  // Of the prompt cache on disk (kv/disk/disk_cache.h); 0 without one.
  Figure<Counter> disk_hits{*this, "disk_cache_hit_tokens",
                            "Prompt tokens that were read from disk instead of computed."};
  Figure<Counter> disk_read{*this, "disk_cache_read_bytes", "Bytes of the prompt cache read."};
  Figure<Counter> disk_written{*this, "disk_cache_written_bytes",
                               "Bytes of the prompt cache written."};
  Figure<Counter> disk_evicted{*this, "disk_cache_evicted_blocks",
                               "Blocks of 32 tokens that went from disk, to make room."};
  Figure<Counter> disk_corrupt{*this, "disk_cache_corrupt_extents",
                               "Pieces found damaged on disk, and computed again."};
  Figure<Counter> disk_dropped{*this, "disk_cache_dropped_bytes",
                               "Bytes that were not written, for the sake of a limit."};
  Figure<Gauge> disk_bytes{*this, "disk_cache_bytes", "What the prompt cache has on disk."};
};

}  // namespace weir::sched
