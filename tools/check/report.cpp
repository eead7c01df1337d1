#include <cstdio>

#include "check.h"

namespace weir::check {

namespace {

void line(const char* verdict, std::string_view name, std::string_view detail) {
  std::printf("%s %.*s%s%.*s\n", verdict, static_cast<int>(name.size()), name.data(),
              detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::fflush(stdout);
}

// " (a; b)", or nothing.
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? " (" : "; ") + name;
  return text.empty() ? text : text + ")";
}

}  // namespace

void Report::pass(std::string_view name, std::string_view detail) {
  ++passed_;
  line("pass", name, detail);
}

void Report::fail(std::string_view name, std::string_view why) {
  failed_.emplace_back(name);
  line("FAIL", name, why);
}

void Report::skip(std::string_view name, std::string_view why) {
  skipped_.emplace_back(name);
  line("skip", name, why);
}

int Report::finish() const {
  std::printf("%d passed, %zu failed%s, %zu skipped%s\n", passed_, failed_.size(),
              listed(failed_).c_str(), skipped_.size(), listed(skipped_).c_str());
  return passed_ > 0 && failed_.empty() ? 0 : 1;
}

}  // namespace weir::check
