#include "suite/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_team.h"
#include "measure/divergence.h"
#include "model/session.h"
#include "program/expert_streaming.h"
#include "program/model_choice.h"
#include "text/tokenizer.h"

namespace weir::suite {

namespace {

// Tokens of a window; each begins without a past, as `weir perplexity` has it.
constexpr int32_t kWindow = 512;

// A model, and a session that has room for one window.
struct Side {
  std::unique_ptr<model::Model> model;
  std::optional<model::Session> session;
  std::vector<float> losses;  // Nats, of each predicted token.
};

Result<Side> load_side(const Options& options, const ModelChoice& choice, const Arithmetic& way,
                       const kernels::Ops& ops, ThreadTeam& team) {
  Side side;
  model::ModelOptions model_options;
  model_options.compute = way.compute;
  model_options.stream_experts = options.stream_experts;
  model_options.quantise_bits = options.quantize;
  model_options.rows_max = kWindow;
  WEIR_ASSIGN(side.model, model::Model::load(choice.model_card, model_options, ops, team));
  WEIR_TRY(choose_bundle(*side.model));
  WEIR_TRY(open_experts(*side.model, options, expert_memory(*side.model, options),
                        /*sequences_max=*/1));
  WEIR_ASSIGN(side.session,
              model::Session::create(*side.model, team,
                                     {.tokens_max = std::min(kWindow, side.model->context_max()),
                                      .kv_format = way.kv}));
  return side;
}

double mean_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Standard error of the mean, taking tokens as independent.
double error_of(std::span<const float> values, double mean) {
  double squares = 0;
  for (const float value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / std::max(count - 1, 1.0) / count);
}

using OnRow = std::function<void(size_t token, std::span<const float> logits)>;

// The logits after each token of a window but the last; adds what they lose.
void run_window(Side& side, std::span<const int32_t> ids, const kernels::Ops& ops,
                const OnRow& on_row) {
  const size_t before = side.losses.size();
  side.losses.resize(before + ids.size() - 1);
  const model::Session::Slice slice = {.tokens = ids.first(ids.size() - 1), .all_logits = true};
  side.session->begin(0, static_cast<int32_t>(ids.size()));
  side.session->forward({&slice, 1}, [&](size_t, size_t token, std::span<float> logits) {
    side.losses[before + token] =
        ops.log_sum_exp(logits.data(), static_cast<int32_t>(logits.size())) -
        logits[static_cast<size_t>(ids[token + 1])];
    on_row(token, logits);
  });
}

Result<void> compare_window(Side& exact, Side& served, std::span<const int32_t> ids,
                            const kernels::Ops& ops, measure::DivergenceTally& tally) {
  const auto vocab = static_cast<size_t>(exact.model->spec().vocab_size);
  std::vector<float> reference((ids.size() - 1) * vocab);
  run_window(exact, ids, ops, [&](size_t token, std::span<const float> logits) {
    std::ranges::copy(logits, reference.begin() + static_cast<std::ptrdiff_t>(token * vocab));
  });
  std::vector<measure::Divergence> found(ids.size() - 1);
  run_window(served, ids, ops, [&](size_t token, std::span<const float> logits) {
    found[token] =
        measure::compare_logits(std::span(reference).subspan(token * vocab, vocab), logits);
  });
  for (const measure::Divergence& divergence : found) {
    if (std::isnan(divergence.kl))
      return fail(ErrorCode::kConfig, "the model's logits are no numbers");
    tally.add(divergence);
  }
  return {};
}

Result<ArithmeticFigures> compare(const Options& options, const ModelChoice& choice,
                                  const Arithmetic& exact_way, const Arithmetic& served_way,
                                  std::string_view text, int32_t tokens_max) {
  WEIR_ASSIGN(const card::TokenizerFile file, choice.model_card.open_tokenizer());
  WEIR_ASSIGN(const std::unique_ptr<text::Tokenizer> tokenizer,
              text::Tokenizer::load_file(file.name, file.text(), file.config));
  std::vector<int32_t> ids = tokenizer->encode(text);
  ids.resize(std::min(ids.size(), static_cast<size_t>(tokens_max)));
  const kernels::Ops& ops = kernels::ops_for(choice.isa);
  ThreadTeam team(choice.threads);
  WEIR_ASSIGN(Side exact, load_side(options, choice, exact_way, ops, team));
  WEIR_ASSIGN(Side served, load_side(options, choice, served_way, ops, team));
  const auto window = static_cast<size_t>(std::min(kWindow, exact.model->context_max()));
  ArithmeticFigures figures;
  measure::DivergenceTally tally;
  for (size_t begin = 0; begin + 1 < ids.size(); begin += window) {
    const size_t count = std::min(window, ids.size() - begin);
    if (count < 2) break;
    WEIR_TRY(compare_window(exact, served, std::span(ids).subspan(begin, count), ops, tally));
    figures.tokens += static_cast<int64_t>(count) - 1;
  }
  if (figures.tokens == 0) return fail(ErrorCode::kConfig, "the tokenizer makes no tokens of it");
  figures.perplexity = std::exp(mean_of(served.losses));
  figures.exact_perplexity = std::exp(mean_of(exact.losses));
  std::vector<float> more(served.losses.size());
  std::ranges::transform(served.losses, exact.losses, more.begin(), std::minus<>());
  figures.loss_more = mean_of(more);
  figures.loss_more_error = error_of(more, figures.loss_more);
  figures.divergence = tally.mean();
  figures.same_top_share = tally.same_top_share();
  return figures;
}

}  // namespace

Result<ArithmeticFigures> compare_arithmetic(const Options& options, std::string_view text,
                                             int32_t tokens_max) {
  WEIR_ASSIGN(const ModelChoice choice, choose_model(options));
  return compare(options, choice, {}, {.compute = choice.compute, .kv = choice.kv_format}, text,
                 tokens_max);
}

Result<ArithmeticFigures> compare_arithmetic(const Options& options, const Arithmetic& exact,
                                             const Arithmetic& served, std::string_view text,
                                             int32_t tokens_max) {
  WEIR_ASSIGN(const ModelChoice choice, choose_model(options));
  return compare(options, choice, exact, served, text, tokens_max);
}

}  // namespace weir::suite
