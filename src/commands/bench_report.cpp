#include "commands/bench_report.h"

#include <cstdio>

#include "base/byte_size.h"
#include "base/json.h"

namespace weir {

namespace {

double gb_per_s(const BenchSetting& s, double tokens_per_second) {
  return static_cast<double>(s.model.token_work().weight_bytes) * tokens_per_second / 1e9;
}
double tops(const BenchSetting& s, double tokens_per_second) {
  return 2 * static_cast<double>(s.model.token_work().macs) * tokens_per_second / 1e12;
}
// The arithmetic that bounds this run: int8 in fast mode, float32 in exact.
double peak_tops(const BenchSetting& s) {
  return s.choice.compute == model::Compute::kFast ? s.limits.int8_tops : s.limits.f32_tflops;
}

void write_budget(JsonWriter& w, const BenchSetting& s, const BenchBudget& b) {
  const BenchFigures& m = b.measured;
  if (b.plan) {
    w.key("experts").begin_object();
    w.field("memory", b.memory).field("slots", b.plan->slots).field("of", b.plan->experts);
    w.field("cycles", b.plan->cycles()).field("cycle_bytes", b.plan->cycle_bytes);
    w.field("io", b.io);
    w.field("prefetch", word_of(s.options.ssd_prefetch));
    w.field("routing", s.routing.empty() ? "the model's own" : s.routing).end_object();
  }
  w.key("prefill").begin_object();
  w.field("prompt", s.options.bench_prompt).field("tokens_per_second", m.prefill.median);
  w.field("low", m.prefill.low).field("high", m.prefill.high);
  w.field("tops", tops(s, m.prefill.median));
  if (m.prefill_experts) w.field("prompt_bytes", m.prefill_experts->prompt_bytes());
  w.field("share_of_peak", tops(s, m.prefill.median) / peak_tops(s)).end_object();
  w.key("decode").begin_array();
  for (const BenchFigures::Decode& d : m.decode) {
    const double gb = gb_per_s(s, d.speed.median / d.batch);
    w.begin_object().field("depth", d.depth).field("batch", d.batch);
    w.field("tokens_per_second", d.speed.median);
    w.field("low", d.speed.low).field("high", d.speed.high).field("weights_gb_s", gb);
    w.field("share_of_read", gb / s.limits.read_gb_s);
    w.field("share_of_plain_read", gb / s.limits.plain_read_gb_s);
    w.field("share_of_peak", tops(s, d.speed.median) / peak_tops(s));
    if (d.experts) {
      w.key("experts").begin_object();
      d.experts->write(w);
      w.end_object();
    }
    w.end_object();
  }
  w.end_array();
}

}  // namespace

void print_bench_table(const BenchSetting& s, const std::vector<BenchBudget>& budgets) {
  std::printf("%s, %s on %s, %d threads, compute %s\n", s.choice.model_card.files.name().c_str(),
              std::string(kernels::isa_name(s.choice.isa)).c_str(),
              kernels::processor_name().c_str(), s.choice.threads,
              std::string(word_of(s.choice.compute)).c_str());
  std::printf("limits of this run: read %.1f GB/s (a plain loop %.1f), %s %.2f TOPS\n",
              s.limits.read_gb_s, s.limits.plain_read_gb_s,
              s.choice.compute == model::Compute::kFast ? "int8" : "f32", peak_tops(s));
  std::printf("bytes of weights per token: %s; multiply-adds per token: %.1f M\n\n",
              human_bytes(s.model.token_work().weight_bytes).c_str(),
              static_cast<double>(s.model.token_work().macs) / 1e6);
  std::printf("%-14s %12s %22s %18s %18s\n", "", "tokens/s", "low .. high", "of memory read",
              "of peak");
  const auto row = [&](const std::string& name, const Spread& speed, int32_t batch) {
    // Weights are read once a step, for all sequences of the batch.
    const double gb = batch > 0 ? gb_per_s(s, speed.median / batch) : 0;
    const double t = tops(s, speed.median);
    std::printf("%-14s %12.1f %10.1f ..%10.1f", name.c_str(), speed.median, speed.low, speed.high);
    if (batch > 0) {
      std::printf(" %10.1f %5.1f %%", gb, 100 * gb / s.limits.read_gb_s);
    } else {
      std::printf(" %18s", "");
    }
    std::printf(" %10.3f %5.1f %%\n", t, 100 * t / peak_tops(s));
  };
  for (const BenchBudget& b : budgets) {
    if (b.plan)
      std::printf("\nexperts: %s for %.2f token cycles (%lld of %lld), %s%s%s\n",
                  human_bytes(b.memory).c_str(), b.plan->cycles(),
                  static_cast<long long>(b.plan->slots), static_cast<long long>(b.plan->experts),
                  b.io.c_str(), s.routing.empty() ? "" : ", ", s.routing.c_str());
    const BenchFigures& m = b.measured;
    row("prefill " + std::to_string(s.options.bench_prompt), m.prefill, 0);
    for (const BenchFigures::Decode& d : m.decode) {
      row("decode x" + std::to_string(d.batch) + " @" + std::to_string(d.depth), d.speed, d.batch);
      if (d.experts) std::printf("%s", d.experts->text().c_str());
    }
  }
}

void print_bench_json(const BenchSetting& s, const std::vector<BenchBudget>& budgets) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  w.field("model", s.choice.model_card.files.name()).field("processor", kernels::processor_name());
  w.field("isa", kernels::isa_name(s.choice.isa)).field("threads", s.choice.threads);
  w.field("compute", word_of(s.choice.compute));
  w.field("weight_bytes_per_token", s.model.token_work().weight_bytes);
  w.field("macs_per_token", s.model.token_work().macs);
  w.key("limits").begin_object();
  w.field("read_gb_s", s.limits.read_gb_s);
  w.field("plain_read_gb_s", s.limits.plain_read_gb_s).field("int8_tops", s.limits.int8_tops);
  w.field("f32_tflops", s.limits.f32_tflops).end_object();
  if (budgets.size() == 1) {
    write_budget(w, s, budgets[0]);
  } else {
    w.key("budgets").begin_array();
    for (const BenchBudget& budget : budgets) {
      w.begin_object();
      write_budget(w, s, budget);
      w.end_object();
    }
    w.end_array();
  }
  w.end_object();
  std::printf("%s\n", out.c_str());
}

}  // namespace weir
