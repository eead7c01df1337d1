#include "hub/url.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/ascii.h"
#include "base/concat.h"
#include "hub/shown.h"

namespace weir::hub {

namespace {

// What servers and proxies take at least, times two; signed links have about 1.5 KB.
constexpr size_t kBytesMax = 16 << 10;

using Parser = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

tl::unexpected<Error> wrong(std::string_view text) {
  return fail(ErrorCode::kInvalid,
              concat({"expected an address such as https://host/path, without user or password; ",
                      "found '", shown(text.substr(0, text.find('?'))), "'"}));
}

std::string part_of(CURLU* parser, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(parser, part, &text, flags) != CURLUE_OK || text == nullptr) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

// Of a name or an address. libcurl decodes %XX in hosts, once for each time that it reads them: what
// has other characters would not be the host that is compared and then asked.
bool is_host(std::string_view host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  return !host.empty() && std::ranges::all_of(host, [bracketed](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' ||
           (bracketed ? c == ':' : c == '-' || c == '_');
  });
}

Result<Url> taken_apart(CURLU* parser, std::string_view given) {
  Url url;
  url.text = part_of(parser, CURLUPART_URL);
  url.scheme = part_of(parser, CURLUPART_SCHEME);
  url.host = part_of(parser, CURLUPART_HOST);
  std::ranges::transform(url.host, url.host.begin(), ascii_lower);
  const std::string port = part_of(parser, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (url.text.empty() || !is_host(url.host) || url.port <= 0 ||
      (url.scheme != "http" && url.scheme != "https"))
    return wrong(given);
  return url;
}

bool is_plain(std::string_view text) {
  return text.size() <= kBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c != '\x7f'; });
}

}  // namespace

Result<Url> Url::parse(const std::string& text) {
  const Parser parser(curl_url(), &curl_url_cleanup);
  if (parser == nullptr || !is_plain(text) ||
      curl_url_set(parser.get(), CURLUPART_URL, text.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK)
    return wrong(text);
  return taken_apart(parser.get(), text);
}

Result<Url> Url::join(const std::string& location) const {
  const Parser parser(curl_url(), &curl_url_cleanup);
  if (parser == nullptr || !is_plain(location) ||
      curl_url_set(parser.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK ||
      curl_url_set(parser.get(), CURLUPART_URL, location.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK)
    return wrong(location);
  return taken_apart(parser.get(), location);
}

std::string percent_encode(std::string_view text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '~' || c == '-' || (c == '/' && keep_slashes);
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return out;
}

}  // namespace weir::hub
