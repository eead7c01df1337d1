#include <algorithm>
#include <bit>
#include <cmath>

#include "card/model_card.h"
#include "check.h"
#include "difference.h"
#include "model/session.h"
#include "model_fixture.h"
#include "runtime.h"
#include "ssd/expert_store.h"

namespace weir::check {

namespace {

using model::Session;

// Where the reference's two best tokens are closer than this, either is right.
constexpr double kMarginMin = 1e-3;
constexpr double kLogprobBound = 2e-3;
constexpr double kNllBound = 1e-4;  // Relative.
// Quantised activations may move the likelihood by this much (relative), beside the standard error
// of the mean over a text's tokens, whose differences have about this deviation: on the 258 tokens
// of weir-tiny-moe, where a near tie of experts falls to the other side now and then, the ISAs and
// KV types lie between -0.44 and -0.75 %, on 6,052 tokens at -0.006 %.
constexpr double kFastNllBound = 3e-3;
constexpr double kFastNllDeviation = 0.08;

using Case = ModelFixture::Case;

// What must not change by a bit: a hash of each row of logits, in the order of rows.
using RowHashes = std::vector<uint64_t>;

// FNV-1a over 32-bit words.
uint64_t hash_row(std::span<const float> row) {
  uint64_t hash = 14695981039346656037u;
  for (const float value : row) hash = (hash ^ std::bit_cast<uint32_t>(value)) * 1099511628211u;
  return hash;
}

struct Outcome {
  RowHashes hashes;
  std::string streaming;  // How experts were read.
  int steps = 0, equal = 0, wrong = 0;
  std::string first_wrong;
  double logprob_difference = 0;
  double nll = 0;
};

void compare_step(const Case& c, size_t step, std::span<const float> logits,
                  const kernels::Ops& ops, Outcome& out) {
  const auto vocab = static_cast<int32_t>(logits.size());
  const int32_t best = ops.argmax(logits.data(), vocab);
  ++out.steps;
  if (best == c.greedy[step]) {
    ++out.equal;
  } else if (c.margins[step] > kMarginMin) {
    ++out.wrong;
    if (out.first_wrong.empty())
      out.first_wrong = "expected token " + std::to_string(c.greedy[step]) + " at step " +
                        std::to_string(step) + " (margin " + std::to_string(c.margins[step]) +
                        "), found " + std::to_string(best);
  }
  if (step >= c.top.size()) return;
  const float lse = ops.log_sum_exp(logits.data(), vocab);
  for (const auto& [id, logprob] : c.top[step]) {
    const double difference =
        std::fabs(static_cast<double>(logits[static_cast<size_t>(id)] - lse) - logprob);
    out.logprob_difference = worse_of(out.logprob_difference, difference);
  }
}

// All cases side by side, each fed the reference's tokens, so that one legitimate difference does
// not hide what follows.
void run_cases(const ModelFixture& expected, Session& session, const Runtime& runtime, size_t vocab,
               Outcome& out) {
  const size_t count = expected.cases.size();
  std::vector<std::vector<float>> rows(count, std::vector<float>(vocab));
  size_t steps = 0;
  for (size_t i = 0; i < count; ++i) {
    const Case& c = expected.cases[i];
    steps = std::max(steps, c.greedy.size());
    session.begin(static_cast<int32_t>(i), static_cast<int32_t>(c.prompt.size()));
  }
  for (size_t step = 0; step < steps; ++step) {
    std::vector<Session::Slice> slices;
    std::vector<size_t> which;
    for (size_t i = 0; i < count; ++i) {
      const Case& c = expected.cases[i];
      if (step >= c.greedy.size()) continue;
      const std::span<const int32_t> tokens =
          step == 0 ? std::span(c.prompt) : std::span(c.greedy).subspan(step - 1, 1);
      slices.push_back({static_cast<int32_t>(i), tokens});
      which.push_back(i);
    }
    session.forward(slices, [&](size_t slice, size_t, std::span<float> logits) {
      std::ranges::copy(logits, rows[which[slice]].begin());
    });
    for (const size_t i : which) out.hashes.push_back(hash_row(rows[i]));
    for (const size_t i : which) compare_step(expected.cases[i], step, rows[i], *runtime.ops, out);
  }
}

double run_nll(const ModelFixture& expected, Session& session, const Runtime& runtime,
               int32_t rows_max, RowHashes& hashes) {
  const std::span<const int32_t> ids(expected.nll_ids);
  std::vector<double> nll(ids.size() - 1);
  const size_t first = hashes.size();
  hashes.resize(first + ids.size());
  session.begin(0, static_cast<int32_t>(ids.size()));
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(rows_max)) {
    const size_t rows = std::min(static_cast<size_t>(rows_max), ids.size() - at);
    const std::array slices = {Session::Slice{0, ids.subspan(at, rows), true}};
    session.forward(slices, [&](size_t, size_t token, std::span<float> logits) {
      const size_t next = at + token + 1;
      hashes[first + at + token] = hash_row(logits);
      if (next == ids.size()) return;
      const float lse =
          runtime.ops->log_sum_exp(logits.data(), static_cast<int32_t>(logits.size()));
      nll[next - 1] = static_cast<double>(lse - logits[static_cast<size_t>(ids[next])]);
    });
  }
  double sum = 0;
  for (const double value : nll) sum += value;
  return sum / static_cast<double>(nll.size());
}

// What is wrong, or nothing.
std::string judge(const ModelFixture& expected, const Outcome& out, const Runtime& runtime) {
  const double relative = out.nll / expected.nll - 1;
  char text[200] = "";
  if (runtime.compute == model::Compute::kFast) {
    const double tokens = static_cast<double>(expected.nll_ids.size());
    const double bound = kFastNllBound + kFastNllDeviation / std::sqrt(tokens);
    if (!(std::fabs(relative) < bound))
      std::snprintf(
          text, sizeof text,
          "expected a negative log-likelihood within %.2f %% of the reference's, found %+.4f %%",
          100 * bound, 100 * relative);
    return text;
  }
  if (!(std::fabs(relative) < kNllBound)) {
    std::snprintf(text, sizeof text, "expected a negative log-likelihood of %.6f, found %.6f",
                  expected.nll, out.nll);
    return text;
  }
  if (runtime.kv_format != kernels::FloatType::kF32)
    return {};  // An f16 cache moves logits by 1e-2.
  if (!(out.logprob_difference < kLogprobBound)) {
    std::snprintf(text, sizeof text,
                  "expected log-probabilities within %.0e, found a difference of %.1e",
                  kLogprobBound, out.logprob_difference);
    return text;
  }
  return out.wrong > 0 ? out.first_wrong : std::string();
}

// Everything recorded, run on a model.
Result<Outcome> run_model(const ModelFixture& expected, const card::ModelCard& card,
                          const Runtime& runtime, std::optional<int64_t> expert_memory) {
  size_t prompts = 0;  // All in one pass.
  for (const Case& c : expected.cases) prompts += c.prompt.size();
  const model::ModelOptions options = {.compute = runtime.compute,
                                       .rows_max = std::max(512, static_cast<int32_t>(prompts)),
                                       .stream_experts = expert_memory.has_value()};
  WEIR_ASSIGN(const auto loaded, model::Model::load(card, options, *runtime.ops, *runtime.team));
  if (expected.largest_id >= loaded->spec().vocab_size)
    return fail(ErrorCode::kConfig, "expected.json: expected ids below the model's vocabulary of " +
                                        std::to_string(loaded->spec().vocab_size) + ", found " +
                                        std::to_string(expected.largest_id));
  const auto sequences = static_cast<int32_t>(expected.cases.size());
  if (expert_memory) WEIR_TRY(stream_experts(*loaded, *expert_memory, sequences));
  const auto vocab = static_cast<size_t>(loaded->spec().vocab_size);
  size_t longest = expected.nll_ids.size();
  for (const Case& c : expected.cases)
    longest = std::max(longest, c.prompt.size() + c.greedy.size());
  if (longest > static_cast<size_t>(loaded->context_max()))
    return fail(ErrorCode::kConfig, "expected.json: expected texts of at most " +
                                        std::to_string(loaded->context_max()) +
                                        " tokens, the model's context, found " +
                                        std::to_string(longest));
  WEIR_ASSIGN(Session session, Session::create(*loaded, *runtime.team,
                                               {.sequences = sequences,
                                                .tokens_max = static_cast<int32_t>(longest),
                                                .kv_format = runtime.kv_format}));
  Outcome out;
  run_cases(expected, session, runtime, vocab, out);
  out.nll = run_nll(expected, session, runtime, options.rows_max, out.hashes);
  if (expert_memory) {
    const ssd::ExpertStore& store = *loaded->experts();
    const ssd::StoreStats& stats = store.stats();
    const ssd::StorePlan& plan = store.plan();
    char text[200];
    std::snprintf(text, sizeof text,
                  "%lld of %lld experts in memory, %s%s; asked for %llu, found %llu in memory; ",
                  static_cast<long long>(plan.slots), static_cast<long long>(plan.experts),
                  std::string(store.mode()).c_str(),
                  loaded->expert_catalogue()->packed() ? ", a bundle" : "",
                  static_cast<unsigned long long>(stats.ready.value() + stats.in_flight.value() +
                                                  stats.absent.value()),
                  static_cast<unsigned long long>(stats.ready.value()));
    out.streaming = text;
  }
  return out;
}

Result<void> check_model(const std::string& folder, const Runtime& runtime, Report& report) {
  WEIR_ASSIGN(const ModelFixture expected, ModelFixture::open(folder));
  WEIR_ASSIGN(const card::ModelCard card, card::ModelCard::open_folder(folder));
  WEIR_ASSIGN(const Outcome out, run_model(expected, card, runtime, std::nullopt));
  char detail[240];
  std::snprintf(detail, sizeof detail,
                "%d of %d greedy tokens equal, log-probabilities within %.1e, nll %.6f (reference "
                "%.6f, %+.4f %%; "
                "perplexity %+.4f %%)",
                out.equal, out.steps, out.logprob_difference, out.nll, expected.nll,
                100 * (out.nll / expected.nll - 1), 100 * (std::exp(out.nll - expected.nll) - 1));
  const std::string failure = judge(expected, out, runtime);
  failure.empty() ? report.pass(folder_name(folder), detail)
                  : report.fail(folder_name(folder), failure + "; " + detail);
  if (!runtime.expert_memory) return {};
  const std::string name = folder_name(folder) + ", experts from disk";
  WEIR_ASSIGN(const Outcome streamed, run_model(expected, card, runtime, runtime.expert_memory));
  size_t differ = 0;
  for (size_t i = 0; i < out.hashes.size(); ++i) differ += out.hashes[i] != streamed.hashes[i];
  const std::string rows = std::to_string(out.hashes.size()) + " rows of logits";
  if (differ > 0)
    report.fail(name, streamed.streaming + "expected " + rows + " equal to the last bit, found " +
                          std::to_string(differ) + " that differ");
  else
    report.pass(name, streamed.streaming + rows + " equal to the last bit");
  return {};
}

}  // namespace

Result<void> check_models(const CheckOptions& options, Report& report) {
  WEIR_ASSIGN(const Runtime runtime, Runtime::create(options));
  WEIR_ASSIGN(const std::vector<std::string> folders, find_folders(options.paths, "expected.json"));
  for (const std::string& folder : folders) {
    const auto done = check_model(folder, runtime, report);
    if (!done) report.fail(folder_name(folder), done.error().message);
  }
  return {};
}

}  // namespace weir::check
