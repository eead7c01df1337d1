#include "commands/bench.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/seconds.h"
#include "base/thread_team.h"
#include "commands/bench_report.h"
#include "commands/bench_trace.h"
#include "commands/route_measuring.h"
#include "kv/kv_cache.h"
#include "kv/layout.h"
#include "model/batch_builder.h"
#include "program/expert_streaming.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"

namespace weir {

namespace {

using std::chrono::steady_clock;

constexpr int32_t kPrefillRows = 512;  // Of a step: an engine's chunk.

Spread spread(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  const double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {median, values.front(), values.back()};
}

// The pages of sequences of which each holds as many blocks: those of its own, one after another.
// Of hot pages (kv/layout.h) it holds that of the first block, and a ring of those that are written
// next, so that memory grows with tokens as a server's does.
class PageTables {
 public:
  // `written`: tokens that are written before others' pages may be taken for them.
  PageTables(const kv::MemoryLayout& layout, int32_t written)
      : groups_(static_cast<int32_t>(layout.groups().size())),
        hot_group_(layout.hot_group()),
        ring_(written / kernels::kPageTokens + 2) {}

  int32_t hot_pages(int32_t sequences, int32_t blocks) const {
    return sequences * std::min(1 + ring_, blocks);
  }
  void set(int32_t sequences, int32_t blocks) {
    blocks_ = blocks;
    pages_.clear();
    for (int32_t s = 0; s < sequences; ++s)
      for (int32_t g = 0; g < groups_; ++g)
        for (int32_t b = 0; b < blocks; ++b)
          pages_.push_back(g != hot_group_ ? s * blocks + b
                           : b == 0        ? hot_pages(s, blocks)
                                           : hot_pages(s, blocks) + 1 + (b - 1) % ring_);
  }
  kv::MemoryView of(int32_t sequence) const {
    return {.tables = pages_.data() + int64_t{sequence} * groups_ * blocks_,
            .stride = blocks_,
            .state = sequence,
            .cross = sequence};
  }

 private:
  const int32_t groups_, hot_group_, ring_;
  int32_t blocks_ = 0;
  std::vector<int32_t> pages_;
};

// Runs batches on a model as the engine would, without scheduler or network: greedy tokens feed the
// next step through the places that they are left in.
class Bench : public model::RowSink {
 public:
  Bench(model::Model& model, const kv::KvCache& cache, PageTables& tables, const kernels::Ops& ops,
        ThreadTeam& team, int32_t rows_max, int32_t batch_max)
      : model_(model),
        cache_(cache),
        tables_(tables),
        ops_(ops),
        team_(team),
        rows_max_(rows_max),
        batch_(rows_max, batch_max),
        taken_(static_cast<size_t>(batch_max)) {}

  void on_rows(int32_t wanted, int32_t, model::Rows rows, int) override {
    taken_[static_cast<size_t>(wanted)].token = ops_.argmax(rows.data, rows.width);
  }

  // `count` tokens into each of `batch` sequences from position 0, in chunks; the last row of each
  // sequence is sampled. Each has memory for so many blocks.
  void prefill(int32_t batch, int32_t count, int32_t blocks) {
    tables_.set(batch, blocks);
    for (int32_t s = 0; s < batch; ++s) {
      for (int32_t begin = 0; begin < count; begin += rows_max_) {
        const int32_t rows = std::min(rows_max_, count - begin);
        batch_.clear();
        batch_.add_slice({.first_position = begin,
                          .prompt_length = count,
                          .memory = tables_.of(s),
                          .sequence = s});
        for (int32_t i = 0; i < rows; ++i) batch_.add_token(random_token());
        if (begin + rows == count) batch_.want_next();
        run();
      }
    }
  }

  // `steps` decode steps of `batch` sequences that stand at `position`, after their prefill.
  void decode(int32_t batch, int32_t position, int32_t steps) {
    batch_.clear();
    for (int32_t s = 0; s < batch; ++s) {
      batch_.add_slice({.first_position = position,
                        .prompt_length = position,
                        .memory = tables_.of(s),
                        .sequence = s});
      batch_.add_place(s);
      batch_.want_next();
    }
    for (int32_t i = 0; i < steps; ++i) {
      run();
      batch_.move_on(1);
    }
  }

