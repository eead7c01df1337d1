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

// One who takes the marks of a text for what they stand for, in their order.
class PlaceholderWriter {
 public:
  PlaceholderWriter(const media::Processor& processor, std::span<const SeenPicture> pictures)
      : processor_(processor), pictures_(pictures) {}

  Result<std::string> write(const std::string& field, std::string_view text) {
    const std::string& picture = processor_.placeholder.prompt;
    const std::string& video = processor_.video.prompt;
    std::string out;
    size_t begin = 0;
    for (;;) {
      const size_t next_picture = text.find(picture, begin);
      const size_t next_video = video.empty() ? std::string_view::npos : text.find(video, begin);
      const size_t at = std::min(next_picture, next_video);
      if (at == std::string_view::npos) break;
      out += text.substr(begin, at - begin);
      const bool of_video = at == next_video;
      add(out, of_video);
      begin = at + (of_video ? video : picture).size();
    }
    out += text.substr(begin);
    if (found_ == wanted() && next_ == pictures_.size()) return out;
    const bool videos = std::ranges::any_of(pictures_, is_of_video);
    return out_of_range(
        field,
        concat({"expected the prompt to have ", picture, videos ? " or " + video : "",
                " once for each of ", std::to_string(wanted()),
                videos ? " images and videos" : " images", ", found ", std::to_string(found_),
                ": the chat template leaves images out, or a message has these letters in "
                "its text"}));
  }

 private:
  static bool is_of_video(const SeenPicture& seen) { return seen.video != nullptr; }
  size_t wanted() const {
    return static_cast<size_t>(std::ranges::count(pictures_, 0, &SeenPicture::moment));
  }
  // A mark of the other kind takes nothing, which the counts tell.
  void add(std::string& out, bool of_video) {
    ++found_;
    if (next_ == pictures_.size() || is_of_video(pictures_[next_]) != of_video) return;
    const SeenPicture& seen = pictures_[next_];
    out += of_video ? media::video_text(processor_, *seen.video)
                    : media::placeholder_text(processor_, seen.plan);
    next_ += of_video ? static_cast<size_t>(seen.video->moments) : 1;
  }

  const media::Processor& processor_;
  const std::span<const SeenPicture> pictures_;
  size_t next_ = 0;   // Of the pictures,
  size_t found_ = 0;  // and marks so far.
};

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

// Where the next row of a picture or of a video stands, and how many letters stand for it.
struct RowMark {
  size_t at = std::string_view::npos;
  size_t length = 0;
};

RowMark next_row(const media::Processor& processor, std::string_view text, size_t begin) {
  RowMark next;
  for (const std::string* mark : {&processor.placeholder.image, &processor.video.image}) {
    if (mark->empty()) continue;
    if (const size_t at = text.find(*mark, begin); at < next.at) next = {at, mark->size()};
  }
  return next;
}

// Texts between rows are tokenised each for itself, where rows have no token.
void encode_between(const text::Tokenizer& tokenizer, std::string_view text,
                    const media::Processor& processor, sched::Prompt& ids,
                    std::vector<bool>& is_row) {
  for (size_t begin = 0; begin < text.size();) {
    const RowMark row = next_row(processor, text, begin);
    const size_t end = std::min(row.at, text.size());
    if (end > begin) {
      const auto part = tokenizer.encode(text.substr(begin, end - begin), kAsWritten);
      ids.insert(ids.end(), part.begin(), part.end());
    }
    is_row.resize(ids.size(), false);
    if (end < text.size()) {
      ids.push_back(kFiller);
      is_row.push_back(true);
    }
    begin = end + row.length;
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
  if (seen.video && seen.moment > 0 && !processor.video.times) {
    picture.goes_on = true;
    picture.step = static_cast<int32_t>(media::moment_step(processor, *seen.video, seen.moment));
    picture.hash = sched::hash_at(seen.hash, picture.step);
  }
  picture.input.picture = seen.input;
  return picture;
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

Result<PromptTokens> tokenise_pictures(const ServingContext& serving, const std::string& field,
                                       int32_t tokens_max, std::string_view text,
                                       std::span<const SeenPicture> pictures, bool add_special) {
  const text::EncodeOptions options = {.add_special = add_special, .parse_special = true};
  PromptTokens out;
  if (pictures.empty()) {
    WEIR_ASSIGN(out.ids, tokenise(serving.config, field, tokens_max, text, options));
    return out;
  }
  const media::Processor& processor = *serving.config.processor;
  WEIR_ASSIGN(const std::string whole, PlaceholderWriter(processor, pictures).write(field, text));
  const bool videos =
      std::ranges::any_of(pictures, [](const SeenPicture& seen) { return seen.video != nullptr; });
  std::vector<bool> is_row;
  if (serving.image_token && (!videos || serving.video_token)) {
    WEIR_ASSIGN(out.ids, tokenise(serving.config, field, tokens_max, whole, options));
    is_row.reserve(out.ids.size());
    for (const int32_t id : out.ids)
      is_row.push_back(id == *serving.image_token || id == serving.video_token);
  } else {
    if (add_special) out.ids = serving.config.tokenizer->encode("", options);
    encode_between(*serving.config.tokenizer, whole, processor, out.ids, is_row);
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

Result<PromptTokens> tokenise_shown(const ServingContext& serving, const std::string& field,
                                    int32_t tokens_max, const ShownPrompt& prompt,
                                    std::span<const SeenPicture> pictures) {
  const bool leads = serving.config.processor->placeholder.leads;
  WEIR_ASSIGN(const std::string text, with_marks(serving.config, field, prompt));
  return tokenise_pictures(serving, field, tokens_max, text, pictures, /*add_special=*/!leads);
}

}  // namespace weir::api
