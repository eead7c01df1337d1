// Replays a route trace through a cache of experts: ours, LRU, and Belady's, which knows the
// future. One request's decode rows are what is counted; its prompt rows warm the cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "measure/route_trace.h"
#include "measure/routing_model.h"
#include "ssd/expert_cache.h"
#include "ssd/oracle_window.h"

namespace weir::ssd {

// One access: what a step needs of a layer, once for all of its rows.
struct Visit {
  int32_t step = 0;
  int32_t layer = 0;
  bool prompt = false;
  int32_t row_count = 0;
  std::vector<int32_t> experts;  // The union over rows, in order of first mention.
  std::vector<int32_t> rows;     // How many rows chose each.
};

inline std::vector<Visit> visits_of(const measure::RouteTrace& trace) {
  std::vector<Visit> visits;
  for (const measure::RouteRow& row : trace.rows()) {
    if (row.kind == measure::RouteKind::kLookahead) continue;
    const bool prompt = row.kind == measure::RouteKind::kPrompt;
    if (visits.empty() || visits.back().step != row.step || visits.back().layer != row.layer ||
        visits.back().prompt != prompt)
      visits.push_back({row.step, row.layer, prompt, 0, {}, {}});
    Visit& visit = visits.back();
    ++visit.row_count;
    for (const int32_t expert : trace.experts_of(row)) {
      size_t at = 0;
      while (at < visit.experts.size() && visit.experts[at] != expert) ++at;
      if (at == visit.experts.size()) {
        visit.experts.push_back(expert);
        visit.rows.push_back(0);
      }
      ++visit.rows[at];
    }
  }
  return visits;
}

struct HitRate {
  int64_t hits = 0;
  int64_t requests = 0;
  double rate() const { return requests == 0 ? 0 : double(hits) / double(requests); }
};

// Modelled routing of one request: its prompt's rows in chunks, then generated tokens.
inline measure::RouteTrace modelled_trace(const measure::RoutingModel& model, uint64_t seed,
                                          int32_t prompt_tokens, int32_t chunk_tokens,
                                          int32_t decode_tokens) {
  const measure::RoutingParams& p = model.params();
  measure::RouteTrace trace(p.layers, p.experts, p.top_k);
  measure::RoutingStream stream(model, seed);
  int32_t step = 0;
  for (int32_t done = 0; done < prompt_tokens; done += chunk_tokens, ++step) {
    std::vector<std::vector<int32_t>> rows;  // [tokens in the chunk, layers * top_k]
    for (int32_t i = 0; i < std::min(chunk_tokens, prompt_tokens - done); ++i) {
      rows.emplace_back();
      for (int32_t layer = 0; layer < p.layers; ++layer) {
        const auto chosen = stream.routed(layer);
        rows.back().insert(rows.back().end(), chosen.begin(), chosen.end());
      }
      stream.next_token();
    }
    for (int32_t layer = 0; layer < p.layers; ++layer)
      for (const auto& row : rows)
        trace.add(measure::RouteKind::kPrompt, step, layer, 0,
                  std::span(row).subspan(static_cast<size_t>(layer * p.top_k),
                                         static_cast<size_t>(p.top_k)));
  }
  for (int32_t token = 0; token < decode_tokens; ++token, ++step) {
    for (int32_t layer = 0; layer < p.layers; ++layer) {
      trace.add(measure::RouteKind::kLookahead, step, layer, 0, stream.lookahead(layer));
      trace.add(measure::RouteKind::kDecode, step, layer, 0, stream.routed(layer));
    }
    stream.next_token();
  }
  return trace;
}

// Modelled routing of several requests that generate in the same steps, each with its own topic, or
// all with one.
inline measure::RouteTrace modelled_batch(const measure::RoutingModel& model, uint64_t seed,
                                          int32_t requests, int32_t tokens, bool one_topic) {
  const measure::RoutingParams& p = model.params();
  measure::RouteTrace trace(p.layers, p.experts, p.top_k);
  std::vector<measure::RoutingStream> streams;
  for (int32_t i = 0; i < requests; ++i)
    streams.emplace_back(model, seed + static_cast<uint64_t>(i));
  for (int32_t step = 0; step < tokens; ++step) {
    for (int32_t layer = 0; layer < p.layers; ++layer)
      for (int32_t i = 0; i < requests; ++i)
        trace.add(measure::RouteKind::kDecode, step, layer, i,
                  streams[static_cast<size_t>(i)].routed(layer));
    streams[0].next_token();
    for (size_t i = 1; i < streams.size(); ++i) {
      if (one_topic)
        streams[i].next_token_about(streams[0]);
      else
        streams[i].next_token();
    }
  }
  return trace;
}

// Our cache, as the store uses it: all of a visit is pinned while it runs.
class EwmaReplay {
 public:
  EwmaReplay(int32_t layers, int32_t experts, int32_t slots, float kept = ExpertCache::kKept)
      : cache_(layers, experts, std::vector<int32_t>(static_cast<size_t>(layers), 0),
               std::vector<int32_t>{slots}, kept) {
    cache_.set_usable(0, slots);
  }

