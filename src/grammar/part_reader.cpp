#include "grammar/part_reader.h"

#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "base/json.h"
#include "grammar/json_schema.h"

namespace weir::grammar {

namespace {

// Parts within parts; what the API writes has a dozen levels, schemas aside.
constexpr int kDepthMax = 32;
// A schema as deep as a body may be, and the parts around it.
constexpr size_t kJsonDepthMax = 256 + kDepthMax;
constexpr size_t kMarkersMax = 1024;
constexpr size_t kMarkerBytesMax = 64 << 10;  // Of one set of markers.

tl::unexpected<Error> malformed(const std::string& what) {
  return fail(ErrorCode::kInvalid, "Invalid grammar of parts: " + what + ".");
}

// Finds the first of some markers in a text (Aho and Corasick 1975), with every step written out.
class MarkerMachine {
 public:
  // `markers`, and those that may never come.
  MarkerMachine(const std::vector<std::string_view>& markers,
                const std::vector<std::string_view>& forbidden) {
    nodes_.emplace_back();
    for (const std::string_view marker : markers) node_of(marker).marker = true;
    for (const std::string_view marker : forbidden) node_of(marker).forbidden = true;
    link();
  }

  // Texts that end with a marker and have none before; or those that have none at all.
  // `not_first`: bytes that may not come first, white space aside.
  Dfa dfa(bool ends_with_marker, std::string_view not_first) const {
    Dfa result;
    if (!not_first.empty()) add_state(nodes_[0], ends_with_marker, not_first, 1, result);
    const auto base = static_cast<int32_t>(result.states.size());
    for (const Node& node : nodes_) add_state(node, ends_with_marker, {}, base, result);
    return trim(result);
  }

  size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Node() { next.fill(-1); }
    std::array<int32_t, 256> next;
    int32_t shorter = 0;     // The longest proper end of this text that is a beginning too.
    bool marker = false;     // A marker ends here,
    bool forbidden = false;  // or one that may not come.
  };

  // Nodes are numbered from `base` on. The state that bytes are forbidden in is the first one.
  void add_state(const Node& node, bool ends_with_marker, std::string_view not_first, int32_t base,
                 Dfa& out) const {
    Dfa::State state;
    state.final = !node.forbidden && node.marker == ends_with_marker;
    state.ranges_begin = static_cast<int32_t>(out.ranges.size());
    // Where a marker is complete nothing follows; where none may come nothing leads there.
    for (uint16_t byte = 0; byte < 256 && !node.marker && !node.forbidden; ++byte) {
      const Node& next = nodes_[static_cast<size_t>(node.next[byte])];
      int32_t to = base + node.next[byte];
      if (next.forbidden || (!ends_with_marker && next.marker)) continue;
      if (!not_first.empty()) {
        if (not_first.find(static_cast<char>(byte)) != std::string_view::npos) continue;
        if (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n') to = 0;
      }
      const bool grows = std::ssize(out.ranges) > state.ranges_begin &&
                         out.ranges.back().to == to && out.ranges.back().last + 1 == byte;
      if (grows)
        out.ranges.back().last = byte;
      else
        out.ranges.push_back({.first = byte, .last = byte, .to = to});
    }
    state.ranges_end = static_cast<int32_t>(out.ranges.size());
    out.states.push_back(state);
  }

  Node& node_of(std::string_view marker) {
    int32_t at = 0;
    for (const char byte : marker) {
      int32_t& next = nodes_[static_cast<size_t>(at)].next[static_cast<uint8_t>(byte)];
      if (next < 0) {
        next = static_cast<int32_t>(nodes_.size());
        at = next;
        nodes_.emplace_back();
      } else {
        at = next;
      }
    }
    return nodes_[static_cast<size_t>(at)];
  }

  // Breadth first, so that what is shorter is complete.
  void link() {
    std::deque<int32_t> queue;
    for (int32_t& to : nodes_[0].next) {
      if (to < 0)
        to = 0;
      else
        queue.push_back(to);
    }
    while (!queue.empty()) {
      Node& node = nodes_[static_cast<size_t>(queue.front())];
      queue.pop_front();
      const Node& shorter = nodes_[static_cast<size_t>(node.shorter)];
      node.marker = node.marker || shorter.marker;
      node.forbidden = node.forbidden || shorter.forbidden;
      for (size_t byte = 0; byte < 256; ++byte) {
        if (node.next[byte] < 0) {
          node.next[byte] = shorter.next[byte];
        } else {
          nodes_[static_cast<size_t>(node.next[byte])].shorter = shorter.next[byte];
          queue.push_back(node.next[byte]);
        }
      }
    }
  }

  std::vector<Node> nodes_;
};

// Goes on where the budget is exhausted, so that all schemas are seen; the caller says so then.
class PartReader {
 public:
  PartReader(Grammar& grammar, SourceReader nested, LooseSchemas& schemas)
      : grammar_(grammar), nested_(nested), schemas_(schemas) {}

  Result<ExprId> part(JsonValue value, int depth) {
    JsonObject object;
    if (depth > kDepthMax || value.get(object) != simdjson::SUCCESS)
      return malformed("expected an object, found " + json_excerpt(value));
    if (const auto text = json_get(object, "text")) return literal(*text);
    if (const auto parts = json_get(object, "seq")) return several(*parts, depth, true);
    if (const auto parts = json_get(object, "any")) return several(*parts, depth, false);
    if (const auto body = json_get(object, "repeat")) return repeat(object, *body, depth);
    if (const auto markers = json_get(object, "until")) return free_text(object, *markers, true);
    if (const auto markers = json_get(object, "without")) return free_text(object, *markers, false);
    if (const auto schema = json_get(object, "schema"))
      return schema_of(*schema, json_get(object, "loose"));
    if (const auto source = json_get(object, "source"))
      return source_of(*source, json_get(object, "in_string") ? Spelling::kJson : Spelling::kPlain);
    if (json_get(object, "space"))
      return grammar_.any({grammar_.empty(), grammar_.literal(" "), grammar_.literal("\n")});
    if (json_get(object, "object")) return any_object();
    return malformed("unknown part " + json_excerpt(value));
  }

