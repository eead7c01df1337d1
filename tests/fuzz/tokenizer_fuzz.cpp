// Any bytes as a tokenizer.json. What loads must encode and decode any text without harm, and
// stream what it decodes.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace {

using weir::text::Detokenizer;
using weir::text::Tokenizer;

constexpr std::string_view kTexts[] = {
    "",
    "Hello, world!  the\n\n then 123 don't",
    "\xe2\x96\x81 \xe2\x96\x81\xe2\x96\x81x caf\xc3\xa9 e\xcc\x81\xcc\x96 \xe6\x97\xa5\xe6\x9c\xac",
    "\xf0\x9f\xa6\x9c\xe2\x80\x8d\xf0\x9f\x91\xa7 \xef\xb7\xba \xff\xe6\x97 broken",
    "<s>a<mask> b</s> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
};

// 64 KB: what a step does for each pair of characters shows as a hang.
std::string long_text() {
  std::string text;
  while (text.size() < 64 << 10) {
    for (const std::string_view part : kTexts) text += part;
    text.append(1000, 'a');
  }
  return text;
}

void check_text(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text, {.add_special = true});
  for (const int32_t id : ids) CHECK(id >= 0);
  tokenizer.encode(text, {.parse_special = false});
  CHECK(weir::valid_utf8(tokenizer.decode(ids, false)));
  Detokenizer detokenizer(tokenizer, {.stop = {"then", "aab"}});
  for (const int32_t id : ids) CHECK(weir::valid_utf8(detokenizer.push(id)));
  CHECK(weir::valid_utf8(detokenizer.finish()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::load(json);
  if (!tokenizer) {
    CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  for (const std::string_view text : kTexts) check_text(**tokenizer, text);
  // The file itself is text too, and likely to have its own tokens in it.
  check_text(**tokenizer, json.substr(0, 4096));
  static const std::string text = long_text();
  (*tokenizer)->encode(text, {.add_special = true});
  for (int32_t id = -2; id < 300; ++id) {
    (*tokenizer)->piece(id);
    (*tokenizer)->is_special(id);
  }
  return 0;
}
