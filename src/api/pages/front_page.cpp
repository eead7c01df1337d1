#include "api/pages/front_page.h"

#include <algorithm>
#include <array>

namespace weir::api::pages {

namespace {

struct Link {
  std::string_view path, what;
};

constexpr auto kLinks = std::to_array<Link>({
    {"/v1/models", "the model"},
    {"/openapi.json", "every endpoint and field"},
    {"/props", "properties and defaults"},
    {"/health", "is it up"},
    {"/metrics", "figures for Prometheus"},
    {"/version", "the version"},
});

// Where a client's base URL points, and what a first request would be.
std::string_view endpoint_of(const FrontPage& page) {
  return page.has_chat ? "/v1/chat/completions" : "/v1/completions";
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
}

}  // namespace

// Browsers name it among the first; curl and clients say */* or application/json.
bool wants_html(std::string_view accept) { return accept.find("text/html") != accept.npos; }

bool wants_text(std::string_view accept) { return accept.find("text/plain") != accept.npos; }

std::string front_page_html(const FrontPage& page) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Weir</title>\n<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;"
      "margin:3rem auto;padding:0 1rem;color-scheme:light dark}code{font-size:.95em}</style>\n"
      "</head><body>\n<h1>Weir ";
  append_escaped(out, page.version);
  out += "</h1>\n<p>A server for language models, with OpenAI&#39;s API.</p>\n";
  if (!page.model.empty()) {
    out += "<p>It serves <code>";
    append_escaped(out, page.model);
    out += "</code>.</p>\n";
  }
  out += "<p>Clients ask at <code>";
  out += endpoint_of(page);
  out += "</code>; their base URL is this address with <code>/v1</code>.</p>\n<ul>\n";
  for (const Link& link : kLinks) {
    out.append("<li><a href=\"").append(link.path).append("\">").append(link.path);
    out.append("</a>: ").append(link.what).append("</li>\n");
  }
  out += "</ul>\n</body></html>\n";
  return out;
}

std::string front_page_text(const FrontPage& page) {
  std::string out = "Weir ";
  out.append(page.version).append(": a server for language models, with OpenAI's API.\n");
  if (!page.model.empty()) out.append("Model: ").append(page.model).append("\n");
  out.append("Ask at ").append(endpoint_of(page)).append("\n\n");
  for (const Link& link : kLinks) out.append(link.path).append("  ").append(link.what) += '\n';
  return out;
}

}  // namespace weir::api::pages
