#include "api/request/ignored.h"

#include <algorithm>

#include "base/near_name.h"

namespace weir::api {

namespace {

// Together at most 2.6 KB: proxies take 4 to 8 KB of all headers by default.
constexpr size_t kNamesMax = 16;
constexpr size_t kNameBytesMax = 160;

}  // namespace

void Ignored::add(std::string_view what) {
  const std::string name(what.substr(0, kNameBytesMax));
  if (std::ranges::find(names_, name) != names_.end()) return;
  ++count_;
  if (names_.size() < kNamesMax) names_.push_back(name);
}

void Ignored::add(const Ignored& others) {
  for (const std::string& name : others.names_) add(name);
  count_ += others.count_ - static_cast<int64_t>(others.names_.size());
}

void Ignored::add_unknown(JsonObject body, const std::vector<FieldDoc>& known) {
  size_t compared = 0;
  for (const auto [key, value] : body) {
    if (value.is_null() || std::ranges::find(known, key, &FieldDoc::name) != known.end()) continue;
    std::string name(key.substr(0, kNameBytesMax / 2));
    std::vector<std::string_view> names;
    // A body of thousands of members is no typing mistake, and may repeat one without end.
    if (compared++ < kNamesMax)
      for (const FieldDoc& field : known) names.push_back(field.name);
    const std::string_view meant = near_name(key, names);
    if (!meant.empty()) name.append(" (").append(meant).append("?)");
    add(name);
  }
}

std::string Ignored::header() const {
  std::string text;
  for (const std::string& name : names_) {
    if (!text.empty()) text += ", ";
    for (const char c : name) text += c >= ' ' && c <= '~' ? c : '?';
  }
  const int64_t more = count_ - static_cast<int64_t>(names_.size());
  if (more > 0) text += ", and " + std::to_string(more) + " more";
  return text;
}

}  // namespace weir::api
