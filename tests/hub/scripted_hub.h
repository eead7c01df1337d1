// ScriptedHub: one model at a hub and its CDN, as answers for a ScriptedTransport.
#pragma once

#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/concat.h"
#include "scripted_transport.h"

namespace weir::hub {

inline const std::string kEndpoint = "https://hub.example";
inline const std::string kCdn = "https://cdn.example";
inline const std::string kCommit(40, 'c');

struct ScriptedHub {
  std::map<std::string, std::string> files;  // Those that end in .safetensors are large.
  // Answers that come first, for URLs that have the text; then what the hub would say.
  std::deque<std::pair<std::string, ScriptedAnswer>> first;
  std::optional<std::string> others;  // Any other file has these bytes.
  bool ranges = true;
  size_t link_uses = SIZE_MAX;  // Then a link has expired.

  static bool is_large(const std::string& path) { return path.ends_with(".safetensors"); }

  std::string info() const {
    return concat({R"({"id":"org/name","sha":")", kCommit, R"(","private":false,"gated":false})"});
  }
  std::string tree() const {
    std::string text;
    for (const auto& [path, bytes] : files) {
      const std::string size = std::to_string(bytes.size());
      text += concat({text.empty() ? "" : ",", R"({"type":"file","path":")", path, R"(","size":)",
                      size, R"(,"oid":")", blob_of(bytes, false), "\""});
      if (is_large(path))
        text += concat({R"(,"lfs":{"oid":")", blob_of(bytes, true), R"(","size":)", size, "}"});
      text += "}";
    }
    return "[" + text + "]";
  }

  ScriptedAnswer operator()(const Request& request) {
    for (auto at = first.begin(); at != first.end(); ++at) {
      if (request.url.find(at->first) == std::string::npos) continue;
      ScriptedAnswer answer = std::move(at->second);
      first.erase(at);
      return answer;
    }
    const std::string api = kEndpoint + "/api/models/org/name";
    if (request.url == api + "/revision/main") return {.body = info()};
    if (request.url.starts_with(api + "/tree/" + kCommit)) return {.body = tree()};
    const std::string resolve = kEndpoint + "/org/name/resolve/" + kCommit + "/";
    const bool at_hub = request.url.starts_with(resolve);
    if (!at_hub && !request.url.starts_with(kCdn + "/")) return {.status = 404};
    std::string path = request.url.substr(at_hub ? resolve.size() : kCdn.size() + 1);
    path = path.substr(0, path.find('?'));
    const auto file = files.find(path);
    if (file == files.end() && !others)
      return {.status = 404, .headers = {{"x-error-code", "EntryNotFound"}}};
    const std::string& bytes = file == files.end() ? *others : file->second;
    if (at_hub && is_large(path)) return link_to(path, bytes);
    if (!at_hub && ++uses_[request.url] > link_uses) return {.status = 403};
    if (request.head_only) return head_of(bytes);
    return data_of(request, bytes);
  }

 private:
  ScriptedAnswer link_to(const std::string& path, const std::string& bytes) {
    return {.status = 302,
            .headers = {{"location", concat({kCdn, "/", path, "?s=", std::to_string(++links_)})},
                        {"x-linked-etag", "\"" + blob_of(bytes, true) + "\""},
                        {"x-linked-size", std::to_string(bytes.size())}}};
  }
  static ScriptedAnswer head_of(const std::string& bytes) {
    return {.headers = {{"etag", "W/\"" + blob_of(bytes, false) + "\""},
                        {"x-repo-commit", kCommit},
                        {"content-length", std::to_string(bytes.size())}}};
  }
  ScriptedAnswer data_of(const Request& request, const std::string& bytes) const {
    if (!ranges || !request.range) return {.body = bytes};
    return {.status = 206,
            .headers = {{"content-range", concat({"bytes ", std::to_string(request.range->begin),
                                                  "-", std::to_string(request.range->end - 1), "/",
                                                  std::to_string(bytes.size())})}},
            .body = bytes.substr(request.range->begin, request.range->bytes())};
  }

  std::map<std::string, size_t> uses_;
  int links_ = 0;
};

inline Settings scripted_settings(const std::string& cache = "") {
  Settings settings;
  settings.endpoint = kEndpoint;
  settings.token = "secret-token";
  settings.cache = cache;
  return settings;
}

}  // namespace weir::hub
