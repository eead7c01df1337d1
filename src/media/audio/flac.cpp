// FLAC by libFLAC.
#include <FLAC/stream_decoder.h>

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "media/audio/decoders.h"
#include "media/audio/memory_file.h"

namespace weir::media {
namespace {

struct DeleteDecoder {
  void operator()(FLAC__StreamDecoder* decoder) const { FLAC__stream_decoder_delete(decoder); }
};

struct Stream {
  MemoryFile file{};
  SoundBuilder* out = nullptr;
  std::optional<FLAC__StreamMetadata_StreamInfo> info{};
  uint64_t frames = 0;           // Given to the builder.
  std::optional<Error> error{};  // The first.
  std::vector<float> samples{};

  void fail_once(tl::unexpected<Error> failure) {
    if (!error) error = std::move(failure.value());
  }
  bool complete() const { return info && info->total_samples > 0 && frames >= info->total_samples; }
};

Stream& stream_of(void* data) { return *static_cast<Stream*>(data); }

FLAC__StreamDecoderReadStatus read(const FLAC__StreamDecoder*, FLAC__byte* to, size_t* count,
                                   void* data) {
  *count = static_cast<size_t>(stream_of(data).file.read(to, static_cast<int64_t>(*count)));
  return *count > 0 ? FLAC__STREAM_DECODER_READ_STATUS_CONTINUE
                    : FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
}

void keep_info(const FLAC__StreamDecoder*, const FLAC__StreamMetadata* metadata, void* data) {
  if (metadata->type == FLAC__METADATA_TYPE_STREAMINFO)
    stream_of(data).info = metadata->data.stream_info;
}

void keep_error(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus status, void* data) {
  Stream& stream = stream_of(data);
  if (stream.complete()) return;  // Tags may follow the last frame.
  stream.fail_once(damaged(SoundFormat::kFlac,
                           status == FLAC__STREAM_DECODER_ERROR_STATUS_FRAME_CRC_MISMATCH
                               ? "the checksum of a frame is another than that of its samples"
                               : "a frame of it is wrong, or not there to its end"));
}

FLAC__StreamDecoderWriteStatus add(const FLAC__StreamDecoder*, const FLAC__Frame* frame,
                                   const FLAC__int32* const* channels, void* data) {
  Stream& stream = stream_of(data);
  const FLAC__FrameHeader& header = frame->header;
  if (!stream.info || header.channels != stream.info->channels ||
      header.sample_rate != stream.info->sample_rate ||
      header.bits_per_sample != stream.info->bits_per_sample) {
    stream.fail_once(
        damaged(SoundFormat::kFlac, "its rate, its channels or its bits change on the way"));
    return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }
  const float scale = std::ldexp(1.0f, 1 - static_cast<int>(header.bits_per_sample));
  stream.samples.resize(size_t{header.blocksize} * header.channels);
  float* to = stream.samples.data();
  for (uint32_t i = 0; i < header.blocksize; ++i)
    for (uint32_t c = 0; c < header.channels; ++c)
      *to++ = static_cast<float>(channels[c][i]) * scale;
  stream.frames += header.blocksize;
  if (auto added = stream.out->add(stream.samples); !added) {
    stream.fail_once(tl::unexpected(std::move(added).error()));
    return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }
  return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

}  // namespace

Result<void> decode_flac(std::string_view bytes, SoundBuilder& out) {
  const std::unique_ptr<FLAC__StreamDecoder, DeleteDecoder> decoder(FLAC__stream_decoder_new());
  if (!decoder) return fail(ErrorCode::kCapacity, "no memory for a FLAC's decoder");
  Stream stream{.file = {bytes}, .out = &out};
  FLAC__stream_decoder_set_md5_checking(decoder.get(), 1);
  if (FLAC__stream_decoder_init_stream(decoder.get(), read, nullptr, nullptr, nullptr, nullptr, add,
                                       keep_info, keep_error,
                                       &stream) != FLAC__STREAM_DECODER_INIT_STATUS_OK)
    return fail(ErrorCode::kCapacity, "no memory for a FLAC's decoder");
  if (!FLAC__stream_decoder_process_until_end_of_metadata(decoder.get()) || !stream.info)
    return damaged(SoundFormat::kFlac, "its header does not say what it holds");
  const uint64_t total = stream.info->total_samples;  // Of 36 bits; 0 where it is not known.
  WEIR_TRY(out.begin(stream.info->channels, stream.info->sample_rate,
                     total > 0 ? std::optional<int64_t>(total) : std::nullopt));
  while (!stream.error && !stream.complete()) {
    if (!FLAC__stream_decoder_process_single(decoder.get()) && !stream.error)
      stream.fail_once(damaged(SoundFormat::kFlac, "it cannot be decoded"));
    if (FLAC__stream_decoder_get_state(decoder.get()) == FLAC__STREAM_DECODER_END_OF_STREAM) break;
  }
  if (stream.error) return tl::unexpected(*std::move(stream.error));
  // Of all samples; one that is 0 was not computed.
  if (!FLAC__stream_decoder_finish(decoder.get()) && (total == 0 || stream.complete()))
    return damaged(SoundFormat::kFlac, "its checksum is another than that of its samples");
  return {};
}

}  // namespace weir::media
