// Verdict: whether a model runs within a limit of memory, and how: what loading would find, said
// before anything is loaded or fetched. A pure function of what the planner knows.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "program/memory_limit.h"
#include "program/memory_plan.h"
#include "program/options.h"

namespace weir::fit {

enum class Verdict : uint8_t {
  kFits,      // With four sequences of an ordinary length at once.
  kShort,     // With one sequence, of at least kContextUseful tokens.
  kStreams,   // With its experts on disk.
  kWithLess,  // With numbers of fewer bits.
  kNo,
  kUnknown,  // Its files are not read: another architecture or format.
};
// "fits", "short", "streams", "with less", "no", "unknown".
std::string_view word_of(Verdict verdict);

// Tokens of an ordinary sequence, and how many of those shall find room at once.
inline constexpr int32_t kContextOrdinary = 8192;
inline constexpr int32_t kSequencesAtOnce = 4;
// Shorter contexts hold no conversation.
inline constexpr int32_t kContextUseful = 2048;
// Experts that are read from disk have at least so much memory, and so many times what one token
// needs; or all of them are in memory. With less nearly all are read again for every token.
inline constexpr int64_t kExpertMemoryLeast = int64_t{1} << 30;
inline constexpr int64_t kExpertCyclesLeast = 8;

// One way to run a model.
struct Way {
  Options options;  // With which it would be started.
  ModelFootprint model;
  std::string flags{};  // Which of those options were not asked for: "--stream-experts".
  bool less = false;    // They mean other numbers than the files'.
};

struct Fit {
  Verdict verdict = Verdict::kUnknown;
  // Words for the command line with which it loads so; empty: none beside those asked for.
  std::string flags;
  int32_t context = 0;       // The longest sequence.
  int32_t context_max = 0;   // The model's own.
  int64_t needed = 0;        // What must be free: for kFits, kShort and kStreams as counted there.
  int64_t limit = 0;         // What may be taken,
  std::string limit_from;    // and what says so.
  int64_t lacks = 0;         // kNo: bytes that are missing.
  int64_t expert_bytes = 0;  // kStreams: memory for experts,
  int64_t experts = 0;       // of so many bytes.
  // kNo: it would start with `flags`, but read nearly all experts for every token.
  bool crawls = false;
  std::string reason;  // kUnknown: which key, tensor or format.
};

// What this way comes to: kFits, kShort, kStreams, kWithLess or kNo.
Fit judge(const Way& way, const MemoryLimit& limit);
// The first that is not kNo; else the one that lacks least. REQUIRES: there is one.
const Fit& best_of(std::span<const Fit> fits);
// kUnknown.
Fit unknown(std::string reason);

// A sentence for people: "short: contexts up to 3,072 of the model's 40,960 tokens, with --ctx-size
// 3072".
std::string describe(const Fit& fit);

}  // namespace weir::fit
