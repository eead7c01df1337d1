// Every code point, alone and with combining marks, against Python's unicodedata restricted to the
// characters that DerivedAge.txt of Debian's unicode-data calls those of Unicode 9.
#include "text/unicode_age.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/utf8.h"
#include "text/unicode.h"

namespace weir::text {
namespace {

constexpr const char* kAges = "/usr/share/unicode/DerivedAge.txt";

// Lines: the text's characters in hexadecimal, then those of its four forms, separated by
// semicolons.
// Python of Debian 12 knows Unicode 14, and so all that is asked.
constexpr const char* kOracle = R"PY(
import unicodedata
old = {}
for line in open('/usr/share/unicode/DerivedAge.txt', encoding='utf-8'):
    fields = line.split('#')[0].split(';')
    if len(fields) == 2 and float(fields[1]) <= 9:
        first, _, last = fields[0].strip().partition('..')
        for code in range(int(first, 16), int(last or first, 16) + 1):
            old[code] = float(fields[1])
def normal(form, text):
    out = run = ''
    for c in text:
        if ord(c) in old:
            run += c
        else:
            out += unicodedata.normalize(form, run) + c
            run = ''
    return out + unicodedata.normalize(form, run)
def hexes(text):
    return ' '.join('%x' % ord(c) for c in text)
for code in range(0x80, 0x110000):
    if 0xd800 <= code < 0xe000 or 0x31400 <= code < 0xe0000 or code >= 0xe0200:
        continue
    c = chr(code)
    for text in (c, 'a' + c + '\u0301', 'q\u0345' + c, 'q' + c + '\u0334'):
        print(';'.join(hexes(t) for t in [text] + [normal(f, text) for f in ('NFC', 'NFD', 'NFKC', 'NFKD')]))
)PY";

std::string characters(const char*& at) {
  std::string text;
  while (*at != ';' && *at != '\n' && *at != '\0') {
    char* end = nullptr;
    append_utf8(text, static_cast<char32_t>(std::strtoul(at, &end, 16)));
    at = *end == ' ' ? end + 1 : end;
  }
  if (*at == ';') ++at;
  return text;
}

TEST(UnicodeAge, NormalisesEveryCharacterByUnicode9) {
  if (!std::filesystem::exists(kAges)) GTEST_SKIP() << "Debian's unicode-data is not installed";
  FILE* pipe = popen((std::string("python3 - <<'END'\n") + kOracle + "END").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[1024];
  int texts = 0, wrong = 0;
  while (fgets(line, sizeof line, pipe) != nullptr) {
    const char* at = line;
    const std::string text = characters(at);
    ++texts;
    for (const NormalForm form :
         {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc, NormalForm::kNfkd}) {
      std::string out;
      append_normalised_by_9(out, text, form, 1000);
      if (out != characters(at) && ++wrong < 10) ADD_FAILURE() << line;
    }
  }
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(texts, 4 * 190'000);
}

TEST(UnicodeAge, LeavesLaterCharactersAsTheyAre) {
  // U+1078E has a compatibility mapping since Unicode 14.
  for (const NormalForm form : {NormalForm::kNfkc, NormalForm::kNfkd}) {
    std::string out;
    append_normalised_by_9(out, "\xf0\x90\x9e\x8e\xef\xac\x81", form, 1000);
    EXPECT_EQ(out,
              "\xf0\x90\x9e\x8e"
              "fi");
  }
}

// As the crate answers for every code point: marks by age, and those whose category has changed.
TEST(UnicodeAge, CallsMarksWhatTheCrateDoes) {
  EXPECT_TRUE(is_mark(0x1e000));  // Unicode 9.
  EXPECT_FALSE(is_nonspacing_mark(0x1e000));
  EXPECT_FALSE(is_mark(0x1df6));             // U+1DF6 and its neighbours are of Unicode 10 ...
  EXPECT_TRUE(is_mark(0x1dfb));              // ... and U+1DFB of 9.
  EXPECT_TRUE(is_mark(0x1cf2));              // A letter since Unicode 12.
  EXPECT_FALSE(is_mark(0x111c9));            // A mark since Unicode 11.
  EXPECT_TRUE(is_nonspacing_mark(0x1734));   // A spacing mark since Unicode 14.
  EXPECT_FALSE(is_nonspacing_mark(0x1885));  // A letter until Unicode 9.
  EXPECT_TRUE(is_nonspacing_mark(0x301));
}

}  // namespace
}  // namespace weir::text
