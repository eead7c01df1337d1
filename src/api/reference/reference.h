// What the reference says beside the tables that parse: the names that generated clients use, how
// answers look, and examples. Data; endpoint_table.cpp makes docs/api.md of it, openapi.cpp
// /openapi.json. tests/api/reference/examples_test.cpp sends every example to a server and holds
// what comes back against the schemas, so an answer cannot get a member that is not described here.
//
// Threads: any; constant data.
//
// Invariants, all of them checked by tests:
// (1) Every endpoint has an operation and, unless it refuses everything, at least one example;
// every
//     operation has an endpoint.
// (2) Every `json` is a JSON Schema, whose $refs point to components/schemas.
// (3) Schemas of answers name every member. They leave additionalProperties out: a client must
//     bear members that come later.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace weir::api::reference {

// The highest number of a field that takes any integer of 64 bits.
inline constexpr double kInt64Max = 0x1p63;

// An endpoint, as a generated client calls it.
struct Operation {
  std::string_view method, path;  // A row of the endpoints' table.
  std::string_view id, tag;
  // Names of components: of the body, of a whole answer, of each event of a streamed one.
  std::string_view request = {};  // Made of the endpoint's fields.
  std::string_view answer = {};   // Empty: a text.
  std::string_view event = {};    // Empty: the endpoint does not stream.
  // Parameters of the query, as an array of JSON; empty: none.
  std::string_view query = {};
  bool refuses = false;  // Every answer is an error, so there is no example of another.
};

// A request and what it was answered by the built-in model, except where the comment beside it says
// otherwise.
struct Example {
  std::string_view method, path;  // Of the operation.
  std::string_view title;
  std::string_view id = {};  // In the place of {id} in the path; "?...": a query after it.
  std::string_view request = {};
  std::string_view answer;  // JSON; of a stream an array of its events; else a text.
};

// A member of components/schemas.
struct Schema {
  std::string_view name, json;
};

// What the array or the object in a request's field looks like; its type alone says too little.
struct FieldSchema {
  std::string_view path;  // The endpoints whose path begins so.
  std::string_view field;
  std::string_view json;
};

std::span<const Operation> operations();
// Its streams are lines of JSON (application/x-ndjson), else events.
bool streams_lines(const Operation& operation);
const Operation* find_operation(std::string_view method, std::string_view path);

// In the order of the reference, of one file each.
std::span<const Example> chat_examples();
std::span<const Example> llama_examples();
std::span<const Example> conversation_examples();
std::span<const Example> vector_examples();
std::span<const Example> sound_examples();
std::span<const Example> ollama_examples();
std::span<const Example> server_examples();

// The operation's examples, of all of these.
std::vector<const Example*> examples_of(const Operation& operation);
bool asks_for_stream(const Example& example);

std::span<const Schema> chat_schemas();
std::span<const Schema> llama_schemas();
std::span<const Schema> response_schemas();
std::span<const Schema> message_schemas();
std::span<const Schema> ollama_schemas();
std::span<const Schema> sound_schemas();
std::span<const Schema> server_schemas();

// The most specific path first.
std::span<const FieldSchema> field_schemas();
// Null where the table has no row.
const FieldSchema* find_field_schema(std::string_view path, std::string_view field);

}  // namespace weir::api::reference
