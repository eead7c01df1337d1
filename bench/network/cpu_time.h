// CpuTime: processor time of a thread or a process, and of the whole machine.
//
// The kernel knows the sum of user and system time to the nanosecond; where it does not switch
// clocks at every system call it splits the sum by what its ticks saw (250 a second), so a share
// needs seconds to be good, and a period that is no multiple of the tick's.
#pragma once

#include <cstdint>

namespace weir::bench {

struct CpuTime {
  double user_us = 0;
  double system_us = 0;

  double total_us() const { return user_us + system_us; }
  CpuTime operator-(const CpuTime& other) const {
    return {user_us - other.user_us, system_us - other.system_us};
  }
  CpuTime operator/(double count) const { return {user_us / count, system_us / count}; }
};

// Of the calling thread; of this process and its children that have been waited for.
CpuTime thread_cpu();
CpuTime process_cpu();
CpuTime children_cpu();

// Seconds of the monotonic clock.
double now_s();

// What all processes together have used of all cores since the machine started, in microseconds, to
// the kernel's hundredth of a second.
double machine_busy_us();
int32_t cores();

}  // namespace weir::bench
