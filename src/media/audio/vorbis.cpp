// Ogg Vorbis by libvorbisfile.
#define OV_EXCLUDE_STATIC_CALLBACKS
#include <vorbis/vorbisfile.h>

#include <optional>
#include <vector>

#include "media/audio/decoders.h"
#include "media/audio/memory_file.h"
#include "media/audio/ogg_pages.h"

namespace weir::media {
namespace {

constexpr SoundFormat kFormat = SoundFormat::kVorbis;

MemoryFile& file_of(void* data) { return *static_cast<MemoryFile*>(data); }

ov_callbacks callbacks() {
  ov_callbacks out{};
  out.read_func = [](void* to, size_t size, size_t count, void* data) {
    return size == 0
               ? 0
               : static_cast<size_t>(file_of(data).read(to, static_cast<int64_t>(size * count))) /
                     size;
  };
  out.seek_func = [](void* data, ogg_int64_t offset, int from) {
    return file_of(data).seek(offset, from) < 0 ? -1 : 0;
  };
  out.tell_func = [](void* data) { return static_cast<long>(file_of(data).at); };
  return out;
}

// Closes itself once it is open.
struct File {
  OggVorbis_File vorbis{};
  bool open = false;

  ~File() {
    if (open) ov_clear(&vorbis);
  }
};

std::optional<int64_t> stated_frames(OggVorbis_File& vorbis) {
  const ogg_int64_t total = ov_pcm_total(&vorbis, -1);
  return total < 0 ? std::nullopt : std::optional<int64_t>(total);
}

}  // namespace

Result<void> decode_vorbis(std::string_view bytes, SoundBuilder& out) {
  WEIR_TRY(check_ogg_pages(kFormat, bytes));
  MemoryFile memory{bytes};
  File file;
  file.open = ov_open_callbacks(&memory, &file.vorbis, nullptr, 0, callbacks()) == 0;
  if (!file.open) return damaged(kFormat, "its headers cannot be read");
  const vorbis_info first = *ov_info(&file.vorbis, -1);
  WEIR_TRY(out.begin(first.channels, first.rate, stated_frames(file.vorbis)));
  std::vector<float> samples;
  for (;;) {
    float** channels = nullptr;
    int link = 0;
    const long count =
        ov_read_float(&file.vorbis, &channels, static_cast<int>(kBlockFrames), &link);
    if (count == 0) return {};
    if (count < 0) return damaged(kFormat, "a page or a packet of it is missing or wrong");
    const vorbis_info* info = ov_info(&file.vorbis, link);
    if (info == nullptr || info->channels != first.channels || info->rate != first.rate)
      return damaged(kFormat, "its rate or its channels change on the way");
    samples.clear();
    for (long i = 0; i < count; ++i)
      for (size_t c = 0; c < out.channels(); ++c) samples.push_back(channels[c][i]);
    WEIR_TRY(out.add(samples));
  }
}

}  // namespace weir::media