  // window: is told of every demand, as by the store; may be null.
  HitRate run(std::span<const Visit> visits, OracleWindow* window = nullptr) {
    HitRate result;
    for (const Visit& visit : visits) {
      if (window != nullptr) window->begin_visit();
      if (visit.layer == 0 && visit.step != step_ && !visit.prompt) cache_.advance();
      step_ = visit.step;
      int64_t hits = 0;
      for (size_t i = 0; i < visit.experts.size(); ++i) {
        const ExpertKey key{visit.layer, visit.experts[i]};
        if (visit.prompt)
          cache_.touch_prompt(key, visit.rows[i], visit.row_count);
        else
          cache_.touch(key, ExpertCache::decode_weight(visit.rows[i]));
        const int32_t slot = cache_.slot_of(key);
        if (window != nullptr) window->record(key, slot >= 0, !visit.prompt);
        if (slot >= 0) cache_.pin(slot), ++hits;
      }
      // What is absent passes through; in a prompt more may be than there are slots.
      for (const int32_t expert : visit.experts) {
        const ExpertKey key{visit.layer, expert};
        if (cache_.slot_of(key) >= 0) continue;
        const int32_t slot =
            visit.prompt ? cache_.place_prompt(key, visit.layer) : cache_.place(key, visit.layer);
        if (slot >= 0 && visit.prompt) cache_.unpin(slot);
        if (slot >= 0 && !visit.prompt) placed_.push_back(slot);
      }
      for (const int32_t slot : placed_) cache_.unpin(slot);
      placed_.clear();
      unpin_all(visit);
      cache_.layer_done(visit.layer);
      if (visit.prompt) continue;
      result.hits += hits;
      result.requests += static_cast<int64_t>(visit.experts.size());
    }
    return result;
  }

 private:
  void unpin_all(const Visit& visit) {
    for (const int32_t expert : visit.experts) {
      const int32_t slot = cache_.slot_of({visit.layer, expert});
      if (slot >= 0 && cache_.pins(slot) > 0) cache_.unpin(slot);
    }
  }

  ExpertCache cache_;
  int32_t step_ = -1;
  std::vector<int32_t> placed_;
};

// Evicts what has the smallest rank, which the policy gives at each access: the time of the access
// (LRU), or minus the time of the next one (Belady). The visit's own experts stay.
class RankedReplay {
 public:
  explicit RankedReplay(int32_t slots, bool belady) : slots_(slots), belady_(belady) {}

  HitRate run(std::span<const Visit> visits) {
    const std::vector<std::vector<int64_t>> next = next_uses(visits);
    HitRate result;
    for (size_t v = 0; v < visits.size(); ++v) {
      const Visit& visit = visits[v];
      ++now_;
      for (size_t i = 0; i < visit.experts.size(); ++i) {
        const int64_t key = int64_t{visit.layer} << 32 | visit.experts[i];
        const int64_t rank = belady_ ? -next[v][i] : now_;
        const auto found = rank_of_.find(key);
        if (!visit.prompt) ++result.requests;
        if (found != rank_of_.end()) {
          if (!visit.prompt) ++result.hits;
          order_.erase({found->second, key});
        } else if (static_cast<int32_t>(rank_of_.size()) == slots_) {
          const auto victim = order_.begin();
          // Belady's may also refuse to keep what comes back later than all it has.
          if (belady_ && victim->first >= rank) continue;
          rank_of_.erase(victim->second);
          order_.erase(victim);
        }
        rank_of_[key] = rank;
        order_.insert({rank, key});
      }
    }
    return result;
  }

 private:
  // For each access, the visit that needs the same expert next.
  static std::vector<std::vector<int64_t>> next_uses(std::span<const Visit> visits) {
    std::unordered_map<int64_t, int64_t> seen;
    std::vector<std::vector<int64_t>> next(visits.size());
    for (size_t v = visits.size(); v-- > 0;) {
      for (const int32_t expert : visits[v].experts) {
        const int64_t key = int64_t{visits[v].layer} << 32 | expert;
        const auto found = seen.find(key);
        next[v].push_back(found == seen.end() ? int64_t{1} << 40 : found->second);
        seen[key] = static_cast<int64_t>(v);
      }
    }
    return next;
  }

  const int32_t slots_;
  const bool belady_;
  int64_t now_ = 0;
  std::unordered_map<int64_t, int64_t> rank_of_;
  std::set<std::pair<int64_t, int64_t>> order_;
};

}  // namespace weir::ssd
