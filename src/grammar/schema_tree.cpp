#include "grammar/schema_tree.h"

#include <algorithm>
#include <charconv>
#include <span>

namespace weir::grammar {

namespace {

// Long enough for any pointer that a person reads.
constexpr size_t kPointerBytesMax = 300;

// Keywords whose values are schemas, and those whose values are objects or arrays of schemas.
constexpr std::string_view kSchemaKeywords[] = {
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
};
constexpr std::string_view kSchemasKeywords[] = {
    "$defs",        "allOf",
    "anyOf",        "definitions",
    "dependencies", "dependentSchemas",
    "oneOf",        "patternProperties",
    "prefixItems",  "properties",
};

SchemaTree::Place place_below(SchemaTree::Place place, std::string_view key, bool is_array) {
  using enum SchemaTree::Place;
  const auto in = [key](const auto& list) { return std::ranges::find(list, key) != list.end(); };
  if (place == kSchemas) return kSchema;
  if (place == kOther) return kOther;
  if (in(std::span(kSchemasKeywords)) || (key == "items" && is_array)) return kSchemas;
  return in(std::span(kSchemaKeywords)) ? kSchema : kOther;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* begin = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2)
      return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

std::string unescaped(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    if (escape && token[i + 1] == '0')
      out += '~', ++i;
    else if (escape && token[i + 1] == '1')
      out += '/', ++i;
    else
      out += token[i];
  }
  return out;
}

}  // namespace

Result<SchemaTree> SchemaTree::parse(std::string_view json) {
  if (json.size() > kBytesMax)
    return fail(ErrorCode::kInvalid, "The schema is too large: expected at most " +
                                         std::to_string(kBytesMax) + " bytes, found " +
                                         std::to_string(json.size()) + ".");
  SchemaTree tree;
  WEIR_ASSIGN(JsonDoc doc, JsonDoc::parse(json, kDepthMax));
  tree.doc_.emplace(std::move(doc));
  tree.nodes_.emplace_back().value = tree.doc_->root();
  for (size_t i = 0; i < tree.nodes_.size(); ++i)
    if (!tree.expand(static_cast<NodeId>(i)))
      return fail(ErrorCode::kInvalid, "The schema is too large: expected at most " +
                                           std::to_string(kNodesMax) + " values.");
  return tree;
}

// An `$id` that is a fragment only, as some tools write it, makes no resource.
void SchemaTree::note_names(NodeId id) {
  Node& schema = nodes_[static_cast<size_t>(id)];
  JsonObject object;
  if (schema.place != Place::kSchema || schema.value.get(object) != simdjson::SUCCESS) return;
  std::string_view name;
  if (object["$id"].get(name) == simdjson::SUCCESS && !name.starts_with('#')) schema.resource = id;
  if (object["$anchor"].get(name) == simdjson::SUCCESS)
    anchors_.try_emplace({schema.resource, name}, id);
}

bool SchemaTree::expand(NodeId id) {
  note_names(id);
  NodeId last = -1;
  const auto add = [&](Node child) {
    child.parent = id;
    child.resource = node(id).resource;
    child.place = place_below(node(id).place, child.key, child.value.type() == JsonType::ARRAY);
    const auto number = static_cast<NodeId>(nodes_.size());
    nodes_.push_back(child);
    Node& parent = nodes_[static_cast<size_t>(id)];
    (last < 0 ? parent.first_child : nodes_[static_cast<size_t>(last)].next_sibling) = number;
    ++parent.child_count;
    last = number;
    return nodes_.size() <= kNodesMax;
  };
  const JsonValue value = node(id).value;
  JsonObject object;
  if (value.get(object) == simdjson::SUCCESS) {
    for (const auto [key, member] : object) {
      Node child;
      child.value = member;
      child.key = key;
      if (!add(child)) return false;
      members_[{id, key}] = last;
    }
  }
  JsonArray array;
  if (value.get(array) == simdjson::SUCCESS) {
    int32_t index = 0;
    for (const JsonValue element : array) {
      Node child;
      child.value = element;
      child.index = index++;
      if (!add(child)) return false;
    }
  }
  return true;
}

std::optional<std::string_view> SchemaTree::string_at(NodeId id) const {
  std::string_view text;
  if (node(id).value.get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

std::optional<NodeId> SchemaTree::member(NodeId object, std::string_view name) const {
  const auto found = members_.find({object, name});
  if (found == members_.end()) return std::nullopt;
  return found->second;
}

std::optional<NodeId> SchemaTree::target(NodeId from, std::string_view reference) const {
  if (!reference.empty() && reference.front() != '#') return std::nullopt;
  const auto fragment = percent_decoded(reference.substr(std::min<size_t>(1, reference.size())));
  if (!fragment) return std::nullopt;
  const NodeId resource = node(from).resource;
  if (!fragment->empty() && fragment->front() != '/') {
    const auto found = anchors_.find({resource, *fragment});
    return found == anchors_.end() ? std::nullopt : std::optional(found->second);
  }
  // Tools that write an `$id` into a part may mean the whole document all the same.
  const auto found = at_pointer(resource, *fragment);
  return found || resource == 0 ? found : at_pointer(0, *fragment);
}

std::optional<NodeId> SchemaTree::at_pointer(NodeId at, std::string_view pointer) const {
  for (size_t i = 0; i < pointer.size();) {
    const size_t end = std::min(pointer.find('/', i + 1), pointer.size());
    const std::string token = unescaped(pointer.substr(i + 1, end - i - 1));
    std::optional<NodeId> next = member(at, token);
    if (is_array(at)) {
      size_t index = 0;
      const auto [last, error] = std::from_chars(token.data(), token.data() + token.size(), index);
      NodeId child = node(at).first_child;
      for (; child >= 0 && index > 0; --index) child = node(child).next_sibling;
      if (error == std::errc() && last == token.data() + token.size() && child >= 0) next = child;
    }
    if (!next) return std::nullopt;
    at = *next;
    i = end;
  }
  return at;
}

std::string SchemaTree::pointer(NodeId id) const {
  std::string text;
  for (NodeId at = id; node(at).parent >= 0; at = node(at).parent) {
    const Node& n = node(at);
    std::string token = n.index >= 0 ? std::to_string(n.index) : std::string(n.key.substr(0, 100));
    for (size_t i = 0; i < token.size(); ++i)
      if (token[i] == '~' || token[i] == '/') {
        const char digit = token[i] == '~' ? '0' : '1';
        token.replace(i, 1, {'~', digit});
      }
    text.insert(0, "/" + token);
    if (text.size() > kPointerBytesMax) return "#..." + text;
  }
  return "#" + text;
}

std::vector<NodeId> SchemaTree::children(NodeId id) const {
  std::vector<NodeId> result;
  for_children(id, [&](NodeId child) { result.push_back(child); });
  return result;
}

}  // namespace weir::grammar
