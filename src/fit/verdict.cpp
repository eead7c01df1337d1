#include "fit/verdict.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/byte_size.h"
#include "base/check.h"

namespace weir::fit {

namespace {

constexpr std::array<std::string_view, 6> kWords = {"fits",      "short", "streams",
                                                    "with less", "no",    "unknown"};

// Words of two lists of options.
std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + " " + b;
}

// A context to ask for: shorter than the longest that finds room, for what is free has changed by
// megabytes until the model is started; a round number.
int32_t advised_context(int32_t longest, int32_t least) {
  constexpr int32_t kRound = 256, kSpare = 64;
  return std::max(least, (longest - kSpare) / kRound * kRound);
}

std::string ctx_size(int32_t context) { return "--ctx-size " + std::to_string(context); }

// "40,960".
std::string with_commas(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

class Judge {
 public:
  Judge(const Way& way, const MemoryLimit& limit) : way_(way), limit_(limit) {
    fit_.flags = way.flags;
    fit_.context_max = way.model.context_max;
    fit_.limit = limit.bytes;
    fit_.limit_from = limit.from;
  }

  Fit resident() {
    const int32_t asked = way_.options.ctx_size;
    const int32_t whole = asked > 0 ? asked : way_.model.context_max;
    const ContextNeed several = need(std::min(whole, kContextOrdinary), kSequencesAtOnce);
    int32_t longest = longest_context(way_.options, limit_, way_.model);
    if (several.fits && longest >= asked) return runs(Verdict::kFits, several.bytes, longest);
    const int32_t least = asked > 0 ? asked : std::min(whole, kContextUseful);
    if (longest < least) return lacks(need(least).bytes);
    // Without being told to, a server makes no context that is so short.
    if (asked == 0 && longest < std::min(whole, kContextLeast)) {
      longest = advised_context(longest, least);
      fit_.flags = joined(fit_.flags, ctx_size(longest));
    }
    return runs(Verdict::kShort, need(least).bytes, longest);
  }

  // Experts get what the rest leaves, which a shorter context than the plan would choose may have
  // to make room for.
  Fit streamed() {
    fit_.experts = way_.model.experts;
    const int64_t wanted = std::min(
        fit_.experts, std::max(kExpertMemoryLeast, kExpertCyclesLeast * way_.model.expert_cycle));
    const int32_t least = way_.options.ctx_size > 0
                              ? way_.options.ctx_size
                              : std::min(way_.model.context_max, kContextLeast);
    for (const int32_t context : {way_.options.ctx_size, least}) {
      Options options = way_.options;
      options.ctx_size = context;
      const Result<MemoryPlan> plan = plan_memory(options, limit_, way_.model);
      if (!plan) continue;
      fit_.crawls = true;
      if (plan->expert_bytes < wanted && options.expert_memory == 0) continue;
      fit_.crawls = false;
      fit_.expert_bytes = plan->expert_bytes;
      if (context != way_.options.ctx_size) fit_.flags = joined(fit_.flags, ctx_size(context));
      return runs(Verdict::kStreams, need(least).bytes + wanted, plan->context_max);
    }
    const bool counted = way_.options.expert_memory > 0;  // Among the lines of the plan.
    return lacks(need(least).bytes + (counted ? 0 : wanted));
  }

 private:
  ContextNeed need(int32_t context, int32_t sequences = 1) const {
    return context_need(way_.options, limit_, way_.model, context, sequences);
  }
  Fit runs(Verdict verdict, int64_t needed, int32_t context) {
    fit_.verdict = way_.less ? Verdict::kWithLess : verdict;
    fit_.needed = needed;
    fit_.context = way_.options.ctx_size > 0 ? way_.options.ctx_size : context;
    return std::move(fit_);
  }
  Fit lacks(int64_t needed) {
    fit_.verdict = Verdict::kNo;
    fit_.needed = needed;
    fit_.lacks = std::max<int64_t>(needed - limit_.bytes, 1);
    return std::move(fit_);
  }

  const Way& way_;
  const MemoryLimit& limit_;
  Fit fit_;
};

}  // namespace

std::string_view word_of(Verdict verdict) { return kWords[static_cast<size_t>(verdict)]; }

Fit judge(const Way& way, const MemoryLimit& limit) {
  Judge judge(way, limit);
  return way.model.experts > 0 ? judge.streamed() : judge.resident();
}

const Fit& best_of(std::span<const Fit> fits) {
  CHECK(!fits.empty());
  const auto runs = [](const Fit& fit) { return fit.verdict != Verdict::kNo; };
  if (const auto found = std::ranges::find_if(fits, runs); found != fits.end()) return *found;
  return *std::ranges::min_element(fits, {}, &Fit::lacks);
}

Fit unknown(std::string reason) {
  Fit fit;
  fit.reason = std::move(reason);
  return fit;
}

std::string describe(const Fit& fit) {
  const std::string with = fit.flags.empty() ? "" : ", with " + fit.flags;
  const std::string allowed = human_bytes(fit.limit) + " that " + fit.limit_from + " allows";
  const std::string contexts =
      "contexts up to " + with_commas(fit.context) +
      (fit.context < fit.context_max ? " of the model's " + with_commas(fit.context_max) : "") +
      " tokens";
  std::string out = std::string(word_of(fit.verdict)) + ": ";
  switch (fit.verdict) {
    case Verdict::kFits:
    case Verdict::kShort:
      return out + "needs " + human_bytes(fit.needed) + " of the " + allowed + "; " + contexts +
             with;
    case Verdict::kStreams:
      return out + human_bytes(fit.expert_bytes) + " of " + human_bytes(fit.experts) +
             " of experts in memory, the others read from disk; " + contexts + with;
    case Verdict::kWithLess:
      return out + fit.flags + " needs " + human_bytes(fit.needed) + " of the " + allowed + "; " +
             contexts;
    case Verdict::kNo:
      out += "needs " + human_bytes(fit.needed) + with + ", " + human_bytes(fit.lacks) +
             " more than the " + allowed;
      return fit.crawls ? out + " (it would start, and read nearly all experts for every token)"
                        : out;
    case Verdict::kUnknown:
      break;
  }
  return out + fit.reason;
}

}  // namespace weir::fit