 private:
  static int64_t integer_of(JsonObject object, std::string_view name, int64_t fallback) {
    int64_t number = 0;
    const auto value = json_get(object, name);
    return value && value->get(number) == simdjson::SUCCESS ? number : fallback;
  }

  Result<ExprId> literal(JsonValue value) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS)
      return malformed("expected a string, found " + json_excerpt(value));
    return grammar_.literal(text);
  }

  Result<ExprId> several(JsonValue value, int depth, bool sequence) {
    JsonArray array;
    if (value.get(array) != simdjson::SUCCESS)
      return malformed("expected an array, found " + json_excerpt(value));
    std::vector<ExprId> exprs;
    for (const JsonValue element : array) {
      WEIR_ASSIGN(const ExprId expr, part(element, depth + 1));
      exprs.push_back(expr);
    }
    return sequence ? grammar_.concat(exprs) : grammar_.any(exprs);
  }

  Result<ExprId> repeat(JsonObject object, JsonValue body, int depth) {
    WEIR_ASSIGN(const ExprId expr, part(body, depth + 1));
    const int64_t min = integer_of(object, "min", 0);
    const int64_t max = integer_of(object, "max", kUnbounded);
    if (min < 0 || min > max || max > kUnbounded) return malformed("min and max of a repetition");
    return grammar_.repeat(expr, static_cast<int32_t>(min), static_cast<int32_t>(max));
  }

  static Result<std::vector<std::string_view>> markers_of(JsonValue value) {
    JsonArray array;
    if (value.get(array) != simdjson::SUCCESS || array.size() > kMarkersMax)
      return malformed("expected markers, found " + json_excerpt(value));
    std::vector<std::string_view> markers;
    size_t bytes = 0;
    for (const JsonValue element : array) {
      std::string_view marker;
      if (element.get(marker) != simdjson::SUCCESS || marker.empty())
        return malformed("expected a marker, found " + json_excerpt(element));
      markers.push_back(marker);
      bytes += marker.size();
    }
    if (bytes > kMarkerBytesMax) return too_complex();
    return markers;
  }

  Result<ExprId> free_text(JsonObject object, JsonValue value, bool ends_with_marker) {
    WEIR_ASSIGN(const auto markers, markers_of(value));
    std::vector<std::string_view> forbidden;
    if (const auto others = json_get(object, "but")) {
      WEIR_ASSIGN(forbidden, markers_of(*others));
    }
    std::string_view not_first;
    if (const auto bytes = json_get(object, "not_first");
        bytes && bytes->get(not_first) != simdjson::SUCCESS)
      return malformed("expected bytes, found " + json_excerpt(*bytes));
    const MarkerMachine machine(markers, forbidden);
    grammar_.budget.work -= static_cast<int64_t>(machine.size()) * 256;
    grammar_.budget.states -= static_cast<int64_t>(machine.size());
    if (grammar_.budget.exhausted()) return grammar_.nothing();
    return grammar_.machine(machine.dfa(ends_with_marker, not_first));
  }

  Result<ExprId> schema_of(JsonValue schema, std::optional<JsonValue> loose) {
    std::string text;
    JsonWriter(text).value(schema);
    std::string_view name;
    if (!loose) {
      const Result<ExprId> expr = json_schema(grammar_, text);
      return expr || !grammar_.budget.exhausted() ? expr : grammar_.nothing();
    }
    if (loose->get(name) != simdjson::SUCCESS)
      return malformed("expected a name, found " + json_excerpt(*loose));
    return schemas_.bind(grammar_, name, text);
  }

  ExprId any_object() {
    if (object_ == kNoExpr) object_ = json_object(grammar_);
    return object_;
  }

  Result<ExprId> source_of(JsonValue value, Spelling spelling) {
    JsonObject object;
    if (value.get(object) != simdjson::SUCCESS)
      return malformed("expected a source, found " + json_excerpt(value));
    GrammarSource source;
    const int64_t kind = integer_of(object, "kind", -1);
    if (kind < 0 || kind >= static_cast<int64_t>(GrammarSource::Kind::kParts))
      return malformed("unknown kind of source");
    source.kind = static_cast<GrammarSource::Kind>(kind);
    std::string_view text;
    if (const auto found = json_get(object, "text"); found && !found->get(text)) source.text = text;
    JsonArray choices;
    if (const auto found = json_get(object, "choices"); found && !found->get(choices))
      for (const JsonValue choice : choices)
        if (!choice.get(text)) source.choices.emplace_back(text);
    return nested_(grammar_, source, spelling);
  }

  Grammar& grammar_;
  const SourceReader nested_;
  LooseSchemas& schemas_;
  ExprId object_ = kNoExpr;
};

}  // namespace

Result<ExprId> read_parts(Grammar& grammar, std::string_view json, SourceReader nested,
                          LooseSchemas& schemas) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(json, kJsonDepthMax));
  return PartReader(grammar, nested, schemas).part(doc.root(), 0);
}

}  // namespace weir::grammar
