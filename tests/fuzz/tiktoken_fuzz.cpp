// Any bytes as tiktoken's lines, alone and after a token for each byte, and as what its config
// says.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/base64.h"
#include "tokenizer_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const std::string tokens = [] {
    std::string lines;
    for (int byte = 0; byte < 256; ++byte) {
      const auto value = static_cast<std::byte>(byte);
      weir::append_base64(lines, {&value, 1});
      lines += " " + std::to_string(byte) + "\n";
    }
    return lines;
  }();
  constexpr std::string_view kConfig = R"({"tokenizer_class":"TikTokenTokenizer"})";
  weir::text::check_file("tiktoken.model", bytes, kConfig);
  weir::text::check_file("tiktoken.model", tokens + std::string(bytes), kConfig);
  weir::text::check_file("tiktoken.model", tokens, bytes);
  return 0;
}
