#include "api/prompt/media_tokens.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "api/prompt/prompt_limits.h"
#include "api/request/json_fields.h"
#include "base/concat.h"

namespace weir::api {

namespace {

constexpr text::EncodeOptions kAsWritten = {.add_special = false, .parse_special = true};
// Stands for rows of features where the vocabulary has no token for them. Nothing reads it.
constexpr int32_t kFiller = 0;

std::string plural(Medium medium) { return medium == Medium::kSound ? "sounds" : "images"; }

// Which kinds of media there are.
std::vector<Medium> kinds_of(std::span<const SeenMedium> media) {
  std::vector<Medium> kinds;
  for (const Medium medium : {Medium::kPicture, Medium::kSound})
    if (std::ranges::find(media, medium, &SeenMedium::medium) != media.end())
      kinds.push_back(medium);
  return kinds;
}

// A prompt whose marks have become placeholders, and which of the media each was of.
struct Expanded {
  std::string text;
  std::vector<const SeenMedium*> media;
};

// A mark of a kind stands for the next medium of that kind.
class Expander {
 public:
  Expander(const ApiConfig& config, std::span<const SeenMedium> media)
      : config_(config), media_(media), kinds_(kinds_of(media)) {}

  Result<Expanded> expand(const std::string& field, std::string_view text) {
    Expanded out;
    size_t begin = 0;
    for (Next next = find(text, 0); next.at != std::string_view::npos; next = find(text, begin)) {
      out.text += text.substr(begin, next.at - begin);
      begin = next.at + next.mark.size();
      if (const SeenMedium* const seen = take(next.medium)) {
        out.text += seen->placeholder(config_);
        out.media.push_back(seen);
      }
    }
    out.text += text.substr(begin);
    for (const Medium medium : kinds_) WEIR_TRY(check_marks(field, medium));
    return out;
  }

 private:
  struct Next {
    size_t at = std::string_view::npos;
    std::string_view mark{};
    Medium medium{};
  };
  struct Count {
    size_t found = 0;  // Marks,
    size_t taken = 0;  // and how many of the media, of other kinds among them, have been passed.
  };

  Next find(std::string_view text, size_t from) const {
    Next next;
    for (const Medium medium : kinds_) {
      const std::string_view mark = media_marks(config_).of(medium);
      const size_t at = text.find(mark, from);
      if (at < next.at) next = {at, mark, medium};
    }
    return next;
  }
  const SeenMedium* take(Medium medium) {
    Count& count = counts_[static_cast<size_t>(medium)];
    ++count.found;
    while (count.taken < media_.size())
      if (const SeenMedium& seen = media_[count.taken++]; seen.medium == medium) return &seen;
    return nullptr;
  }
  Result<void> check_marks(const std::string& field, Medium medium) const {
    const auto expected =
        static_cast<size_t>(std::ranges::count(media_, medium, &SeenMedium::medium));
    const size_t found = counts_[static_cast<size_t>(medium)].found;
    if (found == expected) return {};
    return out_of_range(field, concat({"expected the prompt to have ",
                                       media_marks(config_).of(medium), " once for each of ",
                                       std::to_string(expected), " ", plural(medium), ", found ",
                                       std::to_string(found), ": the chat template leaves ",
                                       plural(medium), " out, or a message has these letters in "
                                       "its text"}));
  }

  const ApiConfig& config_;
  const std::span<const SeenMedium> media_;
  const std::vector<Medium> kinds_;
  std::array<Count, 2> counts_{};  // By medium.
};

// What each id stands for a row of.
using RowKinds = std::vector<std::optional<Medium>>;

// Where rows of features are in the ids, and no others.
class RowFinder {
 public:
  explicit RowFinder(const RowKinds& rows) : rows_(rows) {}

  // The next `count` of them; fewer if there are no more, or another kind's come.
  std::vector<sched::FeatureRun> next(Medium medium, int64_t count) {
    std::vector<sched::FeatureRun> runs;
    for (; count > 0 && at_ < rows_.size(); ++at_) {
      if (!rows_[at_]) continue;
      if (rows_[at_] != medium) break;
      const auto first = static_cast<int32_t>(at_);
      if (runs.empty() || runs.back().first + runs.back().count != first)
        runs.push_back({.first = first});
      ++runs.back().count;
      --count;
    }
    return runs;
  }
  // What others are left of.
  std::optional<Medium> more() const {
    for (size_t i = at_; i < rows_.size(); ++i)
      if (rows_[i]) return rows_[i];
    return std::nullopt;
  }

