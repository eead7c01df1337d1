// Ignored: what a request asked for and did not get: fields that the endpoint does not know, tools
// that are left out, keywords of a schema that cannot be enforced. The answer names them in the
// header x-weir-ignored, because an answer of 200 hides them otherwise.
//
// Not here: fields that are accepted without effect on purpose (Treatment::kIgnored), which
// docs/api.md lists.
//
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/reference/endpoint_table.h"
#include "base/json.h"

namespace weir::api {

class Ignored {
 public:
  // `what` names it as errors do: "temprature", "tools[0].function.parameters: uniqueItems".
  // A client's words may stand in it: header() makes them fit to be sent.
  void add(std::string_view what);
  void add(const Ignored& others);

  // Adds the members of `body` that `known` does not name, each with the name that was probably
  // meant: "temprature (temperature?)". Members that are null ask for nothing.
  void add_unknown(JsonObject body, const std::vector<FieldDoc>& known);

  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  const std::vector<std::string>& names() const { return names_; }

  // The header's value: printable ASCII, parted by ", ". Names beyond a limit are counted only.
  std::string header() const;

 private:
  std::vector<std::string> names_;  // The first kNamesMax.
  int64_t count_ = 0;               // Of all.
};

}  // namespace weir::api
