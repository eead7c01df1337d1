#include "commands/perplexity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_team.h"
#include "commands/route_measuring.h"
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
  double mean() const { return sum / static_cast<double>(count); }
  // Standard error of the mean, taking tokens as independent.
  double error() const {
    const double n = static_cast<double>(count);
    return std::sqrt(std::max(0.0, squares / n - mean() * mean()) / n);
  }
};

// Each token of a window but the first, given those before it.
void score_window(std::span<const int32_t> ids, model::Session& session, const kernels::Ops& ops,
                  Total& total) {
  const size_t predicted = ids.size() - 1;
  std::vector<float> nll(predicted);
  session.begin(0, static_cast<int32_t>(ids.size()));
  for (size_t begin = 0; begin < predicted; begin += kRowsMax) {
    const size_t count = std::min<size_t>(kRowsMax, predicted - begin);
    const model::Session::Slice slice = {.tokens = ids.subspan(begin, count), .all_logits = true};
    session.forward({&slice, 1}, [&](size_t, size_t token, std::span<float> logits) {
      const size_t at = begin + token;
      nll[at] = ops.log_sum_exp(logits.data(), static_cast<int32_t>(logits.size())) -
                logits[static_cast<size_t>(ids[at + 1])];
    });
  }
  for (const float loss : nll) {
    total.sum += loss;
    total.squares += static_cast<double>(loss) * loss;
  }
  total.count += static_cast<int64_t>(predicted);
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
  WEIR_ASSIGN(const std::unique_ptr<model::Model> model,
              model::Model::load(choice.model_card, model_options, ops, team));
  WEIR_TRY(choose_bundle(*model));
  WEIR_ASSIGN(const RouteMeasuring routes,
              measure_routes(options, *model, /*sequences=*/1, /*tokens=*/1));
  WEIR_TRY(open_experts(*model, options, expert_memory(*model, options), /*sequences_max=*/1));
  const int32_t window =
      options.ctx > 0 ? options.ctx : std::min(kWindowDefault, model->context_max());
  if (window < 2 || window > model->context_max())
    return fail(ErrorCode::kConfig, "--ctx: expected 2 to " + std::to_string(model->context_max()) +
                                        "; found " + std::to_string(window));
  const std::vector<int32_t> ids = tokenizer->encode(text);
  WEIR_TRY(text::check_tokens(ids, *tokenizer, model->spec().vocab_size));
  if (ids.size() < 2)
    return fail(ErrorCode::kConfig, options.file +
                                        ": expected a text of at least 2 tokens; found " +
                                        std::to_string(ids.size()));
  WEIR_ASSIGN(
      model::Session session,
      model::Session::create(*model, team, {.tokens_max = window, .kv_type = choice.kv_type}));
  Total total;
  for (size_t begin = 0; begin + 1 < ids.size(); begin += static_cast<size_t>(window)) {
    const size_t count = std::min(static_cast<size_t>(window), ids.size() - begin);
    if (count < 2) break;
    score_window(std::span(ids).subspan(begin, count), session, ops, total);
    std::fprintf(stderr, "\r%zu of %zu tokens, perplexity %.4f ", begin + count, ids.size(),
                 std::exp(total.mean()));
  }
  std::fprintf(stderr, "\n");
  std::printf(
      "%s: %lld tokens predicted in windows of %d, nll %.6f +- %.6f nats, perplexity %.4f\n",
      choice.model_card.files.name().c_str(), static_cast<long long>(total.count), window,
      total.mean(), total.error(), std::exp(total.mean()));
  // As if the text had been generated: that is what replays and caches are about.
  if (routes.trace)
    return measure::write_file(measure::as_generated(*routes.trace), options.route_trace);
  return {};
}

}  // namespace weir
