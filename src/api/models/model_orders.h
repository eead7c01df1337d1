// The bodies of POST /models, /models/load and /models/unload, and what in any body names a model.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/models/model_status.h"
#include "api/reference/endpoint_table.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api {

struct LoadOrder {
  std::string model;
  LoadOptions options;
};
struct UnloadOrder {
  std::string model;
  bool force = false;
};

struct PullOrder {
  std::string model;     // As the hub names it.
  std::string revision;  // Empty: the one that the name says, or the newest.

  // What the hub's names say of both.
  std::string name() const;
};

Result<PullOrder> parse_pull(std::string_view body);
Result<LoadOrder> parse_load(std::string_view body);
Result<UnloadOrder> parse_unload(std::string_view body);
std::vector<FieldDoc> pull_fields();
std::vector<FieldDoc> load_fields();
std::vector<FieldDoc> unload_fields();

// What a request's body says before it is known whose model reads the rest.
struct AskedModel {
  std::string name;     // Empty: it names none.
  bool stream = false;  // It asks for events.
};
Result<AskedModel> model_of_body(std::string_view body);
// The same of a form; `content_type`: the request's header.
Result<AskedModel> model_of_form(std::string_view content_type, std::string_view body);

// The value of ?name= in a query, decoded; empty: it is not there.
std::string query_value(std::string_view query, std::string_view name);

}  // namespace weir::api
