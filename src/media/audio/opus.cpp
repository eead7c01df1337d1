// Ogg Opus by libopusfile, which decodes at 48 kHz whatever was recorded.
#include <opusfile.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "media/audio/decoders.h"
#include "media/audio/ogg_pages.h"

namespace weir::media {
namespace {

constexpr SoundFormat kFormat = SoundFormat::kOpus;
constexpr int kOpusRate = 48000;
// The longest packet, 120 ms: the library gives whole packets only where there is room for them.
constexpr size_t kPacketFrames = 5760;

struct FreeFile {
  void operator()(OggOpusFile* file) const { op_free(file); }
};

std::optional<int64_t> stated_frames(const OggOpusFile* file) {
  const ogg_int64_t total = op_pcm_total(file, -1);
  return total < 0 ? std::nullopt : std::optional<int64_t>(total);
}

}  // namespace

Result<void> decode_opus(std::string_view bytes, SoundBuilder& out) {
  WEIR_TRY(check_ogg_pages(kFormat, bytes));
  int error = 0;
  const std::unique_ptr<OggOpusFile, FreeFile> file(
      op_open_memory(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), &error));
  if (!file) return damaged(kFormat, "its headers cannot be read");
  const int channels = op_channel_count(file.get(), -1);
  WEIR_TRY(out.begin(channels, kOpusRate, stated_frames(file.get())));
  std::vector<float> samples(kPacketFrames * out.channels());
  for (;;) {
    int link = 0;
    const int count =
        op_read_float(file.get(), samples.data(), static_cast<int>(samples.size()), &link);
    if (count == 0) return {};
    if (count < 0) return damaged(kFormat, "a page or a packet of it is missing or wrong");
    if (op_channel_count(file.get(), link) != channels)
      return damaged(kFormat, "its channels change on the way");
    WEIR_TRY(out.add(std::span(samples).first(static_cast<size_t>(count) * out.channels())));
  }
}

}  // namespace weir::media
