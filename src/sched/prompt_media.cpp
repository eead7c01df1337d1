#include "sched/prompt_media.h"

#include <string>
#include <string_view>

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

int32_t Picture::features() const {
  int32_t features = 0;
  for (const FeatureRun& run : runs) features += run.count;
  return features;
}

size_t media_bytes(const PromptMedia& media) {
  size_t bytes = sizeof(PromptMedia) + media.pictures.capacity() * sizeof(Picture);
  for (const Picture& picture : media.pictures) {
    bytes += picture.runs.capacity() * sizeof(FeatureRun);
    if (picture.input)
      bytes += sizeof(PictureInput) + picture.input->pixels.numbers.capacity() * sizeof(float);
  }
  return bytes;
}

Result<void> check_media(const PromptMedia& media, int64_t prompt_tokens) {
  int64_t begin = 0;
  for (const Picture& picture : media.pictures) {
    WEIR_TRY(check_picture(picture, begin, prompt_tokens));
    begin = picture.end();
  }
  return {};
}

}  // namespace weir::sched
