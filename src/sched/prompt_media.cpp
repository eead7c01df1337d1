#include "sched/prompt_media.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>

#include "kv/hash128.h"

namespace weir::sched {

namespace {

Result<void> check_picture(const Picture& picture, int64_t begin, int64_t prompt_tokens) {
  const auto wrong = [](const std::string& what) { return fail(ErrorCode::kInvalid, what); };
  if (!picture.input) return wrong("A picture of the prompt has no pixels");
  if (picture.runs.empty()) return wrong("A picture of the prompt has no rows of features");
  if (picture.first < begin || picture.end() > prompt_tokens)
    return wrong("Expected a picture's tokens between " + std::to_string(begin) + " and " +
                 std::to_string(prompt_tokens) + ", found " + std::to_string(picture.first) +
                 " to " + std::to_string(picture.end()));
  const FeatureRun &front = picture.runs.front(), &back = picture.runs.back();
  if (front.first != picture.first || int64_t{back.first} + back.count != picture.end())
    return wrong("Expected a picture's tokens to begin and end with a row of features");
  int64_t end = picture.first - 1;
  for (const FeatureRun& run : picture.runs) {
    if (run.count <= 0 || run.first <= end)
      return wrong("Expected a picture's rows of features in order, with marks between their runs");
    end = int64_t{run.first} + run.count;
  }
  return {};
}

// A step computes such a span at once.
Result<void> check_spans(const PromptMedia& media, int64_t prompt_tokens,
                         const MediaLimits& limits) {
  const auto tokens = static_cast<int32_t>(prompt_tokens);
  for (int32_t from = 0;;) {
    const model::Mask span = span_after(media, limits.both_ways, tokens, from);
    if (span.begin == span.end) return {};
    if (span.end - span.begin > limits.span_tokens_max)
      return fail(ErrorCode::kInvalid,
                  "Expected at most " + std::to_string(limits.span_tokens_max) + " tokens of " +
                      (limits.both_ways == model::BothWays::kPrompt
                           ? "a prompt with a picture, all of which"
                           : "a picture, which") +
                      " see each other and so are computed in one step; found " +
                      std::to_string(span.end - span.begin));
    from = span.end;
  }
}

// After the moments of a video that begins with `first`.
std::vector<Picture>::const_iterator end_of_video(const PromptMedia& media,
                                                  std::vector<Picture>::const_iterator first) {
  return std::find_if_not(first + 1, media.pictures.end(),
                          [](const Picture& picture) { return picture.goes_on; });
}

// How much further than by their tokens positions go on after pictures that begin together.
int32_t shift_past(std::span<const Picture> pictures) {
  int32_t length = 0, tokens = 0;
  for (const Picture& picture : pictures) {
    length = std::max({length, picture.step + 1, picture.grid_rows, picture.grid_columns});
    tokens += picture.tokens;
  }
  return length - tokens;
}

}  // namespace

MediaHash hash_of(const PictureInput& input) {
  const media::ImagePlan& plan = input.plan;
  std::vector<uint64_t> words;
  const auto add = [&words](int64_t number) { words.push_back(static_cast<uint64_t>(number)); };
  const auto add_size = [&add](const media::Size& size) {
    add(size.width);
    add(size.height);
  };
  add_size(plan.canvas);
  add_size(plan.whole);
  add(plan.grid.columns);
  add(plan.grid.rows);
  for (const media::Size& view : input.pixels.views) add_size(view);
  const auto bytes_of = [](const auto& numbers) {
    return std::string_view(reinterpret_cast<const char*>(numbers.data()),
                            numbers.size() * sizeof(numbers[0]));
  };
  for (const uint64_t part : kv::hash128(bytes_of(input.pixels.numbers))) words.push_back(part);
  return kv::hash128(bytes_of(words));
}

MediaHash hash_at(const MediaHash& hash, int32_t step) {
  const std::array<uint64_t, 3> words = {hash[0], hash[1], static_cast<uint64_t>(step)};
  return kv::hash128({reinterpret_cast<const char*>(words.data()), sizeof words});
}

int32_t Picture::features() const {
  int32_t features = 0;
  for (const FeatureRun& run : runs) features += run.count;
  return features;
}

Result<void> check_media(const PromptMedia& media, int64_t prompt_tokens,
                         const MediaLimits& limits) {
  if (!limits.taken) return fail(ErrorCode::kInvalid, "This model takes no pictures");
  int64_t begin = 0, rows = 0;
  for (const Picture& picture : media.pictures) {
    WEIR_TRY(check_picture(picture, begin, prompt_tokens));
    const bool one_view = picture.runs.size() == 1 &&
                          int64_t{picture.grid_rows} * picture.grid_columns == picture.tokens;
    if (limits.three_positions && !one_view)
      return fail(ErrorCode::kInvalid, "Expected a picture of one view, with its grid");
    if (picture.goes_on && (&picture == &media.pictures.front() || picture.first != begin))
      return fail(ErrorCode::kInvalid, "Expected moments of a video one after another");
    begin = picture.end();
    rows += picture.features();
  }
  if (rows * limits.row_bytes > limits.features_bytes_max)
    return fail(ErrorCode::kInvalid,
                "Expected pictures of at most " +
                    std::to_string(limits.features_bytes_max / limits.row_bytes) +
                    " tokens together, which is what --image-cache holds; found " +
                    std::to_string(rows));
  return check_spans(media, prompt_tokens, limits);
}

MediaHash hash_within(const PromptMedia& media, int32_t begin, int32_t end) {
  struct Part {
    MediaHash hash;
    int64_t from = 0;  // Where the picture begins, counted from `begin`.
  };
  MediaHash hash{};
  for (const Picture& picture : media.pictures) {
    if (picture.end() <= begin) continue;
    if (picture.first >= end) break;
    // A chain: of what came before, and of this picture.
    const std::array<Part, 2> parts = {Part{hash}, {picture.hash, picture.first - begin}};
    static_assert(std::has_unique_object_representations_v<Part>);
    hash = kv::hash128({reinterpret_cast<const char*>(&parts), sizeof parts});
  }
  return hash;
}

bool same_before(const PromptMedia* a, const PromptMedia* b, int32_t end) {
  if (a == b) return true;
  const auto before = [end](const PromptMedia* media) {
    if (media == nullptr) return std::span<const Picture>();
    const auto past = std::ranges::lower_bound(media->pictures, end, {}, &Picture::first);
    return std::span(media->pictures.begin(), past);
  };
  return std::ranges::equal(before(a), before(b), [](const Picture& x, const Picture& y) {
    return x.first == y.first && x.hash == y.hash;
  });
}

model::Mask span_after(const PromptMedia& media, model::BothWays both_ways, int32_t prompt_tokens,
                       int32_t from) {
  if (both_ways == model::BothWays::kNone) return {};
  if (both_ways == model::BothWays::kPrompt)
    return from < prompt_tokens ? model::Mask{0, prompt_tokens} : model::Mask{};
  for (const Picture& picture : media.pictures) {
    if (picture.end() <= from) continue;
    for (const FeatureRun& run : picture.runs)
      if (run.first + run.count > from) return {run.first, run.first + run.count};
  }
  return {};
}

void append_prompt(std::span<const int32_t> tokens, const PromptMedia* media, TextIndex& text) {
  size_t at = 0;
  if (media != nullptr)
    for (const Picture& picture : media->pictures)
      for (const FeatureRun& run : picture.runs) {
        const auto first = static_cast<size_t>(run.first);
        text.append(tokens.subspan(at, first - at));
        for (int32_t i = 0; i < run.count; ++i) text.append(TextIndex::kNoToken);
        at = first + static_cast<size_t>(run.count);
      }
  text.append(tokens.subspan(at));
}

int32_t shift_of(const PromptMedia& media) {
  int32_t shift = 0;
  for (auto first = media.pictures.begin(); first != media.pictures.end();) {
    const auto end = end_of_video(media, first);
    shift += shift_past({first, end});
    first = end;
  }
  return shift;
}

void rope_positions(const PromptMedia& media, int32_t first,
                    std::span<model::RopePosition> positions) {
  int32_t shift = 0;
  const auto end = media.pictures.end();
  // The next picture that tokens stand for, and the video that it is of, or itself.
  auto picture = media.pictures.begin(), video = picture, video_end = picture;
  if (picture != end) video_end = end_of_video(media, video);
  for (int32_t i = first; model::RopePosition& position : positions) {
    while (picture != end && picture->end() <= i) {
      if (++picture != video_end) continue;
      shift += shift_past({video, video_end});
      video = picture;
      if (picture != end) video_end = end_of_video(media, video);
    }
    const int32_t text = i + shift;
    position = {text, text, text};
    if (picture != end && i >= picture->first) {
      const int32_t begin = video->first + shift, at = i - picture->first;
      position = {begin + picture->step, begin + at / picture->grid_columns,
                  begin + at % picture->grid_columns};
    }
    ++i;
  }
}

}  // namespace weir::sched
