// Attention to codes of keys and values in AVX-512.
#include "kernels/simd/attend_coded.h"

#include "kernels/avx512/attention.h"
#include "kernels/avx512/bytes.h"

namespace weir::kernels::avx512 {

void attend_codes(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
                  const AttendArgs& args) {
  simd::attend_coded<Vec, Bytes>(coded, hot, hot_pages, args);
}

void fill_coded_attention(CodedOps& ops) { ops.attend = attend_codes; }

}  // namespace weir::kernels::avx512
