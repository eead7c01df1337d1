// The web page over HTTP: which file answers which request, and under which policy a browser runs
// it. The page is public; what it shows it asks the API for, with a key where there are keys.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "net/http.h"

namespace weir::api::pages {

struct UiAnswer {
  int status = 200;  // Or 304, or 404: of another version of the page.
  std::string_view type{};
  net::HttpResponder::Headers headers{};
  std::string_view body{};
};

// The client prefers HTML: a browser. `accept`: the header's value, perhaps empty.
bool wants_html(std::string_view accept);

// `/` as a browser asks for it, and what is below `/ui/`; nothing: the request is not for the page.
std::optional<UiAnswer> ui_answer(const net::HttpRequest& request);

}  // namespace weir::api::pages