 private:
  const RowKinds& rows_;
  size_t at_ = 0;
};

// Texts between rows are tokenised each for itself, where rows have no token.
void encode_between(const ApiConfig& config, std::string_view text, std::span<const Medium> kinds,
                    sched::Prompt& ids, RowKinds& rows) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.size(), length = 0;
    std::optional<Medium> row;
    for (const Medium medium : kinds) {
      const std::string_view of_row = row_text(config, medium);
      if (const size_t at = text.find(of_row, begin); at < end) {
        end = at;
        length = of_row.size();
        row = medium;
      }
    }
    if (end > begin) {
      const auto part = config.tokenizer->encode(text.substr(begin, end - begin), kAsWritten);
      ids.insert(ids.end(), part.begin(), part.end());
    }
    rows.resize(ids.size());
    if (row) {
      ids.push_back(kFiller);
      rows.push_back(row);
    }
    begin = end + length;
  }
}

// `text`: with placeholders.
Result<RowKinds> encode(const ServingContext& serving, const std::string& field,
                        int32_t tokens_max, std::string_view text, std::span<const Medium> kinds,
                        sched::Prompt& ids) {
  RowKinds rows;
  const auto token_of = [&](Medium medium) { return serving.token_of(medium); };
  if (!std::ranges::all_of(kinds, [&](Medium medium) { return token_of(medium).has_value(); })) {
    encode_between(serving.config, text, kinds, ids, rows);
    return rows;
  }
  WEIR_ASSIGN(ids, tokenise(serving.config, field, tokens_max, text, kAsWritten));
  rows.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    for (const Medium medium : kinds)
      if (ids[i] == *token_of(medium)) rows[i] = medium;
  return rows;
}

sched::Medium medium_of(const ApiConfig& config, const SeenMedium& seen,
                        std::vector<sched::FeatureRun> runs) {
  sched::Medium medium;
  medium.first = runs.front().first;
  medium.tokens = runs.back().first + runs.back().count - medium.first;
  medium.runs = std::move(runs);
  if (seen.medium == Medium::kPicture && seen.plan.views() == 1) {
    const media::Size grid = media::token_grid(*config.processor, seen.plan.canvas);
    medium.grid_rows = static_cast<int32_t>(grid.height);
    medium.grid_columns = static_cast<int32_t>(grid.width);
  }
  medium.hash = seen.hash;
  medium.input = seen.input;
  return medium;
}

}  // namespace

Result<PromptTokens> tokenise_media(const ServingContext& serving, const std::string& field,
                                    int32_t tokens_max, std::string_view text,
                                    std::span<const SeenMedium> media) {
  PromptTokens out;
  if (media.empty()) {
    WEIR_ASSIGN(out.ids, tokenise(serving.config, field, tokens_max, text, kAsWritten));
    return out;
  }
  WEIR_ASSIGN(const Expanded whole, Expander(serving.config, media).expand(field, text));
  WEIR_ASSIGN(const RowKinds kinds,
              encode(serving, field, tokens_max, whole.text, kinds_of(media), out.ids));
  RowFinder rows(kinds);
  auto prompt_media = std::make_shared<sched::PromptMedia>();
  for (const SeenMedium* const seen : whole.media) {
    const int64_t count = seen->tokens(serving.config);
    std::vector<sched::FeatureRun> runs = rows.next(seen->medium, count);
    sched::Medium medium;
    if (!runs.empty()) medium = medium_of(serving.config, *seen, std::move(runs));
    if (medium.features() != count)
      return out_of_range(field, concat({"its ", plural(seen->medium), "' tokens are cut"}));
    prompt_media->items.push_back(std::move(medium));
  }
  if (const auto more = rows.more())
    return out_of_range(field, concat({"expected ", row_text(serving.config, *more), " for ",
                                       plural(*more), " alone, found it in a message's text"}));
  if (media.front().input) out.media = std::move(prompt_media);
  return out;
}

}  // namespace weir::api
