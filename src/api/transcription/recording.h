// Recording: a sound's file as the windows that a speech model hears: each as long as its encoder
// takes, and what an encoder reads of it. Windows overlap by a sixth: words at the edge of one are
// within another.
//
// Threads: a value; hear_recording() is slow work for a pool thread. What windows hold is shared with
// the engine, and gives its memory back wherever it is let go of last.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "api/memory/memory_lease.h"
#include "base/result.h"
#include "grammar/interrupt.h"
#include "media/features/front_end.h"
#include "sched/heard_sound.h"

namespace weir::api::transcription {

struct Window {
  double begin = 0, end = 0;  // Seconds.
  std::shared_ptr<const sched::HeardSound> heard{};
};

struct Recording {
  double seconds = 0;
  std::vector<Window> windows{};  // At least one.
};

// An hour, as SoundLimits has it for files.
inline constexpr int64_t kSecondsMax = 3600;

// Samples [begin, end) of each window.
struct WindowSamples {
  int64_t begin = 0, end = 0;
};
std::vector<WindowSamples> cut_windows(const media::FrontEnd& front_end, int64_t samples);

// Memory is leased as the recording is decoded, and then at once for what all windows become. Errors name
// `file`; kCancelled when the interrupt says that the client has left.
Result<Recording> hear_recording(const media::FrontEnd& front_end, std::string_view file,
                                 MemoryBudget& budget, uint64_t caller,
                                 const grammar::Interrupt* interrupt);

}  // namespace weir::api::transcription
