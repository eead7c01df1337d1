// Filling of routing tables, from the model of routing and from traces.
#include "measure/routing_table.h"

#include <algorithm>

#include "base/check.h"

namespace weir::measure {
namespace {

// Where the rows of one token of a trace are: by layer, -1 where there is none.
struct TokenRows {
  std::vector<int64_t> routed, early;
};

// The generated tokens of each sequence, in order. A token without a row in every layer is left
// out.
std::vector<std::vector<TokenRows>> tokens_of(const RouteTrace& trace) {
  std::vector<std::vector<TokenRows>> sequences;
  std::vector<int32_t> step_of;  // Of each sequence's last token.
  const auto layers = static_cast<size_t>(trace.layers());
  for (size_t i = 0; i < trace.rows().size(); ++i) {
    const RouteRow& row = trace.rows()[i];
    if (row.kind == RouteKind::kPrompt) continue;
    const auto s = static_cast<size_t>(row.sequence);
    if (s >= sequences.size()) {
      sequences.resize(s + 1);
      step_of.resize(s + 1, -1);
    }
    if (step_of[s] != row.step) {
      step_of[s] = row.step;
      sequences[s].push_back({std::vector<int64_t>(layers, -1), std::vector<int64_t>(layers, -1)});
    }
    TokenRows& token = sequences[s].back();
    const bool early = row.kind == RouteKind::kLookahead;
    (early ? token.early : token.routed)[static_cast<size_t>(row.layer)] = static_cast<int64_t>(i);
  }
  for (auto& tokens : sequences)
    std::erase_if(tokens, [](const TokenRows& token) {
      return std::ranges::find(token.routed, -1) != token.routed.end();
    });
  std::erase_if(sequences, [](const auto& tokens) { return tokens.empty(); });
  return sequences;
}

}  // namespace

RoutingTable::RoutingTable(const Shape& shape, std::string name, bool early)
    : shape_(shape), name_(std::move(name)), routed_(place(0, shape.sequences, 0)) {
  if (early) early_.resize(routed_.size());
}

Result<void> RoutingTable::check(const Shape& shape) {
  CHECK(shape.layers > 0 && shape.sequences > 0 && shape.tokens > 0 && shape.top_k > 0);
  CHECK(shape.top_k <= shape.experts && shape.experts <= RouteTrace::kExpertsMax);
  const double bytes = 2.0 * sizeof(int16_t) * shape.layers * shape.top_k *
                       static_cast<double>(shape.sequences) * shape.tokens;
  if (bytes <= static_cast<double>(kBytesMax)) return {};
  return fail(ErrorCode::kConfig, "--routing: expected a table of at most " +
                                      std::to_string(kBytesMax >> 20) + " MiB, found " +
                                      std::to_string(static_cast<int64_t>(bytes) >> 20) +
                                      " MiB for " + std::to_string(shape.sequences) +
                                      " sequences of " + std::to_string(shape.tokens) + " tokens");
}

void RoutingTable::put(std::vector<int16_t>& table, size_t to, std::span<const int32_t> chosen) {
  std::ranges::transform(chosen.first(static_cast<size_t>(shape_.top_k)),
                         table.begin() + static_cast<ptrdiff_t>(to),
                         [](int32_t expert) { return static_cast<int16_t>(expert); });
}

Result<RoutingTable> RoutingTable::modelled(const Shape& shape, uint64_t seed, Topics topics) {
  WEIR_TRY(check(shape));
  RoutingParams params;
  params.layers = shape.layers;
  params.experts = shape.experts;
  params.top_k = shape.top_k;
  const RoutingModel model(params, seed);
  const bool one = topics == Topics::kOne;
  RoutingTable table(shape, one ? "modelled routing, one topic" : "modelled routing", true);
  for (int32_t sequence = 0; sequence < shape.sequences; ++sequence) {
    RoutingStream stream(model, seed + 1 + static_cast<uint64_t>(sequence));
    RoutingStream first(model, seed + 1);  // The first sequence's, whose topic may be everybody's.
    const bool follows = one && sequence > 0;
    if (follows) stream.next_token_about(first);
    for (int32_t token = 0; token < shape.tokens; ++token) {
      for (int32_t layer = 0; layer < shape.layers; ++layer) {
        const size_t to = table.place(layer, sequence, token);
        table.put(table.routed_, to, stream.routed(layer));
        table.put(table.early_, to, stream.lookahead(layer));
      }
      if (!follows) {
        stream.next_token();
        continue;
      }
      first.next_token();
      stream.next_token_about(first);
    }
  }
  return table;
}

Result<RoutingTable> RoutingTable::recorded(const Shape& shape, const RouteTrace& trace,
                                            const std::string& name) {
  WEIR_TRY(check(shape));
  const auto text = [](int32_t layers, int32_t experts, int32_t top_k) {
    return std::to_string(layers) + " layers of " + std::to_string(top_k) + " of " +
           std::to_string(experts) + " experts";
  };
  if (trace.layers() != shape.layers || trace.experts() != shape.experts ||
      trace.top_k() != shape.top_k)
    return fail(ErrorCode::kConfig,
                name + ": expected routes of " + text(shape.layers, shape.experts, shape.top_k) +
                    ", found " + text(trace.layers(), trace.experts(), trace.top_k()));
  const std::vector<std::vector<TokenRows>> sequences = tokens_of(trace);
  if (sequences.empty())
    return fail(ErrorCode::kConfig,
                name + ": expected generated tokens with a row in each layer, found none");
  // No layer makes a lookahead into the first one: what is missing there is the choice itself.
  const auto has_early = [&](const TokenRows& token) {
    return std::ranges::all_of(token.early.begin() + 1, token.early.end(), [&](int64_t row) {
      return row >= 0 && trace.rows()[static_cast<size_t>(row)].count >= shape.top_k;
    });
  };
  const bool early = shape.layers > 1 && std::ranges::all_of(sequences, [&](const auto& tokens) {
                       return std::ranges::all_of(tokens, has_early);
                     });
  RoutingTable table(shape, "routing of " + name, early);
  for (int32_t s = 0; s < shape.sequences; ++s) {
    const auto& tokens = sequences[static_cast<size_t>(s) % sequences.size()];
    // The second sequence that reads the same tokens begins at another place.
    const size_t copies = (static_cast<size_t>(shape.sequences) - 1) / sequences.size() + 1;
    const size_t begin = static_cast<size_t>(s) / sequences.size() * tokens.size() / copies;
    for (int32_t t = 0; t < shape.tokens; ++t) {
      const TokenRows& token = tokens[(begin + static_cast<size_t>(t)) % tokens.size()];
      for (int32_t layer = 0; layer < shape.layers; ++layer) {
        const size_t to = table.place(layer, s, t);
        const int64_t routed = token.routed[static_cast<size_t>(layer)];
        const int64_t seen = token.early[static_cast<size_t>(layer)];
        const auto chosen = [&](int64_t row) {
          return trace.experts_of(trace.rows()[static_cast<size_t>(row)]);
        };
        table.put(table.routed_, to, chosen(routed));
        if (early) table.put(table.early_, to, chosen(seen >= 0 && layer > 0 ? seen : routed));
      }
    }
  }
  return table;
}

}  // namespace weir::measure
