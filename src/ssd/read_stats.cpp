#include "ssd/read_stats.h"

#include "base/check.h"

namespace weir::ssd {

std::string_view name_of(ReadClass cls) {
  switch (cls) {
    case ReadClass::kDemand:
      return "demand";
    case ReadClass::kPrefill:
      return "prefill";
    case ReadClass::kSpeculative:
      return "speculative";
  }
  CHECK(false);
}

std::string_view name_of(ReadError error) {
  switch (error) {
    case ReadError::kIo:
      return "EIO";
    case ReadError::kMemory:
      return "ENOMEM";
    case ReadError::kAgain:
      return "EAGAIN";
    case ReadError::kInvalid:
      return "EINVAL";
    case ReadError::kEnd:
      return "end";
    case ReadError::kChanged:
      return "changed";
    case ReadError::kStuck:
      return "stuck";
    case ReadError::kOther:
      return "other";
  }
  CHECK(false);
}

}  // namespace weir::ssd
