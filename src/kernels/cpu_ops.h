// Chooses the kernels for this processor, once, at start.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernels/ops.h"

namespace weir::kernels {

// The best ISA that this processor and kernel offer. For kAmx the kernel is asked for permission to
// use the tile registers: call before any team thread starts.
Isa detect_isa();
bool isa_available(Isa isa);

// "scalar", "avx2", "avx512", "amx".
std::string_view isa_name(Isa isa);
std::optional<Isa> parse_isa(std::string_view name);

// The forced ISA if given (an error if this machine lacks it), else WEIR_ISA, else the best.
Result<Isa> choose_isa(std::optional<Isa> forced);

// The filled table. A level takes whatever it does not define itself from the level below. In debug
// builds each entry checks what ops.h REQUIRES of it (checked_ops.h). REQUIRES: isa_available(isa).
const Ops& ops_for(Isa isa);

// "Intel(R) Xeon(R) ...", from cpuid.
std::string processor_name();

}  // namespace weir::kernels
