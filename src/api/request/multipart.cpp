#include "api/request/multipart.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/concat.h"

namespace weir::api {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kBoundaryBytesMax = 70;  // RFC 2046 5.1.1.
constexpr size_t kShownBytes = 40;        // Of the body, in a message.
constexpr std::string_view kBlanks = " \t";

tl::unexpected<Error> malformed(std::string message) {
  return fail(ErrorCode::kInvalid, concat({"Malformed multipart/form-data: ", message, "."}));
}

// The beginning of what is there, fit to stand in a message.
std::string shown_bytes(std::string_view bytes) {
  if (bytes.empty()) return "the end of the body";
  std::string text = "\"";
  for (const char c : bytes.substr(0, kShownBytes)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + '"';
}

void trim(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(kBlanks) + 1));
}

bool is_token_byte(char c) {
  return c > ' ' && c <= '~' && std::string_view("()<>@,;:\\\"/[]?=").find(c) == std::string::npos;
}

bool is_boundary_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
}

// The value of a parameter: bytes up to a blank or a semicolon (by the letter a token, but boundaries
// are sent as they are), or a quoted text, in which \" and \\ stand for their second byte; another
// backslash is one, as in the paths of old browsers. None: it is neither.
std::optional<std::string> take_value(std::string_view& rest) {
  std::string value;
  if (!rest.starts_with('"')) {
    value = rest.substr(0, rest.find_first_of("; \t\""));
    rest.remove_prefix(value.size());
    return value.empty() ? std::nullopt : std::optional(std::move(value));
  }
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return value;
    }
    const bool escapes = rest[i] == '\\' && i + 1 < rest.size() &&
                         (rest[i + 1] == '"' || rest[i + 1] == '\\');
    value += rest[escapes ? ++i : i];
  }
  return std::nullopt;
}

struct Parameter {
  std::string_view name;
  std::string value;
};

// What follows a header's first word: "; name=value", any number of times. None: it is not that.
std::optional<std::vector<Parameter>> parameters_of(std::string_view rest) {
  std::vector<Parameter> parameters;
  while (true) {
    trim(rest);
    if (rest.empty()) return parameters;
    if (!rest.starts_with(';')) return std::nullopt;
    rest.remove_prefix(1);
    trim(rest);
    if (rest.empty()) return parameters;  // A semicolon at the end, as some programs write.
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    if (name.empty() || !std::ranges::all_of(name, is_token_byte)) return std::nullopt;
    std::optional<std::string> value = take_value(rest);
    if (!value) return std::nullopt;
    parameters.push_back({name, *std::move(value)});
  }
}

const Parameter* find(const std::vector<Parameter>& parameters, std::string_view name) {
  const auto found = std::ranges::find_if(parameters, [&](const Parameter& parameter) {
    return equals_ignoring_case(parameter.name, name);
  });
  return found == parameters.end() ? nullptr : &*found;
}

Result<std::string> boundary_of(std::string_view content_type) {
  const size_t semicolon = std::min(content_type.find(';'), content_type.size());
  const auto parameters = parameters_of(content_type.substr(semicolon));
  const Parameter* const boundary = parameters ? find(*parameters, "boundary") : nullptr;
  if (boundary == nullptr)
    return malformed(concat({"expected Content-Type: multipart/form-data; boundary=..., found ",
                             shown_bytes(content_type)}));
  const std::string& text = boundary->value;
  if (text.empty() || text.size() > kBoundaryBytesMax || text.ends_with(' ') ||
      !std::ranges::all_of(text, is_boundary_byte))
    return malformed(
        concat({"expected a boundary of 1 to ", std::to_string(kBoundaryBytesMax),
                " letters, digits and '()+_,-./:=? that does not end with a space, found ",
                shown_bytes(text)}));
  return text;
}

// Browsers write a quote, a line feed and a carriage return within a name so.
std::string unescaped(std::string text) {
  for (const auto& [code, byte] : {std::pair{"%22", '"'}, {"%0D", '\r'}, {"%0A", '\n'}})
    for (size_t at = 0; (at = text.find(code, at)) != std::string::npos; ++at)
      text.replace(at, 3, 1, byte);
  return text;
}

class Reader {
 public:
  Reader(std::string_view boundary, std::string_view body, const MultipartLimits& limits)
      : delimiter_(concat({kLineEnd, "--", boundary})), body_(body), limits_(limits) {}

  Result<std::vector<FormPart>> read();

 private:
  // What may follow a delimiter.
  enum class After : uint8_t { kPart, kEnd, kOther };

  std::string place() const { return concat({"at byte ", std::to_string(at_)}); }
  std::string_view rest() const { return body_.substr(at_); }
  After take_after_delimiter();
  Result<bool> skip_preamble();
  Result<void> take_head(FormPart& part);
  Result<void> take_header(std::string_view line, FormPart& part, bool& is_named);
  Result<void> take_disposition(std::string_view value, FormPart& part);
  Result<bool> take_bytes(FormPart& part);

  const std::string delimiter_;
  const std::string_view body_;
  const MultipartLimits& limits_;
  size_t at_ = 0;
};

// The delimiter itself has been read. Bytes that merely begin with it are a part's.
Reader::After Reader::take_after_delimiter() {
  if (rest().starts_with("--")) return After::kEnd;
  const size_t end = at_ + std::min(rest().find_first_not_of(kBlanks), rest().size());
  if (!body_.substr(end).starts_with(kLineEnd)) return After::kOther;
  at_ = end + kLineEnd.size();
  return After::kPart;
}

