#include <cstdio>

#include "check.h"

namespace weir::check {

namespace {

void line(const char* verdict, std::string_view name, std::string_view detail) {
  std::printf("%s %.*s%s%.*s\n", verdict, static_cast<int>(name.size()), name.data(),
              detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::fflush(stdout);
}

}  // namespace

void Report::pass(std::string_view name, std::string_view detail) {
  ++passed_;
  line("pass", name, detail);
}

void Report::fail(std::string_view name, std::string_view why) {
  ++failed_;
  line("FAIL", name, why);
}

void Report::skip(std::string_view name, std::string_view why) {
  ++skipped_;
  line("skip", name, why);
}

int Report::finish() const {
  std::printf("%d passed, %d failed, %d skipped\n", passed_, failed_, skipped_);
  return passed_ > 0 && failed_ == 0 ? 0 : 1;
}

}  // namespace weir::check
