#include "base/near_name.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace weir {

namespace {

// Two edits are a typing mistake (a letter doubled, another left out); of a short name they are
// another word, so at most one letter in three may differ.
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
  // Rows of the table of distances between beginnings of `a` and of `b`: this one and two before.
  std::vector<size_t> older(b.size() + 1), old(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    older.swap(old);
    old.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({old[j] + 1, row[j - 1] + 1, old[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], older[j - 2] + 1);
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