// To the first part; false: there is none. Text before it is for those that cannot read the form.
Result<bool> Reader::skip_preamble() {
  const std::string_view first = std::string_view(delimiter_).substr(kLineEnd.size());
  if (body_.starts_with(first)) {
    at_ = first.size();
    if (const After after = take_after_delimiter(); after != After::kOther)
      return after == After::kPart;
    at_ = 0;
  }
  FormPart preamble;
  Result<bool> more = take_bytes(preamble);
  if (more) return more;
  at_ = 0;
  return malformed(concat({"expected the boundary ", shown_bytes(first), " that the header names, ",
                           "found a body without it, which begins with ", shown_bytes(body_)}));
}

// Up to the next delimiter; true: a part follows it.
Result<bool> Reader::take_bytes(FormPart& part) {
  const size_t begin = at_;
  while ((at_ = body_.find(delimiter_, at_)) != std::string_view::npos) {
    part.bytes = body_.substr(begin, at_ - begin);
    at_ += delimiter_.size();
    if (const After after = take_after_delimiter(); after != After::kOther)
      return after == After::kPart;
  }
  at_ = begin;
  return malformed(concat({"the part that begins ", place(),
                           " has no end: expected the boundary after it, found the end of the "
                           "body, which is perhaps cut"}));
}

Result<void> Reader::take_disposition(std::string_view value, FormPart& part) {
  const size_t semicolon = std::min(value.find(';'), value.size());
  std::string_view kind = value.substr(0, semicolon);
  trim(kind);
  auto parameters = parameters_of(value.substr(semicolon));
  const Parameter* const name = parameters ? find(*parameters, "name") : nullptr;
  if (!equals_ignoring_case(kind, "form-data") || name == nullptr)
    return malformed(
        concat({"expected Content-Disposition: form-data; name=\"...\" ", place(), ", found ",
                shown_bytes(value)}));
  if (name->value.size() > limits_.name_bytes_max)
    return fail(ErrorCode::kTooLarge,
                concat({"A part of the form has a name of ", std::to_string(name->value.size()),
                        " bytes: expected at most ", std::to_string(limits_.name_bytes_max), "."}));
  part.name = unescaped(name->value);
  part.is_file = find(*parameters, "filename") != nullptr ||
                 find(*parameters, "filename*") != nullptr;  // Forbidden here, and yet sent.
  return {};
}

Result<void> Reader::take_header(std::string_view line, FormPart& part, bool& is_named) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !std::ranges::all_of(line.substr(0, colon), is_token_byte))
    return malformed(
        concat({"expected a header of a part ", place(), ", found ", shown_bytes(line)}));
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(colon + 1);
  trim(value);
  if (equals_ignoring_case(name, "content-disposition")) {
    if (is_named)
      return malformed(concat({"a part has a second Content-Disposition ", place()}));
    is_named = true;
    return take_disposition(value, part);
  }
  // Deprecated by RFC 7578 4.7; what it would have us decode is not what the client thinks.
  if (equals_ignoring_case(name, "content-transfer-encoding")) {
    const auto is = [&](std::string_view encoding) { return equals_ignoring_case(value, encoding); };
    if (!is("binary") && !is("8bit") && !is("7bit"))
      return malformed(concat({"expected the Content-Transfer-Encoding binary, 8bit or 7bit ",
                               place(), ", found ", shown_bytes(value)}));
  }
  return {};
}

// Its headers, to the empty line after them.
Result<void> Reader::take_head(FormPart& part) {
  const size_t begin = at_;
  bool is_named = false;
  while (true) {
    const std::string_view within = rest().substr(0, begin + limits_.head_bytes_max - at_);
    const size_t end = within.find(kLineEnd);
    if (end == std::string_view::npos) {
      if (within.size() == rest().size())
        return malformed(concat({"the headers of the part that begins at byte ",
                                 std::to_string(begin), " have no end"}));
      return fail(ErrorCode::kTooLarge,
                  concat({"The headers of a part of the form are longer than ",
                          std::to_string(limits_.head_bytes_max), " bytes."}));
    }
    if (end == 0) break;
    WEIR_TRY(take_header(within.substr(0, end), part, is_named));
    at_ += end + kLineEnd.size();
  }
  if (!is_named)
    return malformed(concat({"the part that begins at byte ", std::to_string(begin),
                             " has no name: expected Content-Disposition: form-data; "
                             "name=\"...\""}));
  at_ += kLineEnd.size();
  return {};
}

Result<std::vector<FormPart>> Reader::read() {
  std::vector<FormPart> parts;
  WEIR_ASSIGN(bool more, skip_preamble());
  while (more) {
    if (parts.size() == limits_.parts_max)
      return fail(ErrorCode::kTooLarge, concat({"The form has too many parts: expected at most ",
                                                std::to_string(limits_.parts_max), "."}));
    FormPart part;
    WEIR_TRY(take_head(part));
    WEIR_ASSIGN(more, take_bytes(part));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

Result<std::vector<FormPart>> read_multipart(std::string_view content_type, std::string_view body,
                                             const MultipartLimits& limits) {
  WEIR_ASSIGN(const std::string boundary, boundary_of(content_type));
  return Reader(boundary, body, limits).read();
}

}  // namespace weir::api
