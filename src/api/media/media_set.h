// MediaSet: the pictures and sounds of one request, on their way from where it says they are to what an
// encoder reads of them.
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
#include "sched/prompt_media.h"

namespace weir::api {

struct SeenMedium {
  Medium medium = Medium::kPicture;
  media::ImagePlan plan{};      // Of a picture.
  media::SoundPlan sound{};     // Of a sound.
  sched::MediumInput input{};   // None where media are only counted.
  sched::MediaHash hash{};

  // Rows of features.
  int64_t tokens(const ApiConfig& config) const;
  // What stands for it in the prompt.
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
  Result<SeenMedium> see(MemoryBudget& budget, size_t index);
  Result<SeenMedium> see_picture(MemoryBudget& budget, const MediaSource& source,
                                 std::string bytes);
  Result<SeenMedium> hear_sound(MemoryBudget& budget, const MediaSource& source,
                                std::string bytes);
  Result<void> check_tokens(const MediaSource& source, const SeenMedium& seen);

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
