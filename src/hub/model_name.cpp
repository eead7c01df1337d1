#include "hub/model_name.h"

#include <algorithm>

#include "base/concat.h"
#include "hub/shown.h"

namespace weir::hub {

namespace {

constexpr size_t kIdBytesMax = 96;
constexpr size_t kRevisionBytesMax = 200;  // git takes about 250 as a file's name.
constexpr size_t kFileBytesMax = 1024;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

bool is_name_part(std::string_view part) {
  const auto is_edge = [](char c) { return c == '.' || c == '-'; };
  return !part.empty() && std::ranges::all_of(part, is_name_char) && !is_edge(part.front()) &&
         !is_edge(part.back());
}

// A branch or tag as git has them, as far as such names are safe below refs/: parts of the
// characters above and '+', none of which begins with a dot.
bool is_revision(std::string_view text) {
  if (text.empty() || text.size() > kRevisionBytesMax || text.ends_with(".lock")) return false;
  while (true) {
    const size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    if (part.empty() || part[0] == '.' || part[0] == '-' ||
        part.find("..") != std::string_view::npos ||
        !std::ranges::all_of(part, [](char c) { return is_name_char(c) || c == '+'; }))
      return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

tl::unexpected<Error> wrong(std::string_view text, const char* expected, std::string_view found) {
  return fail(ErrorCode::kConfig,
              concat({shown(text), ": expected ", expected, "; found '", shown(found), "'"}));
}

}  // namespace

bool is_repo_id(std::string_view text) {
  const size_t slash = text.find('/');
  return text.size() <= kIdBytesMax && slash != std::string_view::npos &&
         is_name_part(text.substr(0, slash)) && is_name_part(text.substr(slash + 1)) &&
         text.find("--") == std::string_view::npos && text.find("..") == std::string_view::npos &&
         !text.ends_with(".git");
}

bool is_commit(std::string_view text) {
  constexpr size_t kDigits = 40;
  return text.size() == kDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<ModelName> ModelName::parse(std::string_view text) {
  ModelName name;
  const size_t end = std::min(text.find_first_of("@:"), text.size());
  name.id = text.substr(0, end);
  if (!is_repo_id(name.id))
    return wrong(text, "a model's name on the hub, ORG/NAME of letters, digits, '.', '_' and '-'",
                 name.id);
  std::string_view rest = text.substr(end);
  if (rest.starts_with('@')) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    name.revision = rest.substr(1, colon - 1);
    name.revision_given = true;
    if (!is_revision(name.revision))
      return wrong(text, "a branch, a tag or a commit after the '@'", name.revision);
    rest.remove_prefix(colon);
  }
  if (rest.starts_with(':')) {
    name.file = rest.substr(1);
    const bool printable = std::ranges::none_of(
        name.file, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
    if (name.file.empty() || name.file.size() > kFileBytesMax || !printable)
      return wrong(text, "the name of a GGUF file or of a quantisation (Q4_K_M) after the ':'",
                   printable ? name.file : "control characters");
  }
  return name;
}

bool ModelName::looks_like(std::string_view text) {
  if (text.empty() || text[0] == '/' || text[0] == '.' || text[0] == '~') return false;
  const std::string_view id = text.substr(0, text.find_first_of("@:"));
  return std::ranges::count(id, '/') == 1 && !id.ends_with('/');
}

std::string ModelName::text() const {
  std::string out = id;
  if (revision_given) out.append("@").append(revision);
  if (!file.empty()) out.append(":").append(file);
  return out;
}

}  // namespace weir::hub
