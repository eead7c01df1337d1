#include "media/video/container.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/concat.h"
#include "media/first_bytes.h"
#include "media/video/video_file.h"

namespace weir::media {
namespace {

// Takes whole pieces off the bytes' beginning; at their end it says so for ever.
class Cutter {
 public:
  explicit Cutter(std::string_view bytes) : left_(bytes) {}

  size_t left() const { return left_.size(); }
  bool ended() const { return ended_; }

  void skip(uint64_t count) {
    if (count > left_.size()) ended_ = true;
    left_.remove_prefix(static_cast<size_t>(std::min<uint64_t>(count, left_.size())));
  }
  uint8_t byte() {
    const uint8_t first = left_.empty() ? uint8_t{0} : static_cast<uint8_t>(left_.front());
    skip(1);
    return first;
  }
  // Big-endian.
  uint64_t number(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  std::string_view left_;
  bool ended_ = false;
};

tl::unexpected<Error> ends_early(Container container, std::string_view part) {
  return fail(ErrorCode::kInvalid,
              concat({"the ", container_name(container), " ends early, within its ", part}));
}

// Boxes one after another: a size of 32 bits, which has its own 8 bytes in it, and four letters. A
// size of 1: 64 bits follow; of 0: the box goes on to the file's end.
Result<void> check_boxes(std::string_view bytes) {
  constexpr uint64_t kHead = 8, kLargeHead = 16;
  Cutter cutter(bytes);
  while (cutter.left() >= kHead) {
    uint64_t size = cutter.number(4), head = kHead;
    std::string letters;
    for (int i = 0; i < 4; ++i) letters += static_cast<char>(cutter.byte());
    if (size == 0) return {};
    if (size == 1) {
      size = cutter.number(8);
      head = kLargeHead;
    }
    if (size < head)
      return damaged(Container::kMp4, concat({"a box says that it has ", std::to_string(size),
                                              " bytes, fewer than its own head"}));
    cutter.skip(size - head);
    if (cutter.ended()) {
      const bool plain = std::ranges::all_of(letters, [](char c) { return c >= ' ' && c <= '~'; });
      return ends_early(Container::kMp4,
                        plain ? concat({"box '", letters, "'"}) : std::string("last box"));
    }
  }
  return {};
}

// The boxes of an MP4 that hold boxes, and those that are tables, with where their number of entries
// stands after the letters. libavformat finds them in any box that holds boxes.
constexpr std::array<std::string_view, 15> kHolders = {
    "moov", "trak", "edts", "mdia", "minf", "stbl", "moof", "traf",
    "mvex", "udta", "dinf", "wave", "tref", "ilst", "foov"};
struct Table {
  std::string_view letters;
  size_t count_at;
};
constexpr std::array kTables = {Table{"stts", 4}, Table{"ctts", 4}, Table{"stsc", 4},
                                Table{"stco", 4}, Table{"co64", 4}, Table{"stss", 4},
                                Table{"stps", 4}, Table{"stz2", 8}, Table{"trun", 4}};

class TableCount {
 public:
  explicit TableCount(uint64_t entries_max) : entries_max_(entries_max) {}

  // REQUIRES: check_boxes() has passed the outermost ones.
  Result<void> add(std::string_view boxes, int depth = 0) {
    constexpr size_t kHead = 8, kLargeHead = 16;
    while (boxes.size() >= kHead) {
      Cutter cutter(boxes);
      uint64_t size = cutter.number(4);
      const std::string_view letters = boxes.substr(4, 4);
      cutter.skip(4);
      size_t head = kHead;
      if (size == 1) {
        size = cutter.number(8);
        head = kLargeHead;
      }
      // Zero, and whatever is not all there, goes on to the end.
      if (size == 0 || size > boxes.size()) size = boxes.size();
      if (size < head) return {};
      WEIR_TRY(add_box(letters, boxes.substr(head, static_cast<size_t>(size) - head), depth));
      boxes.remove_prefix(static_cast<size_t>(size));
    }
    return {};
  }
  size_t bytes() const { return entries_ * kEntryBytes + regular_bytes_; }

 private:
  // At most 24 for a table's own, and 24 for what libavformat makes of a frame.
  static constexpr size_t kEntryBytes = 48, kFrameBytes = 24;

  Result<void> add_box(std::string_view letters, std::string_view payload, int depth) {
    constexpr int kDepthMax = 10;  // Of which libavformat reads no more.
    if (std::ranges::find(kHolders, letters) != kHolders.end())
      return depth < kDepthMax ? add(payload, depth + 1) : Result<void>();
    if (letters == "cmov")
      return fail(ErrorCode::kMediaType, "the MP4 has a compressed head ('cmov'); plain ones are read");
    if (letters == "elst") return add_edits(payload);
    if (letters == "stsz") return add_sizes(payload);
    const auto table = std::ranges::find(kTables, letters, &Table::letters);
    return table == kTables.end() ? Result<void>() : add_table(letters, number(payload, table->count_at));
  }
  static uint64_t number(std::string_view payload, size_t at) {
    Cutter cutter(payload);
    cutter.skip(at);
    return cutter.number(4);
  }
  Result<void> add_table(std::string_view letters, uint64_t entries) {
    entries_ += entries;
    if (entries <= entries_max_ && entries_ <= kTablesMax * entries_max_) return {};
    const bool one = entries > entries_max_;
    return fail(ErrorCode::kTooLarge,
                concat({"the MP4 has ", std::to_string(one ? entries : entries_), " entries in ",
                        one ? concat({"a table '", letters, "'"}) : std::string("its tables"),
                        "; at most ", std::to_string(one ? entries_max_ : kTablesMax * entries_max_),
                        " are read"}));
  }
  // Sizes that are all alike are no table, but what is made of it has an entry for each: as sound that
  // is not compressed has many of, it is bounded by memory alone.
  Result<void> add_sizes(std::string_view payload) {
    const uint64_t size = number(payload, 4), count = number(payload, 8);
    if (size == 0) return add_table("stsz", count);
    regular_bytes_ += static_cast<size_t>(std::min<uint64_t>(count * kFrameBytes, kAllocationMax));
    return {};
  }
  // Each takes a walk through all frames. libavformat believes the box's size more than the number.
  static Result<void> add_edits(std::string_view payload) {
    constexpr size_t kHead = 8, kEdit = 12;
    const uint64_t within = payload.size() < kHead ? 0 : (payload.size() - kHead) / kEdit;
    const uint64_t edits = std::max(number(payload, 4), within);
    if (edits <= kEditsMax) return {};
    return fail(ErrorCode::kTooLarge,
                concat({"the MP4 has ", std::to_string(edits), " edits of a stream ('elst'); at most ",
                        std::to_string(kEditsMax), " are read"}));
  }

