#include "hub/blob_hash.h"

#include "base/concat.h"

namespace weir::hub {

BlobHash::BlobHash(std::string_view blob, int64_t size)
    : digest_(blob.size() == 64 ? net::Digest::Kind::kSha256 : net::Digest::Kind::kSha1) {
  if (blob.size() != 64) digest_.add(concat({"blob ", std::to_string(size), {"\0", 1}}));
}

}  // namespace weir::hub
