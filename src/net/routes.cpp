// Routes: a sorted table, searched in order. A server has a few dozen paths.
#include "net/routes.h"

#include <algorithm>

#include "base/check.h"

namespace weir::net {

namespace {

// A longer path matches no pattern without a trailing parameter; the bound keeps a path of slashes
// from costing more than its bytes.
constexpr size_t kSegmentsMax = 64;

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  parts.reserve(4);  // As many as most paths have.
  while (!path.empty() && parts.size() < kSegmentsMax) {
    path.remove_prefix(1);  // The slash.
    const size_t end = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return parts;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_allowed(std::string& allow, std::string_view method) {
  if (!allow.empty()) allow += ", ";
  allow += method;
}

}  // namespace

bool percent_decode(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

const std::string& RouteParams::operator[](std::string_view name) const {
  const auto found = std::ranges::find(values_, name, [](const auto& v) { return v.first; });
  CHECK(found != values_.end());
  return found->second;
}

size_t Routes::add(std::string_view method, std::string_view pattern, Handler handler) {
  CHECK(pattern.starts_with('/'));
  std::vector<Segment> segments;
  for (const std::string_view part : split(pattern)) {
    const bool is_param = part.size() > 2 && part.front() == '{' && part.back() == '}';
    segments.push_back({std::string(is_param ? part.substr(1, part.size() - 2) : part), is_param});
  }
  auto route = std::ranges::find(routes_, segments, &Route::segments);
  if (route == routes_.end()) {
    // Literal before parameter in the first segment that differs; then the longer pattern.
    const auto more_specific = [](const Route& a, const Route& b) {
      const size_t common = std::min(a.segments.size(), b.segments.size());
      for (size_t i = 0; i < common; ++i)
        if (a.segments[i].is_param != b.segments[i].is_param) return b.segments[i].is_param;
      return a.segments.size() > b.segments.size();
    };
    Route added{std::move(segments), {}, {}};
    const auto place = std::ranges::upper_bound(routes_, added, more_specific);
    route = routes_.insert(place, std::move(added));
  }
  const auto has = [&](std::string_view name) {
    return std::ranges::find(route->methods, name, &Method::name) != route->methods.end();
  };
  CHECK(!has(method));
  route->methods.push_back({std::string(method), std::move(handler), count_});

  route->allow.clear();
  for (const Method& known : route->methods) append_allowed(route->allow, known.name);
  if (has("GET") && !has("HEAD")) append_allowed(route->allow, "HEAD");
  if (!has("OPTIONS")) append_allowed(route->allow, "OPTIONS");
  return count_++;
}

bool Routes::matches(const Route& route, const std::vector<std::string_view>& parts) {
  const size_t count = route.segments.size();
  if (parts.size() < count) return false;
  for (size_t i = 0; i < count; ++i) {
    const Segment& segment = route.segments[i];
    if (segment.is_param) {
      if (parts[i].empty()) return false;
      if (i + 1 == count) return true;
      continue;
    }
    if (parts[i] == segment.text) continue;
    if (parts[i].find('%') == std::string_view::npos) return false;
    std::string decoded;
    if (!percent_decode(parts[i], decoded) || decoded != segment.text) return false;
  }
  return parts.size() == count;
}

const Routes::Route* Routes::find(const std::vector<std::string_view>& parts) const {
  for (const Route& route : routes_)
    if (matches(route, parts)) return &route;
  return nullptr;
}

Routes::Match Routes::match(std::string_view method, std::string_view path) const {
  if (path == "*")
    return {.status = method == "OPTIONS" ? 204 : 404, .allow = "GET, HEAD, POST, OPTIONS"};
  if (!path.starts_with('/')) return {};
  const std::vector<std::string_view> parts = split(path);
  const Route* route = find(parts);
  if (route == nullptr) return {};

  Match result;
  auto found = std::ranges::find(route->methods, method, &Method::name);
  if (found == route->methods.end() && method == "HEAD")
    found = std::ranges::find(route->methods, "GET", &Method::name);
  if (found == route->methods.end()) {
    result.status = method == "OPTIONS" ? 204 : 405;
    result.allow = route->allow;
    return result;
  }
  for (size_t i = 0; i < route->segments.size(); ++i) {
    const Segment& segment = route->segments[i];
    if (!segment.is_param) continue;
    std::string_view raw = parts[i];
    if (i + 1 == route->segments.size())
      raw = path.substr(static_cast<size_t>(raw.data() - path.data()));
    std::string value;
    if (!percent_decode(raw, value)) return {.status = 400};
    result.params.add(segment.text, std::move(value));
  }
  result.status = 200;
  result.handler = &found->handler;
  result.number = found->number;
  return result;
}

void Routes::dispatch(HttpRequest&& request, HttpResponderPtr responder,
                      const Missing& missing) const {
  Match found = match(request.method, request.path);
  if (found.status == 200) {
    (*found.handler)(std::move(request), found.params, std::move(responder));
  } else if (found.status == 204) {
    responder->respond(204, {{"Allow", std::move(found.allow)}}, {});
  } else {
    missing(found.status, std::move(found.allow), std::move(request), std::move(responder));
  }
}

}  // namespace weir::net
