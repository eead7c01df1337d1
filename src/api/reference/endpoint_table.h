// The endpoints as data. One table (api_table.cpp) routes requests, says who may ask, and is what
// /openapi.json and docs/api.md are made of: a new endpoint is one row with its fields.
//
// Threads: any; constant data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::api {

// Who may use an endpoint, where the server has keys (access/keys.h). What changes something is
// kApi if only the caller sees the change, else kAdmin.
enum class Access : uint8_t {
  kOpen,     // Everybody: probes.
  kAnyKey,   // Every key: what the server is.
  kMonitor,  // Figures about the server: keys of scope all or monitor.
  kApi,      // Answers, and what the caller has stored: keys of scope all or api.
  // Management: what changes the server for everybody, or has it ask other machines. Keys of scope
  // admin; without keys, whom --manage lets. More is asked of its requests (access/entrance.h).
  kAdmin,
};

// What OpenAPI calls the role, and key files the scope; empty: none is asked for.
std::string_view scope_of(Access access);

// What becomes of a field of a body. Fields that no table names are ignored, and named
// in the answer (request/ignored.h).
enum class Treatment : uint8_t {
  kHonoured,
  kIgnored,  // On purpose: accepted whatever its value, without effect.
  kRefused,  // A value that asks for something is a 400 that names the field.
};

struct FieldDoc {
  std::string_view name;
  std::string_view type;  // "string", "integer", "array", "string or array" ...
  std::string_view help;
  Treatment treatment = Treatment::kHonoured;
  double min = 0, max = 0;  // Of numbers, inclusive; equal: no range.
  bool required = false;
};

struct EndpointDoc {
  std::string_view method, path;
  std::string_view summary;
  Access access;  // Without a default: each row says it.
  // The fields of the body; null where there is no body.
  std::vector<FieldDoc> (*fields)() = nullptr;
  bool form = false;  // The body is multipart/form-data, else JSON.
};

// docs/api.md.
std::string api_page(const std::vector<EndpointDoc>& endpoints);

// /openapi.json, OpenAPI 3.1.
std::string openapi_json(const std::vector<EndpointDoc>& endpoints, std::string_view version);

}  // namespace weir::api
