#include "api/prompt/media_tokens.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "api/prompt/prompt_limits.h"
#include "api/request/json_fields.h"
#include "base/concat.h"
#include "media/processor/placeholder.h"
#include "media/processor/video_plan.h"

namespace weir::api {

namespace {

constexpr text::EncodeOptions kAsWritten = {.add_special = false, .parse_special = true};
// Stands for rows of features where the vocabulary has no token for them. Nothing reads it.
constexpr int32_t kFiller = 0;

constexpr Medium kMedia[] = {Medium::kPicture, Medium::kVideo, Medium::kSound};

std::string plural(Medium medium) {
  return medium == Medium::kSound ? "sounds" : medium == Medium::kVideo ? "videos" : "images";
}

// Which kinds of media there are.
std::vector<Medium> kinds_of(std::span<const SeenMedium> media) {
  std::vector<Medium> kinds;
  for (const Medium medium : kMedia)
    if (std::ranges::find(media, medium, &SeenMedium::medium) != media.end())
      kinds.push_back(medium);
  return kinds;
}

// A prompt whose marks have become placeholders, and which of the media each was of.
struct Expanded {
  std::string text;
  std::vector<const SeenMedium*> media;
};

// A mark of a kind stands for the next medium of that kind, that of a video for all its moments.
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
      const std::span<const SeenMedium> taken = take(next.medium);
      // A mark too many ends it: each further one would have the whole rest searched again.
      if (taken.empty()) WEIR_TRY(check_marks(field, next.medium));
      if (!taken.empty()) out.text += taken.front().placeholder(config_);
      for (const SeenMedium& seen : taken) out.media.push_back(&seen);
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
      const std::string_view mark = mark_of(config_, medium);
      const size_t at = mark.empty() ? std::string_view::npos : text.find(mark, from);
      if (at < next.at) next = {at, mark, medium};
    }
    return next;
  }
  std::span<const SeenMedium> take(Medium medium) {
    Count& count = counts_[static_cast<size_t>(medium)];
    ++count.found;
    while (count.taken < media_.size()) {
      const size_t first = count.taken++;
      const SeenMedium& seen = media_[first];
      if (seen.medium != medium) continue;
      if (seen.video) count.taken = first + static_cast<size_t>(seen.video->moments);
      return media_.subspan(first, count.taken - first);
    }
    return {};
  }
  Result<void> check_marks(const std::string& field, Medium medium) const {
    // Of a video its first moment counts.
    const auto expected =
        static_cast<size_t>(std::ranges::count_if(media_, [medium](const SeenMedium& seen) {
          return seen.medium == medium && seen.moment == 0;
        }));
    const size_t found = counts_[static_cast<size_t>(medium)].found;
    if (found == expected) return {};
    return out_of_range(field, concat({"expected the prompt to have ", mark_of(config_, medium),
                                       " once for each of ", std::to_string(expected), " ",
                                       plural(medium), ", found ", std::to_string(found),
                                       ": the chat template leaves ", plural(medium),
                                       " out, or a message has these letters in "
                                       "its text"}));
  }

  const ApiConfig& config_;
  const std::span<const SeenMedium> media_;
  const std::vector<Medium> kinds_;
  std::array<Count, std::size(kMedia)> counts_{};  // By medium.
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
  std::vector<size_t> nexts(kinds.size());  // Each kind's next row, from where it was looked for.
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.size(), length = 0;
    std::optional<Medium> row;
    for (size_t k = 0; k < kinds.size(); ++k) {
      const Medium medium = kinds[k];
      const std::string_view of_row = row_text(config, medium);
      if (begin == 0 || nexts[k] < begin) nexts[k] = text.find(of_row, begin);
      if (const size_t at = nexts[k]; at < end) {
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
Result<RowKinds> encode(const ServingContext& serving, const std::string& field, int32_t tokens_max,
                        std::string_view text, std::span<const Medium> kinds,
                        const text::EncodeOptions& options, sched::Prompt& ids) {
  RowKinds rows;
  const auto token_of = [&](Medium medium) { return serving.token_of(medium); };
  if (!std::ranges::all_of(kinds, [&](Medium medium) { return token_of(medium).has_value(); })) {
    if (options.add_special) ids = serving.config.tokenizer->encode("", options);
    encode_between(serving.config, text, kinds, ids, rows);
    return rows;
  }
  WEIR_ASSIGN(ids, tokenise(serving.config, field, tokens_max, text, options));
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
  if (seen.medium != Medium::kSound && seen.plan.views() == 1) {
    const media::Size grid = media::token_grid(*config.processor, seen.plan.canvas);
    medium.grid_rows = static_cast<int32_t>(grid.height);
    medium.grid_columns = static_cast<int32_t>(grid.width);
  }
  medium.hash = seen.hash;
  if (seen.video && seen.moment > 0 && !config.processor->video.times) {
    medium.goes_on = true;
    medium.step =
        static_cast<int32_t>(media::moment_step(*config.processor, *seen.video, seen.moment));
    medium.hash = sched::hash_at(seen.hash, medium.step);
  }
  medium.input = seen.input;
  return medium;
}

// A text of a prompt with its marks as the model's own. Where pictures come before everything else,
// they do, and BOS and the text follow.
Result<std::string> with_marks(const ApiConfig& config, const std::string& field,
                               const ShownPrompt& prompt) {
  const media::Placeholder& marks = config.processor->placeholder;
  const std::string_view text = prompt.text;
  std::string leading, rest;
  size_t begin = 0, found = 0;
  for (size_t at = 0; (at = text.find(kPictureMark, begin)) != std::string_view::npos;
       begin = at + kPictureMark.size(), ++found) {
    rest += text.substr(begin, at - begin);
    (marks.leads ? leading : rest) += marks.prompt;
  }
  rest += text.substr(begin);
  if (found != prompt.pictures)
    return out_of_range(
        field, concat({"expected ", kPictureMark, " once for each of ",
                       std::to_string(prompt.pictures), " images, found ", std::to_string(found)}));
  if (!marks.leads) return rest;
  for (const auto& [name, token] : config.special_tokens)
    if (name == "bos_token") leading += token;
  return concat({leading, rest, rest.ends_with('\n') ? "" : "\n"});
}

}  // namespace

Result<PromptTokens> tokenise_media(const ServingContext& serving, const std::string& field,
                                    int32_t tokens_max, std::string_view text,
                                    std::span<const SeenMedium> media, bool add_special) {
  const text::EncodeOptions options = {.add_special = add_special, .parse_special = true};
  PromptTokens out;
  if (media.empty()) {
    WEIR_ASSIGN(out.ids, tokenise(serving.config, field, tokens_max, text, options));
    return out;
  }
  WEIR_ASSIGN(const Expanded whole, Expander(serving.config, media).expand(field, text));
  WEIR_ASSIGN(const RowKinds kinds,
              encode(serving, field, tokens_max, whole.text, kinds_of(media), options, out.ids));
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

Result<PromptTokens> tokenise_shown(const ServingContext& serving, const std::string& field,
                                    int32_t tokens_max, const ShownPrompt& prompt,
                                    std::span<const SeenMedium> pictures) {
  const bool leads = serving.config.processor->placeholder.leads;
  WEIR_ASSIGN(const std::string text, with_marks(serving.config, field, prompt));
  return tokenise_media(serving, field, tokens_max, text, pictures, /*add_special=*/!leads);
}

}  // namespace weir::api
