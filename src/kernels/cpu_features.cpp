#include "kernels/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace weir::kernels {
namespace {

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero where the processor has no such leaf.
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

constexpr bool all_set(uint64_t word, uint64_t mask) { return (word & mask) == mask; }
constexpr uint32_t bit(int n) { return uint32_t{1} << n; }

// XCR0: which register states the operating system saves. REQUIRES: OSXSAVE.
uint64_t enabled_states() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// Linux gives a process the 8 KiB of tile state only when it asks (kernel 5.16).
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::string brand_string() {
  if (cpuid(0x80000000u, 0).eax < 0x80000004u) return "unknown processor";
  std::array<char, 49> text{};
  for (uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002u + i, 0);
    const std::array<uint32_t, 4> words = {r.eax, r.ebx, r.ecx, r.edx};
    std::memcpy(text.data() + 16 * i, words.data(), 16);
  }
  std::string name(text.data());
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name.substr(std::min(name.find_first_not_of(' '), name.size()));
}

bool made_by_amd() {
  const Registers r = cpuid(0, 0);
  const std::array<uint32_t, 3> words = {r.ebx, r.edx, r.ecx};
  return std::memcmp(words.data(), "AuthenticAMD", sizeof words) == 0;
}

CpuFeatures detect() {
  constexpr uint64_t kYmmState = 0x6, kZmmState = 0xe6, kTileState = 0x60000;
  CpuFeatures found;
  found.name = brand_string();
  const Registers basic = cpuid(1, 0), extended = cpuid(7, 0), more = cpuid(7, 1);
  const uint32_t fma_osxsave_avx_f16c = bit(12) | bit(27) | bit(28) | bit(29);
  if (!all_set(basic.ecx, fma_osxsave_avx_f16c)) return found;
  const uint64_t states = enabled_states();
  const uint32_t avx2_bmi2 = bit(5) | bit(8);
  found.avx2 = all_set(states, kYmmState) && all_set(extended.ebx, avx2_bmi2);
  const uint32_t f_dq_bw_vl = bit(16) | bit(17) | bit(30) | bit(31);
  const uint32_t vnni = bit(11);
  found.avx512 = found.avx2 && all_set(states, kZmmState) && all_set(extended.ebx, f_dq_bw_vl) &&
                 all_set(extended.ecx, vnni);
  found.four_pipes = found.avx512 && made_by_amd();
  found.fetch_in_order = made_by_amd();
  const uint32_t amx_bf16_tile_int8 = bit(22) | bit(24) | bit(25);
  const uint32_t avx512_bf16 = bit(5);
  found.fast_bf16 = found.four_pipes && all_set(more.eax, avx512_bf16);
  found.amx = found.avx512 && all_set(states, kTileState) &&
              all_set(extended.edx, amx_bf16_tile_int8) && all_set(more.eax, avx512_bf16) &&
              request_tiles();
  return found;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace weir::kernels
