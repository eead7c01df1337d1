// Percentiles, the table, the JSON.
#include "figures.h"

#include <algorithm>
#include <cstdio>

#include "base/json.h"

namespace weir::load {

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

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

}  // namespace

void Figures::add(const Outcome& o) {
  const auto ms = [](int64_t from, int64_t to) { return static_cast<float>(to - from) / 1e6f; };
  ++by_status_[o.status];
  switch (o.kind) {
    case Outcome::Kind::kAborted:
      ++aborted_;
      return;
    case Outcome::Kind::kRefused:
      ++refused_;
      refusal_.push_back(ms(o.due_ns, o.end_ns));
      return;
    case Outcome::Kind::kFailed:
      ++failed_;
      if (errors_.size() < kErrorsMax || errors_.contains(o.error)) ++errors_[o.error];
      return;
    case Outcome::Kind::kOk:
      break;
  }
  ++ok_;
  if (!o.has_usage) ++without_usage_;
  prompt_tokens_ += o.prompt_tokens;
  output_tokens_ += o.output_tokens;
  // An answer without text (its tokens gave no whole character) has its first token at its end.
  const float ttft = ms(o.due_ns, o.pieces > 0 ? o.first_ns : o.end_ns);
  const float e2e = ms(o.due_ns, o.end_ns);
  ttft_.push_back(ttft);
  e2e_.push_back(e2e);
  float tpot = 0;
  if (o.output_tokens > 1 && options_.stream) {
    tpot = (e2e - ttft) / static_cast<float>(o.output_tokens - 1);
    tpot_.push_back(tpot);
  }
  const bool good = (options_.slo_ttft_ms == 0 || ttft <= options_.slo_ttft_ms) &&
                    (options_.slo_tpot_ms == 0 || tpot <= options_.slo_tpot_ms);
  if (good) ++good_;
}

// The smallest sample that at least this share does not exceed.
double Figures::percentile(Samples samples, double share) {
  if (samples.empty()) return 0;
  const auto at = samples.begin() + static_cast<ptrdiff_t>(percentile_rank(share, samples.size()));
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

namespace {

template <class Percentile, class Samples>
Row row(const char* name, const char* key, const Samples& samples, Percentile percentile) {
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

}  // namespace

std::string Figures::table() const {
  std::string out;
  append(out, "%s, %s, prompt %d:%d words after %d shared, output %d:%d tokens, seed %llu\n",
         model.empty() ? "(no model)" : model.c_str(),
         options_.rate > 0 ? "open loop" : "closed loop", options_.prompt_words.low,
         options_.prompt_words.high, options_.prefix_words, options_.output_tokens.low,
         options_.output_tokens.high, static_cast<unsigned long long>(options_.seed));
  append(out, "%lld ok, %lld failed, %lld refused, %lld aborted in %.2f s%s\n",
         static_cast<long long>(ok_), static_cast<long long>(failed_),
         static_cast<long long>(refused_), static_cast<long long>(aborted_), wall_s,
         interrupted ? " (interrupted)" : "");
  append(out, "requests/s %.2f   output tok/s %.1f   prompt tok/s %.1f%s\n",
         per_second(static_cast<double>(ok_), wall_s),
         per_second(static_cast<double>(output_tokens_), wall_s),
         per_second(static_cast<double>(prompt_tokens_), wall_s),
         without_usage_ > 0 ? "   (some answers without usage: pieces counted)" : "");
  append(out, "%-8s %10s %10s %10s %10s %10s\n", "ms", "p50", "p90", "p99", "max", "count");
  for (const Row& r :
       {row("TTFT", "", ttft_, percentile), row("TPOT", "", tpot_, percentile), gap_row(gaps),
        row("E2E", "", e2e_, percentile), row("refused", "", refusal_, percentile)})
    if (r.count > 0)
      append(out, "%-8s %10.2f %10.2f %10.2f %10.2f %10llu\n", r.name, r.p50, r.p90, r.p99, r.max,
             static_cast<unsigned long long>(r.count));
  if (options_.slo_ttft_ms > 0 || options_.slo_tpot_ms > 0)
    append(out, "goodput %.2f requests/s (%lld of %lld)\n",
           per_second(static_cast<double>(good_), wall_s), static_cast<long long>(good_),
           static_cast<long long>(ok_ + failed_ + refused_));
  if (server.is_known)
    append(out, "server CPU %.2f s (%.0f %% of a core), memory %.1f MiB, at most %.1f MiB\n",
           server.cpu_s, 100 * per_second(server.cpu_s, wall_s), server.memory_mib,
           server.memory_max_mib);
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

std::string Figures::json() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("model", model).field("loop", options_.rate > 0 ? "open" : "closed");
  json.field("clients", options_.clients).field("rate", options_.rate);
  json.field("burstiness", options_.burstiness).field("seed", options_.seed);
  json.field("wall_s", wall_s).field("interrupted", interrupted);
  json.field("ok", ok_).field("failed", failed_).field("refused", refused_);
  json.field("aborted", aborted_).field("not_sent", not_sent);
  json.field("connections", connections).field("idle_open", idle_open);
  json.field("without_usage", without_usage_);
  json.field("prompt_tokens", prompt_tokens_).field("output_tokens", output_tokens_);
  json.field("requests_per_s", per_second(static_cast<double>(ok_), wall_s));
  json.field("output_tokens_per_s", per_second(static_cast<double>(output_tokens_), wall_s));
  json.field("prompt_tokens_per_s", per_second(static_cast<double>(prompt_tokens_), wall_s));
  for (const Row& r :
       {row("", "ttft_ms", ttft_, percentile), row("", "tpot_ms", tpot_, percentile), gap_row(gaps),
        row("", "e2e_ms", e2e_, percentile), row("", "refusal_ms", refusal_, percentile)}) {
    json.key(r.key).begin_object().field("count", r.count).field("p50", r.p50);
    json.field("p90", r.p90).field("p99", r.p99).field("max", r.max).end_object();
  }
  json.field("slo_ttft_ms", options_.slo_ttft_ms).field("slo_tpot_ms", options_.slo_tpot_ms);
  json.field("good", good_);
  json.field("goodput_per_s", per_second(static_cast<double>(good_), wall_s));
  if (server.is_known) {
    json.key("server").begin_object().field("cpu_s", server.cpu_s);
    json.field("memory_mib", server.memory_mib);
    json.field("memory_max_mib", server.memory_max_mib).end_object();
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
