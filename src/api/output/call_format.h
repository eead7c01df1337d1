// CallFormat: how a model writes calls of functions. Formats are data: markers, a reader of what is
// between them, and the grammar that binds it. Which one a model uses is found in the text of its
// chat template.
//
// Threads: immutable.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/output/call_reader.h"

namespace weir::api::output {

// How calls are written where a grammar forces them:
//   section_begin call_begin NAME after_name ARGUMENTS call_end (between call ...) section_end
// A '\v' stands for nothing, a space or a line feed; a '\a' for a number.
struct CallGrammar {
  std::string_view section_begin{};
  std::string_view call_begin{}, after_name{}, call_end{};
  std::string_view between{};  // Of calls in one section; empty: a section has one call.
  std::string_view section_end{};
};

struct CallFormat {
  std::string_view name{};
  // What templates that use it hold, all of it.
  std::array<std::string_view, 2> in_template{};
  std::span<const std::string_view> begins{};  // Markers; none begins with another one.
  // First bytes of calls without a marker, at the beginning of the content.
  std::string_view bare{};
  // For a marker (empty: none) and the first byte after it that is no white space; null: no call.
  CallReaderPtr (*reader)(std::string_view marker, char first) = nullptr;
  CallGrammar grammar{};
  // The grammar is the form in which the model itself writes calls, and begins with a marker: so
  // free text can pass until a call begins.
  bool native_grammar = false;
  std::string_view markers{};  // Others, one after the other.
  bool short_ids = false;      // Nine letters or digits.
  bool messages = false;       // HarmonyParser reads the whole output.
};

std::span<const CallFormat> call_formats();

// The format of a template; the generic one if it takes tools and no other fits; null if it does
// not take them.
const CallFormat* detect_calls(std::string_view chat_template);
// Null if there is none of the name.
const CallFormat* find_calls(std::string_view name);
// JSON without markers, for models of which no format is known.
const CallFormat& generic_calls();
// The form in which models are told to write calls whose template says nothing of them.
const CallFormat& described_calls();

// True if the text, a special token's, is a marker of the format or a part of one.
bool is_marker(const CallFormat& format, std::string_view text);

}  // namespace weir::api::output
