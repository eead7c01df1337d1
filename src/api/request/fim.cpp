#include "api/request/fim.h"

#include <algorithm>
#include <array>
#include <string>

namespace weir::api {

namespace {

struct Names {
  std::string_view prefix, suffix, middle;
  bool suffix_first = false;
};

// As the makers of each name them; the order is theirs too.
constexpr auto kNames = std::to_array<Names>({
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},           // Qwen, CodeGemma, Granite 4
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},                 // StarCoder, Granite code
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},                 // SantaCoder
    {"\xe2\x96\x81<PRE>", "\xe2\x96\x81<SUF>", "\xe2\x96\x81<MID>"},  // CodeLlama
    // DeepSeek-Coder: the hole is where the suffix begins.
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "begin\xef\xbd\x9c>",
     "<\xef\xbd\x9c"
     "fim\xe2\x96\x81hole\xef\xbd\x9c>",
     "<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "end\xef\xbd\x9c>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},     // GLM-4, CodeGeeX
    {"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", true},  // Seed-Coder
    {"[PREFIX]", "[SUFFIX]", "", true},                            // Codestral
});

// Besides the three, what such models write after a middle.
constexpr auto kEnds = std::to_array<std::string_view>(
    {"<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<|endoftext|>", "<|file_separator|>",
     "<file_sep>", "<fim_pad>", "<fim-pad>", "<|endoffile|>", "\xe2\x96\x81<EOT>", "<EOT>"});

// As those models name them that were trained on whole repositories.
constexpr auto kRepositories =
    std::to_array<std::string_view>({"<|repo_name|>", "<repo_name>", "<reponame>"});
constexpr auto kFiles =
    std::to_array<std::string_view>({"<|file_sep|>", "<file_sep>", "<|file_separator|>"});

// Clients name neither the repository nor the file that they are in.
constexpr std::string_view kRepositoryName = "repository\n";
constexpr std::string_view kFileName = "current\n";

int32_t first_of(const text::Tokenizer& tokenizer, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto id = tokenizer.id(name)) return *id;
  return -1;
}

// Where a tokenizer puts a space before every text, a suffix must not get one: it is encoded after
// a line feed, whose tokens are then taken away.
std::vector<int32_t> encode_within(const text::Tokenizer& tokenizer, std::string_view text) {
  constexpr text::EncodeOptions kText = {.add_special = false, .parse_special = false};
  if (!tokenizer.strips_leading_space()) return tokenizer.encode(text, kText);
  const std::vector<int32_t> feed = tokenizer.encode("\n", kText);
  std::string behind_feed = "\n";
  behind_feed += text;
  std::vector<int32_t> ids = tokenizer.encode(behind_feed, kText);
  if (ids.size() < feed.size() || !std::equal(feed.begin(), feed.end(), ids.begin()))
    return tokenizer.encode(text, kText);
  ids.erase(ids.begin(), ids.begin() + std::ssize(feed));
  return ids;
}

// What the tokenizer puts before every text.
std::vector<int32_t> begin_of_text(const text::Tokenizer& tokenizer) {
  const std::vector<int32_t> with = tokenizer.encode("x", {.add_special = true});
  const std::vector<int32_t> without = tokenizer.encode("x", {.add_special = false});
  const auto text = std::ranges::search(with, without);
  return {with.begin(), text.begin()};
}

}  // namespace

std::optional<InfillTokens> find_infill_tokens(const text::Tokenizer& tokenizer) {
  for (const Names& names : kNames) {
    const auto prefix = tokenizer.id(names.prefix), suffix = tokenizer.id(names.suffix);
    const auto middle = names.middle.empty() ? std::optional(-1) : tokenizer.id(names.middle);
    if (!prefix || !suffix || !middle) continue;
    InfillTokens tokens{*prefix, *suffix, *middle, names.suffix_first, {*prefix, *suffix}};
    if (*middle >= 0) tokens.ends.push_back(*middle);
    for (const std::string_view name : kEnds)
      if (const auto id = tokenizer.id(name)) tokens.ends.push_back(*id);
    tokens.file = first_of(tokenizer, kFiles);
    if (tokens.file >= 0) tokens.repository = first_of(tokenizer, kRepositories);
    return tokens;
  }
  return std::nullopt;
}

std::vector<int32_t> infill_prompt(const text::Tokenizer& tokenizer, const InfillTokens& tokens,
                                   std::string_view prefix, std::string_view suffix,
                                   std::span<const InfillFile> files) {
  std::vector<int32_t> ids = begin_of_text(tokenizer);
  const auto add = [&](int32_t mark, const std::vector<int32_t>& text) {
    if (mark >= 0) ids.push_back(mark);
    ids.insert(ids.end(), text.begin(), text.end());
  };
  if (!files.empty() && tokens.repository >= 0)
    add(tokens.repository, encode_within(tokenizer, kRepositoryName));
  for (const InfillFile& file : files) {
    std::string text = file.name + "\n" + file.text;
    if (!text.ends_with('\n')) text += '\n';
    add(tokens.file, encode_within(tokenizer, text));
  }
  if (!files.empty() && tokens.file >= 0) add(tokens.file, encode_within(tokenizer, kFileName));
  const std::vector<int32_t> before =
      tokenizer.encode(prefix, {.add_special = false, .parse_special = false});
  const std::vector<int32_t> after = encode_within(tokenizer, suffix);
  if (tokens.suffix_first) add(tokens.suffix, after);
  add(tokens.prefix, before);
  if (!tokens.suffix_first) add(tokens.suffix, after);
  if (tokens.middle >= 0) ids.push_back(tokens.middle);
  return ids;
}

}  // namespace weir::api
