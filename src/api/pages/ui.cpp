#include "api/pages/ui.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "page/page_files.h"

namespace weir::api::pages {

namespace {

using page::PageFile;

// Nothing but the page's own files and the API of the server it came from. No HTML is made of text
// anywhere (trusted-types 'none'), so no answer of a model can bring an element or a script along.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

// Also "gzip;q=1.0, br", but not "gzip;q=0" and not "x-gzip2".
bool takes_gzip(std::string_view accept) {
  constexpr std::string_view kName = "gzip";
  const size_t at = accept.find(kName);
  if (at == accept.npos) return false;
  if (at > 0 && std::isalnum(static_cast<unsigned char>(accept[at - 1])) != 0) return false;
  std::string_view rest = accept.substr(at + kName.size());
  rest = rest.substr(0, rest.find(','));
  std::string quality;
  std::ranges::copy_if(rest, std::back_inserter(quality), [](char c) { return c != ' '; });
  return quality.empty() || (quality.starts_with(";q=") &&
                             quality.find_first_of("123456789") != quality.npos);
}

UiAnswer file_answer(const net::HttpRequest& request, const PageFile& file) {
  UiAnswer answer;
  answer.type = file.type;
  answer.headers = {{"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"},
                    {"Cross-Origin-Opener-Policy", "same-origin"},
                    {"Content-Security-Policy", std::string(kPolicy)}};
  if (takes_gzip(request.header("accept-encoding"))) {
    answer.headers.emplace_back("Content-Encoding", "gzip");
    answer.body = file.packed;
  } else {
    answer.body = file.bytes;
  }
  return answer;
}

// A new version of the server is a new page at the next visit; until then the old one costs no byte.
UiAnswer front_answer(const net::HttpRequest& request) {
  UiAnswer answer = file_answer(request, *page::find_page_file("index.html"));
  const std::string tag = '"' + std::string(page::page_version()) + '"';
  answer.headers.emplace_back("ETag", tag);
  answer.headers.emplace_back("Cache-Control", "no-cache");
  answer.headers.emplace_back("Vary", "Accept, Accept-Encoding");
  if (request.header("if-none-match").find(tag) != std::string_view::npos) {
    answer.status = 304;
    answer.type = answer.body = {};
    std::erase_if(answer.headers, [](const auto& header) {
      return header.first == "Content-Encoding";
    });
  }
  return answer;
}

}  // namespace

// Browsers name it among the first; curl and clients say */* or application/json.
bool wants_html(std::string_view accept) { return accept.find("text/html") != accept.npos; }

std::optional<UiAnswer> ui_answer(const net::HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  if (request.path == "/") {
    if (!wants_html(request.header("accept"))) return std::nullopt;
    return front_answer(request);
  }
  constexpr std::string_view kFolder = "/ui/";
  if (!request.path.starts_with(kFolder)) return std::nullopt;
  const std::string_view rest = std::string_view(request.path).substr(kFolder.size());
  const size_t slash = rest.find('/');
  const PageFile* file =
      slash != rest.npos && rest.substr(0, slash) == page::page_version() &&
              rest.substr(slash + 1) != "index.html"
          ? page::find_page_file(rest.substr(slash + 1))
          : nullptr;
  if (file == nullptr)
    return UiAnswer{.status = 404,
                    .type = "text/plain; charset=utf-8",
                    .headers = {{"Cache-Control", "no-store"}},
                    .body = "The page has no such file; another version of it may have had.\n"};
  UiAnswer answer = file_answer(request, *file);
  answer.headers.emplace_back("Cache-Control", "public, max-age=31536000, immutable");
  answer.headers.emplace_back("Vary", "Accept-Encoding");
  return answer;
}

}  // namespace weir::api::pages
