#include "base/near_name.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace weir {

namespace {

// Two edits are a typing mistake (a letter doubled, two swapped); of a short name they are another
// word, so at most one letter in three may differ.
constexpr size_t kEditsMax = 2, kLettersPerEdit = 3;
// Longer than every name of a table; what is longer is near to none, and costs nothing.
constexpr size_t kNameBytesMax = 64;

// Lower-case letters and digits: what spellings of one name have in common.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') letters += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) letters += c;
  }
  return letters;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] != b[j])});
      diagonal = above;
    }
  }
  return row.back();
}

std::string_view near_name(std::string_view name, std::span<const std::string_view> names) {
  if (name.size() > kNameBytesMax) return {};
  const std::string letters = letters_of(name);
  if (letters.empty()) return {};
  std::string_view nearest;
  size_t least = kEditsMax + 1;
  for (const std::string_view each : names) {
    const size_t edits = edit_distance(letters, letters_of(each));
    if (edits >= least || edits * kLettersPerEdit > each.size()) continue;
    least = edits;
    nearest = each;
  }
  return nearest;
}

}  // namespace weir
