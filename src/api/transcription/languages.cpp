#include "api/transcription/languages.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/ascii.h"

namespace weir::api::transcription {

namespace {

constexpr auto kLanguages = std::to_array<Language>({
    {"en", "english"},    {"zh", "chinese"},     {"de", "german"},      {"es", "spanish"},
    {"ru", "russian"},    {"ko", "korean"},      {"fr", "french"},      {"ja", "japanese"},
    {"pt", "portuguese"}, {"tr", "turkish"},     {"pl", "polish"},      {"ca", "catalan"},
    {"nl", "dutch"},      {"ar", "arabic"},      {"sv", "swedish"},     {"it", "italian"},
    {"id", "indonesian"}, {"hi", "hindi"},       {"fi", "finnish"},     {"vi", "vietnamese"},
    {"he", "hebrew"},     {"uk", "ukrainian"},   {"el", "greek"},       {"ms", "malay"},
    {"cs", "czech"},      {"ro", "romanian"},    {"da", "danish"},      {"hu", "hungarian"},
    {"ta", "tamil"},      {"no", "norwegian"},   {"th", "thai"},        {"ur", "urdu"},
    {"hr", "croatian"},   {"bg", "bulgarian"},   {"lt", "lithuanian"},  {"la", "latin"},
    {"mi", "maori"},      {"ml", "malayalam"},   {"cy", "welsh"},       {"sk", "slovak"},
    {"te", "telugu"},     {"fa", "persian"},     {"lv", "latvian"},     {"bn", "bengali"},
    {"sr", "serbian"},    {"az", "azerbaijani"}, {"sl", "slovenian"},   {"kn", "kannada"},
    {"et", "estonian"},   {"mk", "macedonian"},  {"br", "breton"},      {"eu", "basque"},
    {"is", "icelandic"},  {"hy", "armenian"},    {"ne", "nepali"},      {"mn", "mongolian"},
    {"bs", "bosnian"},    {"kk", "kazakh"},      {"sq", "albanian"},    {"sw", "swahili"},
    {"gl", "galician"},   {"mr", "marathi"},     {"pa", "punjabi"},     {"si", "sinhala"},
    {"km", "khmer"},      {"sn", "shona"},       {"yo", "yoruba"},      {"so", "somali"},
    {"af", "afrikaans"},  {"oc", "occitan"},     {"ka", "georgian"},    {"be", "belarusian"},
    {"tg", "tajik"},      {"sd", "sindhi"},      {"gu", "gujarati"},    {"am", "amharic"},
    {"yi", "yiddish"},    {"lo", "lao"},         {"uz", "uzbek"},       {"fo", "faroese"},
    {"ht", "haitian creole"}, {"ps", "pashto"},  {"tk", "turkmen"},     {"nn", "nynorsk"},
    {"mt", "maltese"},    {"sa", "sanskrit"},    {"lb", "luxembourgish"}, {"my", "myanmar"},
    {"bo", "tibetan"},    {"tl", "tagalog"},     {"mg", "malagasy"},    {"as", "assamese"},
    {"tt", "tatar"},      {"haw", "hawaiian"},   {"ln", "lingala"},     {"ha", "hausa"},
    {"ba", "bashkir"},    {"jw", "javanese"},    {"su", "sundanese"},   {"yue", "cantonese"},
});

// Other names, by the codes of the above.
constexpr auto kOtherNames = std::to_array<Language>({
    {"my", "burmese"},    {"ca", "valencian"}, {"nl", "flemish"},   {"ht", "haitian"},
    {"lb", "letzeburgesch"}, {"ps", "pushto"}, {"pa", "panjabi"},   {"ro", "moldavian"},
    {"ro", "moldovan"},   {"si", "sinhalese"}, {"es", "castilian"}, {"zh", "mandarin"},
    {"jw", "jv"},  // ISO 639-1 has Javanese so.
});

}  // namespace

std::span<const Language> languages() { return kLanguages; }

const Language* find_language(std::string_view text) {
  const auto is = [&](std::string_view word) { return equals_ignoring_case(text, word); };
  for (const Language& language : kLanguages)
    if (is(language.code) || is(language.name)) return &language;
  for (const Language& other : kOtherNames)
    if (is(other.name)) return find_language(other.code);
  return nullptr;
}

}  // namespace weir::api::transcription
