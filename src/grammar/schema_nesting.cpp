#include "grammar/schema_nesting.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "grammar/json_value.h"

namespace weir::grammar {

namespace {

constexpr int kLevelsMax = 64;
// References from one to the next: a longer chain is as good as one without end.
constexpr int kDepthMax = 256;

class Nesting {
 public:
  explicit Nesting(const SchemaTree& tree) : tree_(tree), levels_(tree.size(), kUnknown) {}

  int of(NodeId schema, int depth) {
    if (!tree_.is_object(schema)) return JsonParts::kFreeLevels;
    int& known = levels_[static_cast<size_t>(schema)];
    if (known == kOpen || depth > kDepthMax) return JsonParts::kFreeLevels;
    if (known != kUnknown) return known;
    known = kOpen;
    const int levels = std::min(read(schema, depth), kLevelsMax);
    return levels_[static_cast<size_t>(schema)] = levels;
  }

 private:
  static constexpr int kUnknown = -1, kOpen = -2;

  int read(NodeId schema, int depth) {
    int levels = 0;
    bool bound = false;  // Something says what the value is.
    const auto keep = [&](int found) { levels = std::max(levels, found), bound = true; };
    for (const NodeId keyword : tree_.children(schema)) {
      const std::string_view name = tree_.node(keyword).key;
      if (name == "$ref") {
        const auto target = tree_.target(keyword, tree_.string_at(keyword).value_or("?"));
        if (target) keep(of(*target, depth + 1));
      } else if (name == "properties" || name == "patternProperties") {
        keep(1);
        for (const NodeId member : tree_.children(keyword)) keep(1 + of(member, depth + 1));
      } else if (name == "allOf" || name == "anyOf" || name == "oneOf") {
        for (const NodeId branch : tree_.children(keyword)) keep(of(branch, depth + 1));
      } else if (name == "then" || name == "else") {
        keep(of(keyword, depth + 1));
      } else if (name == "prefixItems" || (name == "items" && tree_.is_array(keyword))) {
        for (const NodeId item : tree_.children(keyword)) keep(1 + of(item, depth + 1));
      } else if (name == "items" || name == "additionalItems" || name == "additionalProperties") {
        keep(is_false(keyword) ? 1 : 1 + of(keyword, depth + 1));
      } else if (name == "enum" || name == "const") {
        keep(brackets(keyword) - (name == "enum" ? 1 : 0));
      } else if (name == "type") {
        keep(0);
      }
    }
    return bound && (levels > 0 || !open_type(schema)) ? levels : JsonParts::kFreeLevels;
  }

  bool is_false(NodeId schema) const {
    bool flag = true;
    return tree_.node(schema).value.get(flag) == simdjson::SUCCESS && !flag;
  }

  // An object or array of which nothing more is said.
  bool open_type(NodeId schema) const {
    const auto type = tree_.member(schema, "type");
    if (!type) return false;
    const auto is_open = [&](NodeId name) {
      const std::string_view text = tree_.string_at(name).value_or("");
      return text == "object" || text == "array";
    };
    bool found = is_open(*type);
    tree_.for_children(*type, [&](NodeId name) { found = found || is_open(name); });
    return found;
  }

  int brackets(NodeId value) const {
    int levels = 0;
    if (!tree_.is_object(value) && !tree_.is_array(value)) return 0;
    tree_.for_children(value, [&](NodeId part) { levels = std::max(levels, brackets(part)); });
    return levels + 1;
  }

  const SchemaTree& tree_;
  std::vector<int> levels_;  // By node.
};

}  // namespace

int nesting_levels(const SchemaTree& tree) { return Nesting(tree).of(0, 0); }

}  // namespace weir::grammar
