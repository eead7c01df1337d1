#include "commands/perplexity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "commands/route_measuring.h"
#include "measure/divergence.h"
#include "model/session.h"
#include "program/expert_streaming.h"
#include "program/model_choice.h"
#include "ssd/expert_catalogue.h"
#include "text/tokenizer.h"
#include "text/vocabulary_check.h"

namespace weir {

namespace {

constexpr size_t kTextBytesMax = size_t{256} << 20;
constexpr int32_t kWindowDefault = 512;
constexpr int32_t kRowsMax = 512;

struct Total {
  double sum = 0, squares = 0;
  int64_t count = 0;
  void add(std::span<const float> losses) {
    for (const float loss : losses) {
      sum += loss;
      squares += static_cast<double>(loss) * loss;
    }
    count += std::ssize(losses);
  }
  double mean() const { return sum / static_cast<double>(count); }
  // Standard error of the mean, taking tokens as independent.
  double error() const {
    const double n = static_cast<double>(count);
    return std::sqrt(std::max(0.0, squares / n - mean() * mean()) / n);
  }
};

// A model, and a session that has room for one window.
struct Runner {
  std::shared_ptr<model::Model> model;
  std::optional<model::Session> session;
  std::vector<float> nll;  // Of each token of the window but the first.
  Total total;
};

// What --against compares with: another model, whose logits of one slice are kept until the
// measured model's have come.
struct Reference {
  std::string name;
  Runner runner;
  kv::Format format = kv::Format::kF32;
  std::vector<float> logits;  // [kRowsMax, vocab_size]
  measure::DivergenceTally tally;
  Total difference;  // Of the measured model's losses less the reference's, token by token.
};

// In float32 throughout whatever the options say of the measured model, as its files are.
Result<Reference> load_reference(const std::string& folder, const kernels::Ops& ops,
                                 ThreadTeam& team) {
  Reference reference;
  WEIR_ASSIGN(const card::ModelCard card, card::ModelCard::open_folder(folder, {}));
  reference.name = card.files.name();
  model::ModelOptions options;
  options.compute = model::Compute::kExact;
  options.rows_max = kRowsMax;
  WEIR_ASSIGN(reference.runner.model, model::Model::load(card, options, ops, team));
  return reference;
}

Result<void> check_same_vocabulary(const model::Model& model, const Reference& reference,
                                   const std::string& folder) {
  const int32_t expected = model.spec().vocab_size;
  const int32_t found = reference.runner.model->spec().vocab_size;
  if (expected == found) return {};
  return fail(ErrorCode::kConfig,
              "--against " + folder + ": expected a vocabulary of " + std::to_string(expected) +
                  " tokens, as the measured model has; found " + std::to_string(found));
}

Result<int32_t> window_of(const Options& options, int32_t context_max) {
  const int32_t window = options.ctx > 0 ? options.ctx : std::min(kWindowDefault, context_max);
  if (window >= 2 && window <= context_max) return window;
  return fail(ErrorCode::kConfig, "--ctx: expected 2 to " + std::to_string(context_max) +
                                      "; found " + std::to_string(window));
}

Result<void> open_session(Runner& runner, ThreadTeam& team, int32_t window, kv::Format kv_format) {
  if (runner.model->cross_layers() > 0)
    return fail(ErrorCode::kUnsupported,
                "perplexity: expected a model of text, found one that writes down what it hears: " +
                    runner.model->spec().family);
  WEIR_ASSIGN(
      runner.session,
      model::Session::create(*runner.model, team, {.tokens_max = window, .kv_format = kv_format}));
  return {};
}

using OnRow = std::function<void(size_t token, std::span<const float> logits)>;

// Tokens [begin, begin + count) of a window; `on_row` gets the logits after each, on any member.
void run_slice(Runner& runner, std::span<const int32_t> ids, size_t begin, size_t count,
               const kernels::Ops& ops, const OnRow& on_row) {
  const model::Session::Slice slice = {.tokens = ids.subspan(begin, count), .all_logits = true};
  runner.session->forward({&slice, 1}, [&](size_t, size_t token, std::span<float> logits) {
    const size_t at = begin + token;
    runner.nll[at] = ops.log_sum_exp(logits.data(), static_cast<int32_t>(logits.size())) -
                     logits[static_cast<size_t>(ids[at + 1])];
    if (on_row) on_row(token, logits);
  });
}

// Both models on one slice.
Result<void> compare_slice(Runner& measured, Reference& reference, std::span<const int32_t> ids,
                           size_t begin, size_t count, const kernels::Ops& ops) {
  const auto vocab = static_cast<size_t>(measured.model->spec().vocab_size);
  reference.logits.resize(kRowsMax * vocab);
  run_slice(reference.runner, ids, begin, count, ops,
            [&](size_t token, std::span<const float> logits) {
              std::ranges::copy(
                  logits, reference.logits.begin() + static_cast<std::ptrdiff_t>(token * vocab));
            });
  std::vector<measure::Divergence> found(count);
  run_slice(measured, ids, begin, count, ops, [&](size_t token, std::span<const float> logits) {
    found[token] =
        measure::compare_logits(std::span(reference.logits).subspan(token * vocab, vocab), logits);
  });
  for (const measure::Divergence& divergence : found) {
    if (std::isnan(divergence.kl))
      return fail(ErrorCode::kConfig, "the logits of a model that is compared are no numbers");
    reference.tally.add(divergence);
  }
  return {};
}

// Each token of a window but the first, given those before it.
Result<void> score_window(std::span<const int32_t> ids, Runner& measured, Reference* reference,
                          const kernels::Ops& ops) {
  const size_t predicted = ids.size() - 1;
  for (Runner* each : {&measured, reference == nullptr ? nullptr : &reference->runner}) {
    if (each == nullptr) continue;
    each->nll.resize(predicted);
    each->session->begin(0, static_cast<int32_t>(ids.size()));
  }
  for (size_t begin = 0; begin < predicted; begin += kRowsMax) {
    const size_t count = std::min<size_t>(kRowsMax, predicted - begin);
    if (reference == nullptr)
      run_slice(measured, ids, begin, count, ops, {});
    else
      WEIR_TRY(compare_slice(measured, *reference, ids, begin, count, ops));
  }
  measured.total.add(measured.nll);
  if (reference == nullptr) return {};
  reference->runner.total.add(reference->runner.nll);
  std::vector<float> difference(predicted);
  std::ranges::transform(measured.nll, reference->runner.nll, difference.begin(), std::minus<>());
  reference->difference.add(difference);
  return {};
}

void print_total(const std::string& name, const Total& total, int32_t window) {
  std::printf(
      "%s: %lld tokens predicted in windows of %d, nll %.6f +- %.6f nats, perplexity %.4f\n",
      name.c_str(), static_cast<long long>(total.count), window, total.mean(), total.error(),
      std::exp(total.mean()));
}

// Errors of both models on the same tokens are much alike: that of the difference is smaller.
void print_difference(const Total& difference) {
  std::printf("nll more than the reference's by %.6f +- %.6f nats, perplexity by %.3f +- %.3f %%\n",
              difference.mean(), difference.error(), 100 * std::expm1(difference.mean()),
              100 * difference.error());
}

void print_divergence(const measure::DivergenceTally& tally) {
  std::printf(
      "KL(reference || model): mean %.6g +- %.2g nats a token, median %.6g, 99th percentile %.6g; "
      "the same most likely token for %.3f %%\n",
      tally.mean(), tally.mean_error(), tally.quantile(0.5), tally.quantile(0.99),
      100 * tally.same_top_share());
}

}  // namespace

Result<void> measure_perplexity(const Options& options) {
  WEIR_ASSIGN(const std::string text, read_file(options.file, kTextBytesMax));
  WEIR_ASSIGN(ModelChoice choice, choose_model(options));
  WEIR_ASSIGN(const card::TokenizerFile file, choice.model_card.open_tokenizer());
  WEIR_ASSIGN(const std::unique_ptr<text::Tokenizer> tokenizer,
              text::Tokenizer::load_file(file.name, file.text(), file.config));
  const kernels::Ops& ops = kernels::ops_for(choice.isa);
  ThreadTeam team(choice.threads);
  model::ModelOptions model_options;
  model_options.compute = choice.compute;
  model_options.stream_experts = options.stream_experts;
  model_options.quantise_bits = options.quantize;
  model_options.rows_max = kRowsMax;
  Runner measured;
  WEIR_ASSIGN(measured.model, model::Model::load(choice.model_card, model_options, ops, team));
  model::Model& model = *measured.model;
  WEIR_TRY(choose_bundle(model));
  WEIR_ASSIGN(const RouteMeasuring routes,
              measure_routes(options, model, /*sequences=*/1, /*tokens=*/1));
  WEIR_TRY(open_experts(model, options, expert_memory(model, options), /*sequences_max=*/1));
  std::optional<Reference> reference;
  int32_t context_max = model.context_max();
  if (!options.against.empty()) {
    WEIR_ASSIGN(reference, load_reference(options.against, ops, team));
    WEIR_TRY(check_same_vocabulary(model, *reference, options.against));
    context_max = std::min(context_max, reference->runner.model->context_max());
  } else if (options.against_kv) {
    reference.emplace();
    reference->name = std::string("with keys and values in ") + options.against_kv->name();
    reference->format = *options.against_kv;
    reference->runner.model = measured.model;
  }
  WEIR_ASSIGN(const int32_t window, window_of(options, context_max));
  std::vector<int32_t> ids = tokenizer->encode(text);
  if (options.tokens > 0 && std::ssize(ids) > options.tokens)
    ids.resize(static_cast<size_t>(options.tokens));
  WEIR_TRY(text::check_tokens(ids, *tokenizer, model.spec().vocab_size));
  if (ids.size() < 2)
    return fail(ErrorCode::kConfig, options.file +
                                        ": expected a text of at least 2 tokens; found " +
                                        std::to_string(ids.size()));
  WEIR_TRY(open_session(measured, team, window, choice.kv_format));
  if (reference) WEIR_TRY(open_session(reference->runner, team, window, reference->format));
  for (size_t begin = 0; begin + 1 < ids.size(); begin += static_cast<size_t>(window)) {
    const size_t count = std::min(static_cast<size_t>(window), ids.size() - begin);
    if (count < 2) break;
    WEIR_TRY(score_window(std::span(ids).subspan(begin, count), measured,
                          reference ? &*reference : nullptr, ops));
    std::fprintf(stderr, "\r%zu of %zu tokens, perplexity %.4f ", begin + count, ids.size(),
                 std::exp(measured.total.mean()));
  }
  std::fprintf(stderr, "\n");
  print_total(choice.model_card.files.name(), measured.total, window);
  if (reference) {
    print_total("reference " + reference->name, reference->runner.total, window);
    print_difference(reference->difference);
    print_divergence(reference->tally);
  }
  // As if the text had been generated: that is what replays and caches are about.
  if (routes.trace)
    return measure::write_file(measure::as_generated(*routes.trace), options.route_trace);
  return {};
}

}  // namespace weir
