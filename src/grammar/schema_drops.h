// SchemaDrops: the keywords of one schema that cannot be enforced and are left out, so that all
// others hold. Where nothing may be left out, such a keyword is an error.
//
// A keyword within `not` or `if` is never left out alone: what it stands in would then say more, or
// something else. It is the outermost `not` or `if` that goes. A schema that is neither an object
// nor a boolean goes as a whole: any value is as good.
//
// Threads: a plain value; one thread at a time.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "grammar/schema_tree.h"

namespace weir::grammar {

class SchemaDrops {
 public:
  SchemaDrops(const SchemaTree& tree, bool allowed) : tree_(tree), allowed_(allowed) {}

  bool allowed() const { return allowed_; }
  bool has(NodeId keyword) const { return dropped_.contains(keyword); }

  // The error that is being returned is about this node. Outside of drop_blamed() it changes
  // nothing.
  void blame(NodeId at);
  // Forgets an error that was dealt with otherwise.
  void forgive() { blamed_ = -1; }
  bool is_blamed(NodeId keyword) const { return allowed_ && blamed_ == keyword; }
  // What is blamed has parts that other values are made of: members of an `if`, say.
  bool blamed_is_elsewhere() const;
  // Leaves out what was blamed; false where that is not allowed or nothing was.
  bool drop_blamed();

  // "uniqueItems at /properties/tags", in the order of the schema; the first few, and how many more
  // there are.
  std::vector<std::string> names() const;

 private:
  bool is_keyword(NodeId node) const;

  const SchemaTree& tree_;
  const bool allowed_;
  std::set<NodeId> dropped_;
  NodeId blamed_ = -1;
};

}  // namespace weir::grammar
