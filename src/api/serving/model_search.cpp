#include "api/serving/model_search.h"

#include <algorithm>
#include <array>
#include <utility>

#include "net/routes.h"

namespace weir::api {

namespace {

// Longer ones are no words, and no cursors of a hub.
constexpr size_t kBytesMax = 512;
constexpr std::array<std::string_view, 5> kOrders = {"downloads", "likes", "lastModified",
                                                     "createdAt", "trendingScore"};

Result<void> wrong(std::string_view name, const std::string& what) {
  return fail(ErrorCode::kInvalid, std::string(name) + ": expected " + what, std::string(name),
              "invalid_value");
}

// As forms write it: a plus is a space.
Result<void> decode(std::string_view name, std::string_view value, std::string& out) {
  std::string text(value);
  std::ranges::replace(text, '+', ' ');
  if (!net::percent_decode(text, out)) return wrong(name, "valid percent-encoding");
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (out.size() > kBytesMax || std::ranges::any_of(out, is_control))
    return wrong(name, "at most " + std::to_string(kBytesMax) + " bytes of text");
  return {};
}

}  // namespace

Result<ModelSearch> model_search(std::string_view query) {
  ModelSearch search;
  search.sort = kOrders[0];
  const std::array fields = {std::pair{"q", &search.words}, std::pair{"sort", &search.sort},
                             std::pair{"filter", &search.filter},
                             std::pair{"cursor", &search.cursor}};
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    for (const auto& [name, field] : fields)
      if (pair.substr(0, equals) == name && equals < pair.size())
        WEIR_TRY(decode(name, pair.substr(equals + 1), *field));
  }
  if (std::ranges::find(kOrders, search.sort) == kOrders.end())
    return fail(ErrorCode::kInvalid,
                "sort: expected downloads, likes, lastModified, createdAt or trendingScore", "sort",
                "invalid_value");
  return search;
}

}  // namespace weir::api
