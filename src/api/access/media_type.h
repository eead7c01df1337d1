// What a request says that its body is.
//
// Threads: pure functions.
#pragma once

#include "base/result.h"
#include "net/http.h"

namespace weir::api {

// application/json or something+json. Absent is taken for it, because many programs leave it out;
// but not of a browser: there it may be what a page sends to other sites without asking (a
// preflight).
bool is_json(const net::HttpRequest& request);

// application/json in so many words, which no page can send to another site without asking.
bool says_json(const net::HttpRequest& request);

// multipart/form-data, in which files come.
bool is_form(const net::HttpRequest& request);

// What curl says of any body that it is told nothing about (-d), and no browser has sent: a page's
// form has the same type, and its browser says whose page it is.
bool is_curls_default(const net::HttpRequest& request);

// What to answer where it is none of these.
Error wrong_media_type(const net::HttpRequest& request);
// The same where a form is expected.
Error wrong_form_type(const net::HttpRequest& request);

}  // namespace weir::api
