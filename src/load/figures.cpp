// Percentiles, the table, the JSON.
#include "load/figures.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/json.h"

namespace weir::load {

double percentile(Tally::Samples samples, double share) {
  if (samples.empty()) return 0;
  const auto at = samples.begin() + static_cast<ptrdiff_t>(percentile_rank(share, samples.size()));
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

namespace {

constexpr size_t kErrorsMax = 16;

struct Row {
  const char* name;
  const char* key;
  double p50, p90, p99, max;
  uint64_t count;
};

template <class... Args>
void append(std::string& out, const char* format, Args... args) {
  char line[256];
  const int length = std::snprintf(line, sizeof line, format, args...);
  out.append(line, std::min(static_cast<size_t>(std::max(length, 0)), sizeof line - 1));
}

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

// A time in milliseconds.
float ms(int64_t from, int64_t to) { return static_cast<float>(to - from) / 1e6f; }

// An answer without text (its tokens gave no whole character) has its first token at its end.
float ttft_ms(const Outcome& o) { return ms(o.due_ns, o.pieces > 0 ? o.first_ns : o.end_ns); }

float tpot_ms(const Outcome& o) {
  return o.output_tokens > 1
             ? (ms(o.due_ns, o.end_ns) - ttft_ms(o)) / static_cast<float>(o.output_tokens - 1)
             : 0;
}

Row row(const char* name, const char* key, const Tally::Samples& samples) {
  return {name,
          key,
          percentile(samples, 0.5),
          percentile(samples, 0.9),
          percentile(samples, 0.99),
          percentile(samples, 1.0),
          samples.size()};
}

Row gap_row(const GapHistogram& gaps) {
  return {"ITL",
          "itl_ms",
          gaps.percentile_ms(0.5),
          gaps.percentile_ms(0.9),
          gaps.percentile_ms(0.99),
          gaps.max_ms(),
          gaps.count()};
}

std::array<Row, 5> rows(const Tally& tally, const GapHistogram& gaps) {
  return {row("TTFT", "ttft_ms", tally.ttft), row("TPOT", "tpot_ms", tally.tpot), gap_row(gaps),
          row("E2E", "e2e_ms", tally.e2e), row("refused", "refusal_ms", tally.refusal)};
}

void append_rows(std::string& out, const std::array<Row, 5>& rows) {
  for (const Row& r : rows)
    if (r.count > 0)
      append(out, "%-8s %10.2f %10.2f %10.2f %10.2f %10llu\n", r.name, r.p50, r.p90, r.p99, r.max,
             static_cast<unsigned long long>(r.count));
}

}  // namespace

void Tally::add(const Outcome& o, bool is_good, bool stream) {
  switch (o.kind) {
    case Outcome::Kind::kAborted:
      ++aborted;
      return;
    case Outcome::Kind::kRefused:
      ++refused;
      refusal.push_back(ms(o.due_ns, o.end_ns));
      return;
    case Outcome::Kind::kFailed:
      ++failed;
      return;
    case Outcome::Kind::kOk:
      break;
  }
  ++ok;
  if (is_good) ++good;
  if (!o.has_usage) ++without_usage;
  prompt_tokens += o.prompt_tokens;
  cached_tokens += o.cached_tokens;
  output_tokens += o.output_tokens;
  ttft.push_back(ttft_ms(o));
  e2e.push_back(ms(o.due_ns, o.end_ns));
  if (o.output_tokens > 1 && stream) tpot.push_back(tpot_ms(o));
}

void Figures::add(const Outcome& o) {
  ++by_status_[o.status];
  if (o.kind == Outcome::Kind::kFailed &&
      (errors_.size() < kErrorsMax || errors_.contains(o.error)))
    ++errors_[o.error];
  const bool good = is_good(o);
  all_.add(o, good, options_.stream);
  classes_[static_cast<size_t>(o.class_index)].add(o, good, options_.stream);
  if (!options_.log_path.empty()) log_outcome(o, good);
}

std::string Figures::failures() const {
  std::string text;
  for (const auto& [error, count] : errors_)
    text.append(text.empty() ? "" : "; ").append(error).append(" (" + std::to_string(count) + ")");
  return text;
}

bool Figures::is_good(const Outcome& o) const {
  const auto kept = [](double limit, float found) { return limit == 0 || found <= limit; };
  return o.kind == Outcome::Kind::kOk && kept(options_.slo_ttft_ms, ttft_ms(o)) &&
         (!options_.stream || kept(options_.slo_tpot_ms, tpot_ms(o))) &&
         kept(options_.slo_e2e_ms, ms(o.due_ns, o.end_ns));
}

void Figures::log_outcome(const Outcome& o, bool good) {
  static constexpr std::array<const char*, 4> kKinds = {"ok", "refused", "failed", "aborted"};
  const auto s = [](int64_t ns) { return static_cast<double>(ns) / 1e9; };
  JsonWriter json(log_);
  json.begin_object().field("class", options_.class_name(o.class_index));
  json.field("kind", kKinds[static_cast<size_t>(o.kind)]).field("status", o.status);
  json.field("due_s", s(o.due_ns)).field("end_s", s(o.end_ns)).field("ttft_ms", ttft_ms(o));
  json.field("gap_max_ms", ms(0, o.gap_max_ns)).field("good", good);
  json.field("prompt_tokens", o.prompt_tokens).field("cached_tokens", o.cached_tokens);
  json.field("output_tokens", o.output_tokens);
  json.end_object();
  log_ += '\n';
}

GapHistogram Figures::all_gaps() const {
  GapHistogram all;
  for (const GapHistogram& gaps : gaps_) all.add(gaps);
  return all;
}

std::string Figures::table() const {
  std::string out;
  append(out, "%s, %s, prompt %d:%d words after %d shared, output %d:%d tokens, seed %llu\n",
         model.empty() ? "(no model)" : model.c_str(),
         options_.rate > 0 ? "open loop" : "closed loop", options_.prompt_words.low,
         options_.prompt_words.high, options_.prefix_words, options_.output_tokens.low,
         options_.output_tokens.high, static_cast<unsigned long long>(options_.seed));
  append(out, "%lld ok, %lld failed, %lld refused, %lld aborted in %.2f s%s\n",
         static_cast<long long>(all_.ok), static_cast<long long>(all_.failed),
         static_cast<long long>(all_.refused), static_cast<long long>(all_.aborted), wall_s,
         interrupted ? " (interrupted)" : "");
  append(out, "requests/s %.2f   output tok/s %.1f   prompt tok/s %.1f%s\n",
         per_second(static_cast<double>(all_.ok), wall_s),
         per_second(static_cast<double>(all_.output_tokens), wall_s),
         per_second(static_cast<double>(all_.prompt_tokens), wall_s),
         all_.without_usage > 0 ? "   (some answers without usage: pieces counted)" : "");
  append(out, "%-8s %10s %10s %10s %10s %10s\n", "ms", "p50", "p90", "p99", "max", "count");
  append_rows(out, rows(all_, all_gaps()));
  for (size_t i = 0; options_.class_count() > 1 && i < classes_.size(); ++i) {
    const Tally& tally = classes_[i];
    append(out, "class %s: %lld ok, %lld failed, %lld refused, %lld good\n",
           options_.class_name(static_cast<int32_t>(i)).c_str(), static_cast<long long>(tally.ok),
           static_cast<long long>(tally.failed), static_cast<long long>(tally.refused),
           static_cast<long long>(tally.good));
    append_rows(out, rows(tally, gaps_[i]));
  }
  if (options_.has_objectives())
    append(out, "goodput %.2f requests/s (%lld of %lld)\n",
           per_second(static_cast<double>(all_.good), wall_s), static_cast<long long>(all_.good),
           static_cast<long long>(all_.ok + all_.failed + all_.refused));
  if (server.is_known)
    append(out, "server CPU %.2f s (%.0f %% of a core), memory %.1f MiB, at most %.1f MiB\n",
           server.cpu_s, 100 * per_second(server.cpu_s, server_s), mib(server.resident_bytes),
           mib(server.resident_bytes_max));
  if (options_.idle > 0)
    append(out, "idle connections %d of %d still open\n", idle_open, options_.idle);
  if (not_sent > 0)
    append(out, "%lld arrivals not sent: connections-max\n", static_cast<long long>(not_sent));
  for (const auto& [status, count] : by_status_)
    if (status != 200) append(out, "status %d: %lld\n", status, static_cast<long long>(count));
  for (const auto& [text, count] : errors_)
    append(out, "error, %lld times: %s\n", static_cast<long long>(count), text.c_str());
  return out;
}

void Figures::write_tally(JsonWriter& json, const Tally& tally, const GapHistogram& gaps) const {
  json.field("ok", tally.ok).field("failed", tally.failed).field("refused", tally.refused);
  json.field("aborted", tally.aborted).field("without_usage", tally.without_usage);
  json.field("prompt_tokens", tally.prompt_tokens).field("cached_tokens", tally.cached_tokens);
  json.field("output_tokens", tally.output_tokens);
  const auto rate = [this](int64_t n) { return per_second(static_cast<double>(n), wall_s); };
  json.field("requests_per_s", rate(tally.ok));
  json.field("output_tokens_per_s", rate(tally.output_tokens));
  json.field("prompt_tokens_per_s", rate(tally.prompt_tokens));
  for (const Row& r : rows(tally, gaps)) {
    json.key(r.key).begin_object().field("count", r.count).field("p50", r.p50);
    json.field("p90", r.p90).field("p99", r.p99).field("max", r.max).end_object();
  }
  json.field("good", tally.good).field("goodput_per_s", rate(tally.good));
}

std::string Figures::json() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("model", model).field("loop", options_.rate > 0 ? "open" : "closed");
  json.field("clients", options_.clients).field("rate", options_.rate);
  json.field("burstiness", options_.burstiness).field("seed", options_.seed);
  json.field("wall_s", wall_s).field("interrupted", interrupted);
  json.field("not_sent", not_sent);
  json.field("connections", connections).field("idle_open", idle_open);
  json.field("slo_ttft_ms", options_.slo_ttft_ms).field("slo_tpot_ms", options_.slo_tpot_ms);
  json.field("slo_e2e_ms", options_.slo_e2e_ms);
  write_tally(json, all_, all_gaps());
  if (options_.class_count() > 1) {
    json.key("classes").begin_object();
    for (size_t i = 0; i < classes_.size(); ++i) {
      json.key(options_.class_name(static_cast<int32_t>(i))).begin_object();
      write_tally(json, classes_[i], gaps_[i]);
      json.end_object();
    }
    json.end_object();
  }
  if (server.is_known) {
    json.key("server").begin_object().field("cpu_s", server.cpu_s);
    json.field("memory_mib", mib(server.resident_bytes));
    json.field("memory_max_mib", mib(server.resident_bytes_max)).end_object();
  }
  json.key("by_status").begin_object();
  for (const auto& [status, count] : by_status_) json.field(std::to_string(status), count);
  json.end_object().key("errors").begin_object();
  for (const auto& [text, count] : errors_) json.field(text, count);
  json.end_object().end_object();
  out += '\n';
  return out;
}

}  // namespace weir::load