 private:
  int32_t random_token() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator.
    return static_cast<int32_t>((state_ >> 33) % static_cast<uint64_t>(model_.spec().vocab_size));
  }
  void run() {
    const model::Batch batch = batch_.batch(taken_.data());
    team_.run([&](int member) { model_.forward(batch, cache_, *this, team_, member); });
  }

  model::Model& model_;
  const kv::KvCache& cache_;
  PageTables& tables_;
  const kernels::Ops& ops_;
  ThreadTeam& team_;
  const int32_t rows_max_;
  uint64_t state_ = 1;
  model::BatchBuilder batch_;
  std::vector<model::Taken> taken_;  // By sequence, which is the entry of `wanted` when decoding.
};

// "1,8,32": numbers from 1 to `max`.
Result<std::vector<int32_t>> parse_list(const std::string& name, const std::string& list,
                                        int32_t max) {
  std::vector<int32_t> numbers;
  for (const char* at = list.data(); at < list.data() + list.size();) {
    int32_t number = 0;
    const auto [end, error] = std::from_chars(at, list.data() + list.size(), number);
    if (error != std::errc() || number < 1 || number > max ||
        (end != list.data() + list.size() && *end != ','))
      return fail(ErrorCode::kConfig, name + ": expected numbers from 1 to " + std::to_string(max) +
                                          " separated by commas; found '" + list + "'");
    numbers.push_back(number);
    at = end + 1;
  }
  if (numbers.empty()) return fail(ErrorCode::kConfig, name + ": expected at least one number");
  return numbers;
}

// What a run measures with; the model's experts may be opened anew for each budget.
struct Machine {
  const Options& options;
  const std::vector<int32_t>& batches;
  const std::vector<int32_t>& depths;
  model::Model& model;
  measure::RoutingTable* routing = nullptr;
  int32_t prompt_pages = 0, decode_pages = 0;

  std::optional<ExpertFigures> experts_now() const {
    if (model.experts() == nullptr) return {};
    return ExpertFigures::now(*model.experts());
  }
  std::optional<ExpertFigures> experts_since(const std::optional<ExpertFigures>& before) const {
    if (!before) return {};
    return experts_now()->since(*before);
  }
};

void measure_prefill(const Machine& m, Bench& bench, BenchFigures& measured) {
  const int32_t tokens = m.options.bench_prompt;
  std::vector<double> speeds;
  bench.prefill(1, tokens, m.prompt_pages);  // Warm: pages, caches, clocks.
  const std::optional<ExpertFigures> before = m.experts_now();
  for (int32_t r = 0; r < m.options.repetitions; ++r) {
    if (m.routing != nullptr) m.routing->move_on(tokens);
    const auto start = steady_clock::now();
    bench.prefill(1, tokens, m.prompt_pages);
    speeds.push_back(tokens / seconds_since(start));
  }
  measured.prefill = spread(speeds);
  measured.prefill_experts = m.experts_since(before);
}

void measure_decode(const Machine& m, Bench& bench, int32_t depth, int32_t batch,
                    BenchFigures& measured) {
  const int32_t steps = m.options.bench_decode;
  std::vector<double> speeds;
  bench.prefill(batch, depth, m.decode_pages);
  const auto decode = [&] {
    if (m.routing != nullptr) m.routing->move_on(steps);
    bench.decode(batch, depth, steps);
  };
  if (m.model.experts() != nullptr) decode();  // The experts in memory are those of decoding.
  const std::optional<ExpertFigures> before = m.experts_now();
  for (int32_t r = 0; r < m.options.repetitions; ++r) {
    const auto start = steady_clock::now();
    decode();
    speeds.push_back(static_cast<double>(batch) * steps / seconds_since(start));
  }
  measured.decode.push_back({depth, batch, spread(speeds), m.experts_since(before)});
}

Result<std::vector<BenchBudget>> budgets_of(const Options& options, const model::Model& model) {
  const ssd::ExpertCatalogue* catalogue = model.expert_catalogue();
  std::vector<BenchBudget> budgets;
  for (const std::string& text : split_list(options.stream_budget)) {
    double cycles = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cycles);
    if (error != std::errc() || end != text.data() + text.size() || !(cycles > 0 && cycles <= 1e6))
      return fail(ErrorCode::kConfig,
                  "--stream-budget: expected numbers above 0 separated by commas; found '" +
                      options.stream_budget + "'");
    if (catalogue != nullptr)
      budgets.push_back({.memory = static_cast<int64_t>(ssd::memory_for_cycles(
                             *catalogue, model.experts_per_token(), cycles))});
  }
  if (budgets.empty()) budgets.push_back({.memory = expert_memory(model, options)});
  return budgets;
}

}  // namespace

