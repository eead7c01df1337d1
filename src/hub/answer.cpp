#include "hub/answer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/concat.h"

namespace weir::hub {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kWaitMax{3600};

std::optional<int64_t> number_at(std::string_view text) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::string hub_message(const ResponseHead& head) {
  constexpr size_t kBytesMax = 300;
  std::string text(head.header("x-error-message").substr(0, kBytesMax));
  for (char& c : text)
    if (c < ' ' || c == '\x7f') c = '?';  // What is beyond ASCII, too: headers have no encoding.
  return text;
}

Error error_of(const ResponseHead& head, const Asked& asked) {
  const std::string_view code = head.header("x-error-code");
  const std::string said = hub_message(head);
  const std::string status = std::to_string(head.status);
  const std::string page = concat({asked.endpoint, "/", asked.id});
  const bool denied = head.status == 401 || head.status == 403;
  if (denied && said.find("disabled") != std::string::npos)
    return {ErrorCode::kForbidden, concat({asked.id, ": the hub says: ", said})};
  if (code == "GatedRepo" || (head.status == 403 && code.empty() && said.empty()))
    return {ErrorCode::kForbidden,
            concat({asked.id, ": the model is gated: accept its terms on ", page,
                    asked.with_token ? "; the account of the token in HF_TOKEN has no access yet"
                                     : ", then set HF_TOKEN to a token of that account"})};
  if (code == "RevisionNotFound")
    return {ErrorCode::kNotFound, concat({asked.id, ": no branch, tag or commit '", asked.revision,
                                          "' of it on ", asked.endpoint})};
  if (code == "EntryNotFound" || (head.status == 404 && code.empty() && !asked.file.empty()))
    return {ErrorCode::kNotFound,
            concat({asked.id, ": no file ", asked.file, " at ", asked.revision})};
  if (head.status == 404 || head.status == 401)
    return {ErrorCode::kNotFound,
            concat({asked.id, ": no such model on ", asked.endpoint, ", or it is private: ",
                    asked.with_token ? "the account of the token in HF_TOKEN does not see it"
                                     : "set HF_TOKEN to a token of an account that sees it",
                    said.empty() ? "" : " (the hub says: ", said, said.empty() ? "" : ")"})};
  return {head.status == 403 ? ErrorCode::kForbidden : ErrorCode::kInvalid,
          concat({asked.id.empty() ? asked.endpoint : asked.id, asked.file.empty() ? "" : "/",
                  asked.file, ": the hub answers ", status, said.empty() ? "" : ": ", said})};
}

bool may_come_right(int status) { return status == 408 || status == 429 || status >= 500; }

std::optional<milliseconds> wait_asked(const ResponseHead& head) {
  if (head.status != 429 && head.status != 503) return std::nullopt;
  std::optional<int64_t> asked;
  const std::string_view limit = head.header("ratelimit");  // "api";r=0;t=55
  if (const size_t at = limit.find(";t="); at != std::string_view::npos)
    asked = number_at(limit.substr(at + 3));
  if (!asked) asked = number_at(head.header("retry-after"));
  if (!asked) return std::nullopt;
  return std::min<milliseconds>(seconds(std::min<int64_t>(*asked, kWaitMax.count()) + 1), kWaitMax);
}

std::optional<milliseconds> Tries::next() {
  constexpr std::array kWaits = {seconds(1), seconds(2), seconds(4), seconds(8), seconds(8)};
  if (count_ == kWaits.size()) return std::nullopt;
  return kWaits[count_++];
}

}  // namespace weir::hub
