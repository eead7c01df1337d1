#include "load/load_options.h"

#include <algorithm>
#include <charconv>

namespace weir::load {

std::string LoadOptions::set_url(const std::string& text) {
  const std::string expected = "expected http:// or https:// and HOST[:PORT], found " + text;
  const bool is_tls = text.starts_with("https://");
  if (!is_tls && !text.starts_with("http://")) return expected;
  std::string rest = text.substr(is_tls ? 8 : 7);
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string path = rest.substr(slash);
  if (!path.empty() && path != "/" && path != "/v1" && path != "/v1/") return expected;
  rest.resize(slash);
  const size_t colon = rest.find(':', rest.starts_with('[') ? rest.find(']') : 0);
  uint16_t number = is_tls ? 443 : 80;
  if (colon != std::string::npos) {
    const char* const end = rest.data() + rest.size();
    const auto [stop, error] = std::from_chars(rest.data() + colon + 1, end, number);
    if (error != std::errc() || stop != end || number == 0) return expected;
    rest.resize(colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) return expected;
  tls = is_tls;
  host = rest;
  port = number;
  return {};
}

std::string LoadOptions::authority() const {
  if (!unix_path.empty()) return "localhost";
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (tls ? 443 : 80) ? name : name + ":" + std::to_string(port);
}

const std::string& LoadOptions::class_name(int32_t index) const {
  return index == 0 ? kRestName : mix[static_cast<size_t>(index) - 1].name;
}

}  // namespace weir::load