  const uint64_t entries_max_;
  uint64_t entries_ = 0;
  size_t regular_bytes_ = 0;
};

// EBML's numbers of varying length: as many bytes as the first one has leading zeros, and one. None:
// all their bits are ones, which stands for an unknown size.
std::optional<uint64_t> element_size(Cutter& cutter) {
  const uint8_t first = cutter.byte();
  int more = 0;
  while (more < 8 && (first & (0x80 >> more)) == 0) ++more;
  uint64_t value = first & (0x7f >> more);
  bool ones = value == uint64_t(0x7f >> more);
  for (int i = 0; i < more; ++i) {
    const uint8_t next = cutter.byte();
    value = value << 8 | next;
    ones = ones && next == 0xff;
  }
  if (ones) return std::nullopt;
  return value;
}

// A head, and one segment with all the rest.
Result<void> check_segment(std::string_view bytes) {
  constexpr uint64_t kSegment = 0x18538067;
  Cutter cutter(bytes);
  cutter.skip(4);  // The head's name, by which the file is known.
  const std::optional<uint64_t> head = element_size(cutter);
  cutter.skip(head.value_or(0));
  if (cutter.ended()) return ends_early(Container::kWebm, "head");
  if (cutter.number(4) != kSegment)
    return cutter.ended() ? ends_early(Container::kWebm, "head")
                          : damaged(Container::kWebm, "no segment follows its head");
  const std::optional<uint64_t> size = element_size(cutter);
  cutter.skip(size.value_or(0));
  if (cutter.ended()) return ends_early(Container::kWebm, "segment");
  return {};
}

// Entries of a table of colours, of three bytes each, by the flags that announce it.
uint64_t colour_bytes(uint8_t flags) { return flags & 0x80 ? 3ull << ((flags & 7) + 1) : 0; }

void skip_blocks(Cutter& cutter) {
  while (const uint8_t size = cutter.byte()) cutter.skip(size);
}

// A head and a screen, then pictures and extensions up to a mark.
Result<void> check_blocks(std::string_view bytes) {
  constexpr uint8_t kExtension = 0x21, kPicture = 0x2c, kEnd = 0x3b;
  Cutter cutter(bytes);
  cutter.skip(6 + 4);  // "GIF89a", width, height.
  const uint8_t screen = cutter.byte();
  cutter.skip(2 + colour_bytes(screen));
  while (!cutter.ended()) {
    const uint8_t kind = cutter.byte();
    if (kind == kEnd) return {};
    if (kind == kExtension) {
      cutter.skip(1);
      skip_blocks(cutter);
    } else if (kind == kPicture) {
      cutter.skip(8);  // Where it lies, and its size.
      const uint8_t picture = cutter.byte();
      cutter.skip(colour_bytes(picture) + 1);
      skip_blocks(cutter);
    } else if (!cutter.ended()) {
      return damaged(Container::kGif, "expected a picture, an extension or its end, found a block "
                                      "of kind " + std::to_string(kind));
    }
  }
  return ends_early(Container::kGif, "pictures");
}

}  // namespace

const char* container_name(Container container) {
  constexpr std::array kNames = {"MP4", "WebM", "GIF"};
  return kNames[static_cast<size_t>(container)];
}

std::optional<Container> container_of(std::string_view bytes) {
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return Container::kGif;
  if (bytes.starts_with("\x1a\x45\xdf\xa3")) return Container::kWebm;
  if (bytes.substr(0, 8).ends_with("ftyp") && file_kind(bytes) == FileKind::kVideo)
    return Container::kMp4;
  return std::nullopt;
}

Result<void> check_whole(Container container, std::string_view bytes) {
  switch (container) {
    case Container::kMp4:
      return check_boxes(bytes);
    case Container::kWebm:
      return check_segment(bytes);
    case Container::kGif:
      break;
  }
  return check_blocks(bytes);
}

Result<size_t> table_bytes(Container container, std::string_view bytes, int64_t entries_max) {
  if (container != Container::kMp4) return size_t{0};
  TableCount tables(static_cast<uint64_t>(entries_max));
  WEIR_TRY(tables.add(bytes));
  return tables.bytes();
}

tl::unexpected<Error> damaged(Container container, std::string_view what) {
  return fail(ErrorCode::kInvalid,
              concat({"the ", container_name(container), " is damaged: ", what}));
}

}  // namespace weir::media
