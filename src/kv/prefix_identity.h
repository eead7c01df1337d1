// PrefixIdentity: everything besides tokens that changes what is remembered of them. Sequences
// share memory only where all of it agrees.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <type_traits>

namespace weir::kv {

struct PrefixIdentity {
  uint64_t model = 0;         // Which weights; 0: those of the process.
  uint64_t adapter = 0;       // Which changes to them; 0: none.
  uint64_t media = 0;         // Where all tokens see each other: the prompt with its pictures; of
                              // cross attention: the sound; or 0.
  uint64_t length_class = 0;  // Where rope depends on the length (sched/length_class.h).
  uint64_t cache_salt = 0;    // The request's wish not to share with others.
  uint64_t secret = 0;        // Of the folder where blocks are kept on disk; 0: there is none.
  uint32_t format = 0;        // How numbers are stored: a kv::Format::Kind.
  uint32_t arithmetic = 0;    // How they are computed: a model::Compute.
};
// It is hashed as bytes.
static_assert(std::has_unique_object_representations_v<PrefixIdentity>);

}  // namespace weir::kv
