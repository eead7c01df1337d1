// TemplateFixture: a folder of chat templates, contexts and what Python's Jinja2 renders for each
// pair (tools/render_templates.py makes one). Used by weir-check and by the tests.
//
// Threads: one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace weir::check {

// The pairs of one template, or of all: what agreed and what did not.
struct TemplateComparison {
  std::string name;                      // The template's file.
  int same = 0;                          // Equal text, byte for byte.
  int refused = 0;                       // Both fail, whatever they say about it.
  std::vector<std::string> differences;  // One text for each pair that differs.
};

// The time at which the recorded answers were rendered: 2026-01-02 03:04:05 UTC.
constexpr int64_t kTemplateNow = 1767323045;

// A comparison for each template, sorted by name. An error if the folder is no such fixture.
Result<std::vector<TemplateComparison>> compare_templates(const std::string& folder);

}  // namespace weir::check
