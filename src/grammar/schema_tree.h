// SchemaTree: a JSON document with numbered nodes that know their parents, so that a schema's parts
// can be compared, kept in sets and named in messages by their JSON pointer.
//
// Threads: immutable once built.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::grammar {

using NodeId = int32_t;

class SchemaTree {
 public:
  // What a node is, as its place in the schema says.
  enum class Place : uint8_t {
    kSchema,
    kSchemas,  // An object or array of them.
    kOther,    // A keyword's value, or data: what looks like a keyword in there is none.
  };
  struct Node {
    JsonValue value;
    NodeId parent = -1;
    std::string_view key;  // In its parent, an object;
    int32_t index = -1;    // or an array.
    NodeId first_child = -1, next_sibling = -1;
    int32_t child_count = 0;
    NodeId resource = 0;  // The schema with an `$id` that it is part of, or the root.
    Place place = Place::kSchema;
  };

  static constexpr size_t kBytesMax = 1 << 20;
  static constexpr size_t kNodesMax = 100'000;
  static constexpr size_t kDepthMax = 64;

  static Result<SchemaTree> parse(std::string_view json);

  size_t size() const { return nodes_.size(); }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  bool is_object(NodeId id) const { return node(id).value.type() == JsonType::OBJECT; }
  bool is_array(NodeId id) const { return node(id).value.type() == JsonType::ARRAY; }
  std::optional<std::string_view> string_at(NodeId id) const;

  // The member of an object, or nothing. The last of several with one name.
  std::optional<NodeId> member(NodeId object, std::string_view name) const;
  // What `reference`, the value of `from`, refers to if it is `#`, `#/a/b` (percent-encoded, ~0 and
  // ~1) or `#anchor`; else, or if that is nowhere, nothing.
  std::optional<NodeId> target(NodeId from, std::string_view reference) const;
  // "#/properties/a", cut where it is too long for a message.
  std::string pointer(NodeId id) const;

  template <class F>
  void for_children(NodeId id, F visit) const {
    for (NodeId child = node(id).first_child; child >= 0; child = node(child).next_sibling)
      visit(child);
  }
  std::vector<NodeId> children(NodeId id) const;

 private:
  SchemaTree() = default;
  // Fills in the node's children; false when there are too many.
  bool expand(NodeId id);
  void note_names(NodeId id);
  std::optional<NodeId> at_pointer(NodeId at, std::string_view pointer) const;

  std::optional<JsonDoc> doc_;
  std::vector<Node> nodes_;
  std::map<std::pair<NodeId, std::string_view>, NodeId> members_;
  std::map<std::pair<NodeId, std::string_view>, NodeId> anchors_;  // By resource and name.
};

}  // namespace weir::grammar
