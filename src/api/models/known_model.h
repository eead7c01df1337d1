// KnownModel: what is known of a model before it is loaded. Its number is its place in the list of
// all models that this server has known.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::api {

struct KnownModel {
  std::string id;
  std::vector<std::string> aliases{};
  // Names of adapters that it is loaded with: requests that name one get this model.
  std::vector<std::string> adapters{};
  std::string hub_name{};   // "org/name...", of a model of the hub; empty: it is none.
  bool any_name = false;    // It answers to names that no other has.
  bool on_startup = false;  // It is loaded at once.
  bool pinned = false;
  int64_t idle_unload = 0;  // Seconds after its last use; 0: never.
  int64_t created = 0;      // Seconds since the epoch: when the server learnt of it.
  bool gone = false;        // It was there once: requests find it no more.
};

}  // namespace weir::api
