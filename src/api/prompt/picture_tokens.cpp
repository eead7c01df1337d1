#include "api/prompt/picture_tokens.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/prompt/prompt_limits.h"
#include "api/request/json_fields.h"
#include "base/concat.h"
#include "media/processor/placeholder.h"

namespace weir::api {

namespace {

constexpr text::EncodeOptions kAsWritten = {.add_special = false, .parse_special = true};
// Stands for rows of features where the vocabulary has no token for them. Nothing reads it.
constexpr int32_t kFiller = 0;

Result<std::string> with_placeholders(const media::Processor& processor, const std::string& field,
                                      std::string_view text,
                                      std::span<const SeenPicture> pictures) {
  const std::string& mark = processor.placeholder.prompt;
  std::string out;
  size_t begin = 0, found = 0;
  for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, begin)) {
    out += text.substr(begin, at - begin);
    if (found < pictures.size()) out += media::placeholder_text(processor, pictures[found].plan);
    ++found;
    begin = at + mark.size();
  }
  out += text.substr(begin);
  if (found != pictures.size())
    return out_of_range(field, concat({"expected the prompt to have ", mark, " once for each of ",
                                       std::to_string(pictures.size()), " images, found ",
                                       std::to_string(found),
                                       ": the chat template leaves images out, or a message has "
                                       "these letters in its text"}));
  return out;
}

// Where rows of features are in the ids, and no others.
class RowFinder {
 public:
  explicit RowFinder(const sched::Prompt& ids, const std::vector<bool>& is_row)
      : ids_(ids), is_row_(is_row) {}

  // The next `count` of them; fewer if there are no more.
  std::vector<sched::FeatureRun> next(int64_t count) {
    std::vector<sched::FeatureRun> runs;
    for (; count > 0 && at_ < ids_.size(); ++at_) {
      if (!is_row_[at_]) continue;
      const auto first = static_cast<int32_t>(at_);
      if (runs.empty() || runs.back().first + runs.back().count != first)
        runs.push_back({.first = first});
      ++runs.back().count;
      --count;
    }
    return runs;
  }
  bool has_more() const {
    return std::find(is_row_.begin() + static_cast<ptrdiff_t>(at_), is_row_.end(), true) !=
           is_row_.end();
  }

 private:
  const sched::Prompt& ids_;
  const std::vector<bool>& is_row_;
  size_t at_ = 0;
};

// Texts between rows are tokenised each for itself, where rows have no token.
void encode_between(const text::Tokenizer& tokenizer, std::string_view text,
                    const std::string& row, sched::Prompt& ids, std::vector<bool>& is_row) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(row, begin), text.size());
    if (end > begin) {
      const auto part = tokenizer.encode(text.substr(begin, end - begin), kAsWritten);
      ids.insert(ids.end(), part.begin(), part.end());
    }
    is_row.resize(ids.size(), false);
    if (end < text.size()) {
      ids.push_back(kFiller);
      is_row.push_back(true);
    }
    begin = end + row.size();
  }
}

sched::Medium picture_of(const media::Processor& processor, const SeenPicture& seen,
                         std::vector<sched::FeatureRun> runs) {
  sched::Medium picture;
  picture.first = runs.front().first;
  picture.tokens = runs.back().first + runs.back().count - picture.first;
  picture.runs = std::move(runs);
  if (seen.plan.views() == 1) {
    const media::Size grid = media::token_grid(processor, seen.plan.canvas);
    picture.grid_rows = static_cast<int32_t>(grid.height);
    picture.grid_columns = static_cast<int32_t>(grid.width);
  }
  picture.hash = seen.hash;
  picture.input.picture = seen.input;
  return picture;
}

}  // namespace

Result<PromptTokens> tokenise_pictures(const ServingContext& serving, const std::string& field,
                                       int32_t tokens_max, std::string_view text,
                                       std::span<const SeenPicture> pictures) {
  PromptTokens out;
  if (pictures.empty()) {
    WEIR_ASSIGN(out.ids, tokenise(serving.config, field, tokens_max, text, kAsWritten));
    return out;
  }
  const media::Processor& processor = *serving.config.processor;
  WEIR_ASSIGN(const std::string whole, with_placeholders(processor, field, text, pictures));
  std::vector<bool> is_row;
  if (serving.image_token) {
    WEIR_ASSIGN(out.ids, tokenise(serving.config, field, tokens_max, whole, kAsWritten));
    is_row.reserve(out.ids.size());
    for (const int32_t id : out.ids) is_row.push_back(id == *serving.image_token);
  } else {
    encode_between(*serving.config.tokenizer, whole, processor.placeholder.image, out.ids, is_row);
  }
  RowFinder rows(out.ids, is_row);
  auto media = std::make_shared<sched::PromptMedia>();
  for (const SeenPicture& seen : pictures) {
    const int64_t count = media::token_count(processor, seen.plan);
    std::vector<sched::FeatureRun> runs = rows.next(count);
    sched::Medium picture;
    if (!runs.empty()) picture = picture_of(processor, seen, std::move(runs));
    if (picture.features() != count) return out_of_range(field, "its images' tokens are cut");
    media->items.push_back(std::move(picture));
  }
  if (rows.has_more())
    return out_of_range(field, concat({"expected ", processor.placeholder.image,
                                       " for images alone, found it in a message's text"}));
  if (pictures.front().input) out.media = std::move(media);
  return out;
}

}  // namespace weir::api
