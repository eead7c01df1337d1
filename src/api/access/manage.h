// Manage: who may change the server for everybody, and have it ask other machines (--manage).
//
// Threads: a plain value.
#pragma once

#include <cstdint>

namespace weir::api {

enum class Manage : uint8_t {
  kAuto,  // Keys of scope admin; without keys everybody, if only this machine's users can ask.
  kOn,    // Keys of scope admin; without keys everybody.
  kOff    // No client.
};

}  // namespace weir::api
