#include "grammar/schema_format.h"

#include <algorithm>
#include <vector>

namespace weir::grammar {

namespace {

// Says how a string is to be shown or read by programs, not what it may be.
constexpr std::string_view kUnchecked[] = {
    "password", "byte", "binary",    "int32",          "int64",       "float",
    "double",   "path", "file-path", "directory-path", "json-string", "text",
};

// Each pattern makes valid strings only; not every valid one where that would need counting.

// Years 1 to 9999; days as the months have them, the 29th of February in leap years.
std::string date() {
  const std::string year = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
  const std::string leap_year =
      "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
  return "(?:" + year +
         "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"
         "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
         leap_year + "-02-29)";
}

std::string time() {
  return "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"
         "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
}

// RFC 3339, appendix A.
std::string duration() {
  const std::string clock =
      "T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|"
      "[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S)";
  const std::string days = "[0-9]{1,9}D";
  const std::string months = "[0-9]{1,9}M(?:" + days + ")?";
  return "P(?:(?:" + days + "|" + months + "|[0-9]{1,9}Y(?:" + months + ")?)(?:" + clock + ")?|" +
         clock + "|[0-9]{1,9}W)";
}

// At most four labels of 62 characters: 251 of the 253 allowed.
std::string hostname() {
  const std::string label = "[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,2}";
  return label + "(?:\\." + label + "){0,3}";
}

// A top-level domain is not a number.
std::string email() {
  const std::string atom = "[A-Za-z0-9_+!#$%&'*/=?^`{|}~-]{1,31}";
  const std::string label = "[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,2}";
  return atom + "(?:\\." + atom + ")?@(?:" + label + "\\.){1,3}[A-Za-z]{2,20}";
}

std::string ipv4() {
  const std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return byte + "(?:\\." + byte + "){3}";
}

// RFC 4291, 2.2: eight groups, or a double colon for at least one group of zeros.
std::string ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  const auto groups = [&](int count) {
    return "(?::" + group + "){1," + std::to_string(count) + "}";
  };
  std::string pattern = "(?:(?:" + group + ":){7}" + group + "|(?:" + group + ":){1,7}:|::";
  for (int before = 1; before <= 6; ++before)
    pattern += "|(?:" + group + ":){" + std::to_string(before) + "}" + groups(7 - before);
  return pattern + "|:" + groups(7) + ")";
}

std::string uuid() {
  return "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";
}

constexpr const char* kPathCharacter = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";

std::string uri_tail() {
  return std::string("(?:\\?(?:") + kPathCharacter + "|[/?])*)?(?:#(?:" + kPathCharacter +
         "|[/?])*)?";
}

// RFC 3986, with an authority or a path.
std::string uri() {
  return "[A-Za-z][A-Za-z0-9+.-]{0,30}:(?://" + hostname() + "(?::[0-9]{1,5})?(?:/" +
         kPathCharacter + "*)*|" + kPathCharacter + "+(?:/" + kPathCharacter + "*)*)" + uri_tail();
}

std::string uri_reference() {
  const std::string segment = "(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})";
  return "(?:" + uri() + "|/?" + segment + "+(?:/" + kPathCharacter + "*)*" + uri_tail() + ")";
}

struct Format {
  std::string_view name;
  std::string pattern;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> table = {
      {"date", date()},
      {"time", time()},
      {"date-time", date() + "T" + time()},
      {"duration", duration()},
      {"email", email()},
      {"idn-email", email()},
      {"hostname", hostname()},
      {"idn-hostname", hostname()},
      {"ipv4", ipv4()},
      {"ipv6", ipv6()},
      {"uuid", uuid()},
      {"uri", uri()},
      {"iri", uri()},
      {"uri-reference", uri_reference()},
      {"iri-reference", uri_reference()},
      {"json-pointer", "(?:/(?:[^~/\"\\\\\\x00-\\x1f]|~[01])*)*"},
  };
  return table;
}

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
  if (std::ranges::find(kUnchecked, format) != std::end(kUnchecked)) return "";
  const auto found = std::ranges::find(formats(), format, &Format::name);
  if (found == formats().end()) return std::nullopt;
  return found->pattern;
}

}  // namespace weir::grammar
