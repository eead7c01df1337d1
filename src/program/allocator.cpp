#include "program/allocator.h"

#include <dlfcn.h>
#include <malloc.h>

namespace weir {

namespace {

// mimalloc is linked in place of malloc, or preloaded, or not there.
template <class F>
F* symbol(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

std::string allocator_name() {
  auto* const version = symbol<int()>("mi_version");
  if (!version) return "libc";
  const int v = version();  // 209 means 2.0.9.
  return "mimalloc " + std::to_string(v / 100) + "." + std::to_string(v / 10 % 10) + "." +
         std::to_string(v % 10);
}

void purge_allocator() {
  static auto* const collect = symbol<void(bool)>("mi_collect");
  if (collect) return collect(/*force=*/true);
  ::malloc_trim(0);
}

}  // namespace weir
