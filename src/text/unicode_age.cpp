#include "text/unicode_age.h"

#include <algorithm>
#include <iterator>

#include "base/utf8.h"
#include "text/unicode_age_table.h"

namespace weir::text {

bool assigned_by(char32_t c, uint8_t edition) {
  if (c < 0x80) return true;
  const auto* range = std::lower_bound(std::begin(kAgeRanges), std::end(kAgeRanges), c,
                                       [](const AgeRange& r, char32_t at) { return r.last < at; });
  return range != std::end(kAgeRanges) && range->first <= c && range->edition <= edition;
}

void append_normalised_by_9(std::string& out, std::string_view text, NormalForm form,
                            size_t bytes_max) {
  size_t begin = 0;  // Of the stretch of known characters.
  for (size_t i = 0; i < text.size() && out.size() <= bytes_max;) {
    const size_t at = i;
    if (assigned_by(decode_utf8(text, i), 9)) continue;
    append_normalised(out, text.substr(begin, at - begin), form, bytes_max);
    out.append(text.substr(at, i - at));
    begin = i;
  }
  if (out.size() <= bytes_max) append_normalised(out, text.substr(begin), form, bytes_max);
}

}  // namespace weir::text
