// A form: any bytes, under any header, give parts that lie in the body, in their order and without a
// delimiter in them; or an error of one line. A form made of the parts that were read has the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "api/request/multipart.h"
#include "base/check.h"

namespace {

using weir::api::FormPart;

constexpr size_t kMessageBytesMax = 600;

void check_parts(std::string_view body, const std::vector<FormPart>& parts) {
  const char* end = body.data();
  for (const FormPart& part : parts) {
    CHECK(part.bytes.data() >= end && part.bytes.size() <= body.size());
    end = part.bytes.data() + part.bytes.size();
    CHECK(end <= body.data() + body.size());
  }
}

void check_written_again(const std::vector<FormPart>& parts) {
  const std::string boundary = "0123456789_not_in_any_of_the_parts";
  std::string body;
  for (const FormPart& part : parts) {
    if (part.bytes.find(boundary) != std::string_view::npos) return;
    // Names that a header cannot hold as they are.
    if (part.name.find_first_of("\"\\\r\n%") != std::string::npos) return;
    body += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + part.name + "\"";
    if (part.is_file) body += "; filename=\"x\"";
    body.append("\r\n\r\n").append(part.bytes).append("\r\n");
  }
  body += "--" + boundary + "--\r\n";
  const auto again = weir::api::read_multipart("multipart/form-data; boundary=" + boundary, body);
  CHECK(again && again->size() == parts.size());
  for (size_t i = 0; i < parts.size(); ++i)
    CHECK((*again)[i].name == parts[i].name && (*again)[i].bytes == parts[i].bytes &&
          (*again)[i].is_file == parts[i].is_file);
}

}  // namespace

// The first line is the header, the rest the body.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  const std::string_view body = line == text.npos ? std::string_view() : text.substr(line + 1);
  const auto parts = weir::api::read_multipart(text.substr(0, line), body);
  if (!parts) {
    CHECK(!parts.error().message.empty() && parts.error().message.size() < kMessageBytesMax);
    CHECK(parts.error().message.find('\n') == std::string::npos);
    return 0;
  }
  check_parts(body, *parts);
  check_written_again(*parts);
  return 0;
}
