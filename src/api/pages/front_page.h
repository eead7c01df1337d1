// The answer at `/`: what this server is, for a reader that has typed its address into a browser
// or into curl.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace weir::api::pages {

struct FrontPage {
  std::string_view version;
  std::string_view model;  // Empty: not shown, because the server asks for keys.
  bool has_chat = true;    // The model has a chat template.
};

// The client prefers HTML: a browser. `accept`: the header's value, perhaps empty.
bool wants_html(std::string_view accept);
// It asks for plain text by name, which no program does that only looks whether a server is there.
bool wants_text(std::string_view accept);

std::string front_page_html(const FrontPage& page);
std::string front_page_text(const FrontPage& page);

}  // namespace weir::api::pages
