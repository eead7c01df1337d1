// What every fuzz target of a tokenizer's file asks of one that loads: it encodes and decodes any
// text without harm, and streams what it decodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace weir::text {

inline constexpr std::string_view kTexts[] = {
    "",
    "Hello, world!  the\n\n then 123 don't",
    "\xe2\x96\x81 \xe2\x96\x81\xe2\x96\x81x caf\xc3\xa9 e\xcc\x81\xcc\x96 \xe6\x97\xa5\xe6\x9c\xac",
    "\xf0\x9f\xa6\x9c\xe2\x80\x8d\xf0\x9f\x91\xa7 \xef\xb7\xba \xff\xe6\x97 broken",
    "<s>a<mask> b</s> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
};

// 64 KB: what a step does for each pair of characters shows as a hang.
inline std::string long_text() {
  std::string text;
  while (text.size() < 64 << 10) {
    for (const std::string_view part : kTexts) text += part;
    text.append(1000, 'a');
  }
  return text;
}

inline void check_text(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text, {.add_special = true});
  for (const int32_t id : ids) CHECK(id >= 0);
  tokenizer.encode(text, {.parse_special = false});
  CHECK(valid_utf8(tokenizer.decode(ids, false)));
  Detokenizer detokenizer(tokenizer, {.stop = {"then", "aab"}});
  for (const int32_t id : ids) CHECK(valid_utf8(detokenizer.push(id)));
  CHECK(valid_utf8(detokenizer.finish()));
}

// `file` is text too, and likely to have its own tokens in it.
inline void check_tokenizer(const Tokenizer& tokenizer, std::string_view file) {
  for (const std::string_view text : kTexts) check_text(tokenizer, text);
  std::string own;
  append_valid_utf8(own, file.substr(0, 4096));
  check_text(tokenizer, own);
  static const std::string text = long_text();
  tokenizer.encode(text, {.add_special = true});
  for (int32_t id = -2; id < 300; ++id) {
    tokenizer.piece(id);
    tokenizer.is_special(id);
  }
}

// Any bytes as a file of this name: it loads, or the error says something.
inline void check_file(std::string_view name, std::string_view bytes, std::string_view config) {
  const auto tokenizer = Tokenizer::load_file(name, bytes, config);
  if (tokenizer) {
    check_tokenizer(**tokenizer, bytes);
  } else {
    CHECK(!tokenizer.error().message.empty());
  }
}

}  // namespace weir::text
