// MediaSet: the pictures, videos and sounds of one request, on their way from where it says they are
// to what an encoder reads of them.
//
// Only preparing a request shows which media it has, and they take longer than all else of it. So it
// is prepared twice. The first time ends where the media are found (want()); then web addresses are
// fetched, and everything is decoded and processed on a thread that others do not wait for
// (read()); the second time finds them seen().
//
// Threads: one at a time: one that prepares, the loop, one that reads. What they come to is shared
// with the engine, and gives its memory back wherever it is let go of last.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/memory/memory_lease.h"
#include "api/request/media_source.h"
#include "api/serving/api_config.h"
#include "base/result.h"
#include "grammar/interrupt.h"
#include "media/features/sound_plan.h"
#include "media/processor/image_plan.h"
#include "media/processor/video_plan.h"
#include "sched/prompt_media.h"

namespace weir::api {

// A picture, a moment of a video, or a sound.
struct SeenMedium {
  Medium medium = Medium::kPicture;
  media::ImagePlan plan{};     // Of a picture or a moment.
  media::SoundPlan sound{};    // Of a sound.
  sched::MediumInput input{};  // None where media are only counted.
  sched::MediaHash hash{};
  // Of a video, whose moments follow each other: which one it is. Else null.
  std::shared_ptr<const media::VideoPlan> video{};
  int64_t moment = 0;

  // Rows of features.
  int64_t tokens(const ApiConfig& config) const;
  // What stands for it in the prompt, or, of a video's first moment, for the video.
  std::string placeholder(const ApiConfig& config) const;
};

// Refuses media that the model does not take, too many of them, and sources that the server does
// not ask, in words that say what it takes.
Result<void> check_media(const ApiConfig& config, std::span<const MediaSource> sources);

class MediaSet {
 public:
  struct Aim {
    int32_t tokens_max = 0;  // Of all media together.
    uint64_t caller = 0;     // Whose share of the memory they take.
    bool only_counted = false;
  };

  // kCancelled: they must be read first; no client sees that error. REQUIRES: check_media() has
  // passed them, and `config` outlives the set's work.
  Error want(const ApiConfig& config, std::vector<MediaSource> sources, const Aim& aim);
  // They are wanted, and not read yet.
  bool is_wanted() const { return wanted_; }
  // What want() has led to, or why it has not. Nothing before want().
  std::optional<Result<std::span<const SeenMedium>>> seen() const;

  // Web addresses that are to be fetched first, and their files. fetched() may come in its place.
  std::vector<std::string> addresses() const;
  void set_files(std::vector<Result<std::string>> files);
  size_t file_bytes_max() const;  // Of one that is fetched.
  // Memory for a part of a file that comes. `budget`: that of read().
  Result<void> admit(MemoryBudget& budget, size_t bytes);
  // Decodes and processes them all. `interrupt` ends it between two.
  void read(MemoryBudget& budget, const grammar::Interrupt& interrupt);
  // In the place of read(): they cannot be had.
  void fail(Error error);

 private:
  Result<std::string> bytes_of(MemoryBudget& budget, size_t index);
  // A picture with the memory that it takes.
  struct Decoded {
    MemoryLease lease{};  // Declared first: given back after the picture is freed.
    media::Image image{};
  };
  Result<Decoded> decode(MemoryBudget& budget, size_t index);
  Result<void> see(MemoryBudget& budget, size_t index);
  // The video whose frames begin at `index`.
  Result<void> see_video(MemoryBudget& budget, size_t index, const grammar::Interrupt& interrupt);
  Result<void> see_video_file(MemoryBudget& budget, size_t index,
                              const grammar::Interrupt& interrupt);
  // `shown`: its frames, which may be fewer than a moment has at the video's end. Where media are
  // only counted, none are needed.
  Result<void> see_moment(MemoryBudget& budget, const MediaSource& source,
                          const std::shared_ptr<const media::VideoPlan>& video, int64_t moment,
                          std::span<const media::Image* const> shown);
  Result<void> hear(MemoryBudget& budget, size_t index);
  // What a tower reads, with the memory that it takes until it is let go of.
  template <class Compute>
  Result<void> keep(MemoryBudget& budget, const MediaSource& source, SeenMedium seen,
                    int64_t frames, const Compute& compute);
  Result<void> check_tokens(const MediaSource& source, int64_t tokens);

  const ApiConfig* config_ = nullptr;
  Aim aim_;
  std::vector<MediaSource> sources_;
  std::vector<std::optional<Result<std::string>>> files_;  // By source; of addresses alone.
  MemoryLease lease_;                                      // Of files.
  int64_t tokens_ = 0;                                     // Of the media seen so far.
  std::vector<SeenMedium> seen_;
  std::optional<Error> error_;
  bool wanted_ = false, read_ = false;
};

using MediaSetPtr = std::shared_ptr<MediaSet>;

}  // namespace weir::api
