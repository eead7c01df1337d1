#include "media/audio/ogg_pages.h"

#include <cstddef>
#include <cstdint>

#include "base/concat.h"

namespace weir::media {
namespace {

// A page: 27 bytes, the last of which says how many lengths of segments follow, these, the
// segments.
constexpr size_t kHeadBytes = 27;

size_t head_bytes(std::string_view page) {
  return page.size() < kHeadBytes ? kHeadBytes
                                  : kHeadBytes + static_cast<uint8_t>(page[kHeadBytes - 1]);
}

// 0 for what is no page.
size_t page_bytes(std::string_view page) {
  if (!page.starts_with("OggS")) return 0;
  size_t bytes = head_bytes(page);
  for (size_t i = kHeadBytes; i < head_bytes(page) && i < page.size(); ++i)
    bytes += static_cast<uint8_t>(page[i]);
  return bytes;
}

}  // namespace

std::string_view first_ogg_packet(std::string_view bytes) {
  const size_t head = head_bytes(bytes);
  return head < bytes.size() ? bytes.substr(head) : std::string_view();
}

Result<void> check_ogg_pages(SoundFormat format, std::string_view bytes) {
  while (const size_t page = page_bytes(bytes)) {
    if (page > bytes.size())
      return fail(ErrorCode::kInvalid,
                  concat({"the ", format_name(format), " ends early, within one of its pages"}));
    bytes.remove_prefix(page);
  }
  return {};
}

}  // namespace weir::media