Result<void> run_bench(const Options& options) {
  WEIR_ASSIGN(const std::vector<int32_t> batches, parse_list("--batch", options.bench_batch, 4096));
  WEIR_ASSIGN(const std::vector<int32_t> depths,
              parse_list("--depth", options.bench_depth, 1 << 20));
  if (!options.trace.empty()) return trace_serving(options, batches);
  WEIR_ASSIGN(ModelChoice choice, choose_model(options));
  const kernels::Ops& ops = kernels::ops_for(choice.isa);
  WEIR_ASSIGN(const kernels::MachineLimits limits,
              kernels::measure_limits(choice.isa, choice.threads));
  ThreadTeam team(choice.threads);
  const int32_t batch_max = *std::ranges::max_element(batches);
  model::ModelOptions model_options;
  model_options.compute = choice.compute;
  model_options.stream_experts = options.stream_experts;
  model_options.quantise_bits = options.quantize;
  model_options.rows_max = std::max(kPrefillRows, batch_max);
  WEIR_ASSIGN(const std::unique_ptr<model::Model> model,
              model::Model::load(choice.model_card, model_options, ops, team));
  WEIR_TRY(choose_bundle(*model));
  const int32_t decode_end = *std::ranges::max_element(depths) + options.bench_decode;
  if (std::max(options.bench_prompt, decode_end) > model->context_max())
    return fail(ErrorCode::kConfig, "--prompt, --depth, --decode: the model's context has " +
                                        std::to_string(model->context_max()) +
                                        " positions; found " +
                                        std::to_string(std::max(options.bench_prompt, decode_end)));
  const auto pages_for = [](int32_t tokens) {
    return (tokens + kernels::kPageTokens - 1) / kernels::kPageTokens;
  };
  const int32_t decode_pages = pages_for(decode_end);
  const int32_t page_count = std::max(pages_for(options.bench_prompt), batch_max * decode_pages);
  WEIR_ASSIGN(kv::MemoryLayout layout,
              kv::MemoryLayout::make(model->memory_needs(), choice.kv_format));
  PageTables tables(layout, std::max(kPrefillRows, options.bench_decode));
  std::vector<int32_t> page_counts(layout.groups().size(), page_count);
  if (const int32_t hot = layout.hot_group(); hot >= 0)
    page_counts[static_cast<size_t>(hot)] =
        std::max(tables.hot_pages(1, page_count), tables.hot_pages(batch_max, decode_pages));
  WEIR_ASSIGN(const kv::KvCache cache,
              kv::KvCache::create(std::move(layout), page_counts,
                                  {.running = batch_max, .cross = batch_max}));

  // As many tokens as are generated one after another, and a prompt, but not without bound.
  constexpr int32_t kRoutedTokensMax = 8192;
  const int32_t routed = std::min<int64_t>(
      kRoutedTokensMax,
      std::max<int64_t>(options.bench_prompt,
                        decode_end + int64_t{options.repetitions + 1} * options.bench_decode));
  WEIR_ASSIGN(const RouteMeasuring routes, measure_routes(options, *model, batch_max, routed));
  WEIR_ASSIGN(std::vector<BenchBudget> budgets, budgets_of(options, *model));
  const Machine machine{options,    batches,     depths, *model, routes.table.get(),
                        page_count, decode_pages};
  for (BenchBudget& budget : budgets) {
    WEIR_TRY(open_experts(*model, options, budget.memory, batch_max));
    if (model->experts() != nullptr) {
      budget.plan = model->experts()->plan();
      budget.io = model->experts()->mode();
    }
    Bench bench(*model, cache, tables, ops, team, kPrefillRows, batch_max);
    measure_prefill(machine, bench, budget.measured);
    for (const int32_t depth : depths)
      for (const int32_t batch : batches)
        measure_decode(machine, bench, depth, batch, budget.measured);
  }
  const BenchSetting setting{options, choice, *model, limits,
                             routes.table ? routes.table->name() : ""};
  options.json ? print_bench_json(setting, budgets) : print_bench_table(setting, budgets);
  if (routes.trace) return measure::write_file(*routes.trace, options.route_trace);
  return {};
}

}  // namespace weir
