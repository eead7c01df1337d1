#include "base/compressed_size.h"

#include <zlib.h>

#include <vector>

#include "base/check.h"

namespace weir {

size_t compressed_size(std::string_view text) {
  uLongf size = ::compressBound(text.size());
  std::vector<Bytef> bytes(size);
  const int done = ::compress2(bytes.data(), &size, reinterpret_cast<const Bytef*>(text.data()),
                               text.size(), /*level=*/6);
  CHECK(done == Z_OK);  // There is room, and memory is never short here without an end.
  return size;
}

}  // namespace weir
