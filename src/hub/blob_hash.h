// BlobHash: the hash that names a blob, computed along its bytes: SHA-256 of large files, git's
// SHA-1 of small ones (tree.h).
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/digest.h"

namespace weir::hub {

class BlobHash {
 public:
  // For a blob of that name and size. REQUIRES: is_blob_name(blob).
  BlobHash(std::string_view blob, int64_t size);

  void add(std::string_view bytes) { digest_.add(bytes); }
  // The name that the bytes have. Nothing may be added after it.
  std::string finish() { return digest_.finish(); }

 private:
  net::Digest digest_;
};

}  // namespace weir::hub
