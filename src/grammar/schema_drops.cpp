#include "grammar/schema_drops.h"

namespace weir::grammar {

namespace {

// As many as a line of a log and a header can hold: about 60 bytes each.
constexpr size_t kNamesMax = 32;

}  // namespace

bool SchemaDrops::is_keyword(NodeId node) const {
  const NodeId parent = tree_.node(node).parent;
  return parent >= 0 && tree_.node(parent).place == SchemaTree::Place::kSchema &&
         tree_.is_object(parent);
}

void SchemaDrops::blame(NodeId at) {
  NodeId keyword = at;
  const bool whole = tree_.node(at).place == SchemaTree::Place::kSchema && !tree_.is_object(at);
  while (!whole && !is_keyword(keyword) && tree_.node(keyword).parent >= 0)
    keyword = tree_.node(keyword).parent;
  for (NodeId up = keyword; up >= 0; up = tree_.node(up).parent)
    if (is_keyword(up) && (tree_.node(up).key == "not" || tree_.node(up).key == "if")) keyword = up;
  blamed_ = keyword;
}

bool SchemaDrops::blamed_is_elsewhere() const {
  if (blamed_ < 0) return false;
  const std::string_view key = tree_.node(blamed_).key;
  return key == "not" || key == "if" || key == "oneOf";
}

bool SchemaDrops::drop_blamed() {
  const NodeId keyword = blamed_;
  blamed_ = -1;
  return allowed_ && keyword >= 0 && dropped_.insert(keyword).second;
}

std::vector<std::string> SchemaDrops::names() const {
  std::vector<std::string> names;
  for (const NodeId keyword : dropped_) {
    if (names.size() == kNamesMax) {
      names.push_back("and " + std::to_string(dropped_.size() - kNamesMax) + " more keywords");
      break;
    }
    const NodeId parent = tree_.node(keyword).parent;
    if (!is_keyword(keyword)) {
      names.push_back("the schema at " + tree_.pointer(keyword).substr(1));
      continue;
    }
    std::string name(tree_.node(keyword).key.substr(0, 64));
    if (name == "oneOf") name += " (read as anyOf)";
    const std::string place = tree_.pointer(parent).substr(1);
    names.push_back(place.empty() ? name : name + " at " + place);
  }
  return names;
}

}  // namespace weir::grammar
