#include "ssd/expert_metrics.h"

#include <cstdio>
#include <utility>

#include "base/metrics.h"

namespace weir::ssd {

namespace {

// A reader of the page in a hurry costs the loop no more than a few milliseconds in so many
// seconds.
constexpr std::chrono::seconds kOraclePause{5};

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void render_value(std::string& out, std::string_view name, std::string_view help, double value,
                  std::string_view labels = {}) {
  render(out, name, help, MetricType::kGauge, value, labels);
}

void render_requests(std::string& out, const ExpertStore& store) {
  const StoreStats& s = store.stats();
  constexpr std::string_view kName = "weir_moe_expert_requests_total";
  render(out, kName, "Experts that steps asked for, by where they were", s.ready,
         metric_label("result", "ready"));
  render(out, kName, {}, s.in_flight, metric_label("result", "inflight"));
  render(out, kName, {}, s.absent, metric_label("result", "absent"));
  constexpr std::string_view kPrompts = "weir_moe_prompt_expert_requests_total";
  render(out, kPrompts, "The same of steps with prompts only", s.prompt_ready,
         metric_label("result", "ready"));
  render(out, kPrompts, {}, s.prompt_absent, metric_label("result", "absent"));
  render(out, "weir_moe_early_requests_total",
         "Absent ones asked for before all rows of the step had been routed", s.early);
  const uint64_t ready = s.ready.value(), late = s.in_flight.value();
  const uint64_t all = ready + late + s.absent.value();
  render_value(out, "weir_moe_hit_ratio", "Experts found in memory", ratio(ready, all));
  render_value(out, "weir_moe_late_hit_ratio", "Experts found in memory or on their way there",
               ratio(ready + late, all));
  bool first = true;
  for (size_t i = 0; i < s.layer_runs.size(); ++i) {
    if (s.layer_runs[i].value() == 0) continue;
    render_value(out, "weir_moe_union_factor",
                 std::exchange(first, false)
                     ? "Experts of a layer for so many tokens at once, by those of one token"
                     : "",
                 ratio(s.layer_experts[i].value(), s.layer_runs[i].value()) / store.plan().top_k,
                 metric_label("batch", std::to_string(1 << i)));
  }
}

void render_reads(std::string& out, const ExpertStore& store, double disk_bytes_per_second) {
  const ReadStats& r = store.reads();
  const auto each_class = [&](std::string_view name, std::string_view help, const auto& values) {
    for (int c = 0; c < kReadClasses; ++c)
      render(out, name, c == 0 ? help : "", values[static_cast<size_t>(c)],
             metric_label("class", name_of(static_cast<ReadClass>(c))));
  };
  each_class("weir_moe_disk_read_bytes_total", "Bytes read from disk, by who asked", r.bytes);
  each_class("weir_moe_disk_reads_total", "Reads, by who asked", r.reads);
  for (int c = 0; c < kReadClasses; ++c)
    render(out, "weir_moe_read_latency_ms", c == 0 ? "From asking for a read to its end" : "",
           r.latency[static_cast<size_t>(c)],
           metric_label("class", name_of(static_cast<ReadClass>(c))), 1000);
  uint64_t bytes = 0;
  for (const Counter& counter : r.bytes) bytes += counter.value();
  const double busy = static_cast<double>(r.busy_ns.value()) * 1e-9;
  const double gb = static_cast<double>(bytes) * 1e-9;
  const double gbps = busy > 0 ? gb / busy : 0;
  render_value(out, "weir_moe_disk_gbps", "Bytes a second while the disk was busy, in 1e9", gbps);
  if (disk_bytes_per_second > 0)
    render_value(out, "weir_moe_disk_eff_ratio", "The same by what 'weir calibrate' measured",
                 1e9 * gbps / disk_bytes_per_second);
  const std::chrono::duration<double, std::milli> cpu = store.io_cpu_time();
  render_value(out, "weir_moe_io_cpu_ms_per_gb",
               "Processor time of system calls that read, without interrupts and the kernel's own "
               "threads",
               gb > 0 ? cpu.count() / gb : 0);
  render(out, "weir_moe_inflight_bytes", "Bytes of reads in the kernel", r.in_flight_bytes);
  for (int e = 0; e < kReadErrors; ++e)
    render(out, "weir_moe_io_errors_total", e == 0 ? "Errors of reads, cured or not" : "",
           r.errors[static_cast<size_t>(e)],
           metric_label("errno", name_of(static_cast<ReadError>(e))));
  render(out, "weir_moe_short_reads_total", "Reads of which the rest was asked for again",
         r.short_reads);
  render(out, "weir_moe_read_retries_total", "Reads sent again after an error", r.retries);
  render(out, "weir_moe_read_failures_total", "Reads given up", r.failures);
  render(out, "weir_moe_disk_stalls_total", "Times that nothing was read for 5 s", r.stalls);
  render(out, "weir_moe_file_changes_total", "Files of the model seen to have changed",
         r.file_changes);
  render_value(out, "weir_moe_io_mode", "How experts are read", 1,
               metric_label("mode", store.mode()));
}

void render_steps(std::string& out, const ExpertStore& store) {
  const StoreStats& s = store.stats();
  const ReadStats& r = store.reads();
  const uint64_t tokens = s.tokens.value();
  const uint64_t decode_bytes = r.bytes[static_cast<size_t>(ReadClass::kDemand)].value() +
                                r.bytes[static_cast<size_t>(ReadClass::kSpeculative)].value();
  render_value(out, "weir_moe_bytes_per_token", "Bytes read for a generated token",
               ratio(decode_bytes, tokens));
  render_value(out, "weir_moe_stall_ms_per_token", "Waiting for the disk, by generated token",
               ratio(s.stall_ns.value(), tokens) * 1e-6);
  render(out, "weir_moe_step_stall_ms", "Waiting for the disk in steps with generated tokens",
         s.stall, {}, 1000);
  render_value(out, "weir_moe_stall_share", "Of the time of all steps, waiting for the disk",
               ratio(s.stall_ns.value(), s.step_ns.value()));
  render_value(out, "weir_moe_early_share",
               "Of the time of all steps, reading for some rows while others were to be routed",
               ratio(s.early_ns.value(), s.step_ns.value()));
  render_value(out, "weir_moe_disk_busy_ratio", "Of the time of all steps, with a read under way",
               ratio(r.busy_ns.value(), s.step_ns.value()));
  render(out, "weir_moe_evictions_total", "Experts that made room for others",
         store.cache().evictions);
  render(out, "weir_moe_rereads_total", "Experts read again within 64 tokens",
         store.cache().rereads);
  render(out, "weir_moe_failed_experts_total", "Experts that could not be read", s.failed_experts);
  render(out, "weir_moe_distrusted_experts_total",
         "Experts dropped because their file was written to about when they were read",
         s.distrusted_experts);
  render(out, "weir_moe_crc_failures_total", "Parts of a bundle with a wrong checksum",
         s.crc_failures);
  render(out, "weir_moe_source_parts_total",
         "Parts read from the checkpoint because the bundle's are lost", s.source_parts);
  constexpr std::string_view kSlots = "weir_moe_slots";
  render_value(out, kSlots, "Places for experts in memory", static_cast<double>(store.plan().slots),
               metric_label("state", "planned"));
  render(out, kSlots, {}, s.slots_usable, metric_label("state", "usable"));
  render(out, kSlots, {}, s.slots_shed, metric_label("state", "shed"));
  render(out, kSlots, {}, store.cache().residents, metric_label("state", "used"));
  render_value(out, "weir_moe_budget_bytes", "Memory for experts and buffers",
               static_cast<double>(store.plan().memory));
}

// One metric's samples stand together.
void render_guesses(std::string& out, const Prefetcher& prefetcher) {
  const auto each = [&](std::string_view name, std::string_view help, auto&& value) {
    for (size_t i = 0; i < kGuessSources; ++i) {
      const auto source = static_cast<GuessSource>(i);
      render_value(out, name, i == 0 ? help : "",
                   static_cast<double>(value(prefetcher.stats(source))),
                   metric_label("source", name_of(source)));
    }
  };
  const auto total = [&](std::string_view name, std::string_view help,
                         Counter SourceStats::*counter) {
    for (size_t i = 0; i < kGuessSources; ++i) {
      const auto source = static_cast<GuessSource>(i);
      render(out, name, i == 0 ? help : "", prefetcher.stats(source).*counter,
             metric_label("source", name_of(source)));
    }
  };
  using Stats = SourceStats;
  each("weir_moe_spec_on", "1: guesses of this source are read",
       [](const Stats& s) { return s.on.value(); });
  each("weir_moe_pred_precision", "Guesses that came true",
       [](const Stats& s) { return ratio(s.right.value(), s.guesses.value()); });
  each("weir_moe_pred_recall", "Experts asked for that were guessed",
       [](const Stats& s) { return ratio(s.right.value(), s.routed.value()); });
  each("weir_moe_pred_miss_recall", "Experts that had to be read and were guessed",
       [](const Stats& s) { return ratio(s.foreseen.value(), s.misses.value()); });
  total("weir_moe_spec_issued_bytes_total", "Bytes read because of guesses", &Stats::issued_bytes);
  total("weir_moe_spec_used_bytes_total", "Of them, asked for later", &Stats::used_bytes);
  total("weir_moe_spec_late_bytes_total", "Of those, still on their way then", &Stats::late_bytes);
  total("weir_moe_spec_wasted_bytes_total", "Evicted, never asked for", &Stats::wasted_bytes);
  total("weir_moe_spec_dropped_bytes_total", "Taken back before the disk saw them",
        &Stats::dropped_bytes);
}

}  // namespace

void ExpertPage::render(std::string& out) {
  render_requests(out, store_);
  render_oracle(out);
  render_steps(out, store_);
  render_reads(out, store_, disk_bytes_per_second_);
  render_guesses(out, store_.prefetcher());
}

void ExpertPage::render_oracle(std::string& out) {
  const Clock::time_point now = Clock::now();
  if (oracle_asked_ == Clock::time_point::min() || now - oracle_asked_ >= kOraclePause) {
    oracle_ = store_.oracle();
    oracle_asked_ = now;
  }
  if (oracle_.oracle == 0) return;
  render_value(out, "weir_moe_oracle_ratio",
               "Experts found in memory lately, by those of a cache that knows the future",
               oracle_.ratio());
}

ExpertMinute::Sums ExpertMinute::sums(const ExpertStore& store) {
  const StoreStats& s = store.stats();
  const ReadStats& r = store.reads();
  const auto bytes = [&r](ReadClass c) { return r.bytes[static_cast<size_t>(c)].value(); };
  Sums now;
  now.ready = s.ready.value();
  now.asked = now.ready + s.in_flight.value() + s.absent.value();
  now.tokens = s.tokens.value();
  now.bytes = bytes(ReadClass::kDemand) + bytes(ReadClass::kSpeculative);
  now.prefill_bytes = bytes(ReadClass::kPrefill);
  now.step_ns = s.step_ns.value();
  now.stall_ns = s.stall_ns.value();
  now.busy_ns = r.busy_ns.value();
  for (size_t i = 0; i < kGuessSources; ++i) {
    const SourceStats& guesses = store.prefetcher().stats(static_cast<GuessSource>(i));
    now.useful += guesses.used_bytes.value();
    now.wasted += guesses.wasted_bytes.value();
  }
  return now;
}

std::string ExpertMinute::line(const ExpertStore& store) {
  const Sums now = sums(store);
  const Sums then = std::exchange(last_, now);
  if (now.step_ns == then.step_ns) return {};
  const double seconds = static_cast<double>(now.busy_ns - then.busy_ns) * 1e-9;
  const auto bytes =
      static_cast<double>(now.bytes - then.bytes + now.prefill_bytes - then.prefill_bytes);
  const OracleWindow::Rates oracle = store.oracle();
  char text[320];
  std::snprintf(text, sizeof text,
                "tokens=%llu in_memory=%.1f%% of_oracle=%.2f read_per_token=%.1fMB prompts=%.0fMB "
                "disk=%.2fGB/s stall=%.0f%% guessed_useful=%.0fMB guessed_wasted=%.0fMB",
                static_cast<unsigned long long>(now.tokens - then.tokens),
                100 * ratio(now.ready - then.ready, now.asked - then.asked), oracle.ratio(),
                1e-6 * ratio(now.bytes - then.bytes, now.tokens - then.tokens),
                1e-6 * static_cast<double>(now.prefill_bytes - then.prefill_bytes),
                seconds > 0 ? bytes * 1e-9 / seconds : 0,
                100 * ratio(now.stall_ns - then.stall_ns, now.step_ns - then.step_ns),
                1e-6 * static_cast<double>(now.useful - then.useful),
                1e-6 * static_cast<double>(now.wasted - then.wasted));
  return text;
}

}  // namespace weir::ssd
