// What a picture or a sound takes in memory on its way, from the budget that --image-memory sets. The
// API leases these, and the memory plan makes its limits of them.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "api/memory/request_memory.h"
#include "base/fair_budget.h"
#include "media/audio/decode_sound.h"
#include "media/features/sound_plan.h"
#include "media/image/decode.h"
#include "media/processor/image_plan.h"

namespace weir::api {

// While so many pixels are decoded; what they become is a part of it.
inline size_t decoding_bytes(int64_t pixels) {
  return static_cast<size_t>(media::kDecodeBytesPerPixel * pixels);
}

// The most pixels of one image: its decoding takes half of what one caller gets at once, and the
// rest is for its file and for what becomes of it.
inline int64_t pixels_within(size_t budget_bytes) {
  constexpr size_t kShare = 2;
  const size_t one = FairBudget::most_of_one(budget_bytes) / kShare;
  return static_cast<int64_t>(one / static_cast<size_t>(media::kDecodeBytesPerPixel));
}

// The numbers that a tower reads: of each pixel three float32, and once more for each further frame.
inline size_t values_bytes(const media::Processor& processor, const media::ImagePlan& plan) {
  const int64_t frames =
      processor.layout == media::PixelLayout::kBlocks ? processor.frames : 1;
  const int64_t pixels = plan.canvas.pixels() + plan.whole.pixels();
  return static_cast<size_t>(3 * frames * pixels) * sizeof(float);
}

// While they are computed: besides, three bytes a pixel of each frame (one, of a picture) in each
// size that it gets, twice, and of a view.
inline size_t processing_bytes(const media::Processor& processor, const media::ImagePlan& plan,
                               int64_t frames) {
  int64_t pixels = plan.canvas.pixels() + plan.whole.pixels();
  for (const media::Size& size : plan.resizes) pixels += 2 * size.pixels();
  return values_bytes(processor, plan) + static_cast<size_t>(3 * pixels * frames);
}

// How long a sound may last at most to be decoded: more than the encoder takes at once is refused.
inline int64_t seconds_max(const media::FrontEnd& front_end) {
  return (front_end.samples_max + front_end.rate - 1) / front_end.rate;
}

// While a sound of any length is decoded: where it is too long, decoding stops at that.
inline size_t decoding_bytes(const media::FrontEnd& front_end) {
  return static_cast<size_t>(media::kDecodeBytesPerSample * seconds_max(front_end) *
                             front_end.rate);
}

// The numbers that an encoder reads of a sound.
inline size_t values_bytes(const media::FrontEnd& front_end, const media::SoundPlan& plan) {
  return static_cast<size_t>(plan.frames * front_end.mels) * sizeof(float);
}

// Adds to a lease, which may be nothing yet. kTooLarge where the budget would not have so much for one
// even if it were free: it gives a caller that holds nothing more at once than it lets a lease grow to.
inline Result<void> lease_medium(MemoryBudget& budget, uint64_t caller, MemoryLease& lease,
                                 size_t bytes) {
  const size_t most = lease.bytes() > 0 ? budget.share_of_one() : budget.most_of_one();
  if (lease.bytes() + bytes > most)
    return fail(ErrorCode::kTooLarge,
                "it would take " + std::to_string(lease.bytes() + bytes) +
                    " bytes of memory, more than the " +
                    std::to_string(most) +
                    " that this server gives to one (--image-memory)");
  if (lease.bytes() > 0 && budget.grow(lease, bytes)) return {};
  if (lease.bytes() == 0) {
    if (auto taken = budget.take(caller, bytes)) {
      lease = std::move(*taken);
      return {};
    }
  }
  return fail(ErrorCode::kOverloaded,
              "The memory for images and sounds is used up (--image-memory); try again later.");
}

}  // namespace weir::api
