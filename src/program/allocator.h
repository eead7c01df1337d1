// The malloc that serves this process.
//
// Threads: any.
#pragma once

#include <string>

namespace weir {

// "mimalloc 2.0.9" when its symbols are there, else "libc".
std::string allocator_name();

// What the calling thread has freed goes back to the system; of libc, what all threads have.
void purge_allocator();

}  // namespace weir
