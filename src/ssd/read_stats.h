// ReadStats: what a ReadQueue counts. ReadClass: what a read is for.
//
// Threads: written by the queue's owner, read by anybody.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/metrics.h"

namespace weir::ssd {

// In order of precedence.
enum class ReadClass : uint8_t { kDemand, kPrefill, kSpeculative };
inline constexpr int kReadClasses = 3;

// "demand", "prefill", "speculative": labels of metrics.
std::string_view name_of(ReadClass cls);

// Errors of reads that are counted one by one; others are counted together.
enum class ReadError : uint8_t { kIo, kMemory, kAgain, kInvalid, kEnd, kChanged, kStuck, kOther };
inline constexpr int kReadErrors = 8;

// "EIO", "ENOMEM", "EAGAIN", "EINVAL", "end", "changed", "stuck", "other".
std::string_view name_of(ReadError error);

struct ReadStats {
  // What has landed, by the class that a read has then.
  std::array<Counter, kReadClasses> bytes;
  std::array<Counter, kReadClasses> reads;
  std::array<Histogram, kReadClasses> latency;  // From add(), or promote(), to landing.
  Histogram device_latency;                     // From submission to completion, all classes.

  Counter busy_ns;       // Time with a read in the kernel.
  Counter wait_ns;       // Time the owner slept in wait().
  Counter short_reads;   // Reads of which the rest had to be asked for again.
  Counter retries;       // Submissions after an error.
  Counter failures;      // Reads that landed with a failure.
  Counter dropped;       // Reads that drop() took back from the queue.
  Counter promoted;      // Reads that promote() raised, queued or in the kernel.
  Counter stalls;        // Times that nothing completed for 5 s.
  Counter file_changes;  // Files seen to be replaced, modified or truncated.
  std::array<Counter, kReadErrors> errors;
  Gauge in_flight_bytes;
};

}  // namespace weir::ssd
