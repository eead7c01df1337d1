#include "sched/prompt_media.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>

#include "kv/hash128.h"

namespace weir::sched {

namespace {

Result<void> check_medium(const Medium& medium, int64_t begin, int64_t prompt_tokens) {
  const auto wrong = [](const std::string& what) { return fail(ErrorCode::kInvalid, what); };
  if (!medium.input) return wrong("A picture or sound of the prompt has no numbers");
  const std::string name = medium.is_sound() ? "a sound" : "a picture";
  if (medium.runs.empty()) return wrong("Expected rows of features of " + name + ", found none");
  if (medium.first < begin || medium.end() > prompt_tokens)
    return wrong("Expected " + name + "'s tokens between " + std::to_string(begin) + " and " +
                 std::to_string(prompt_tokens) + ", found " + std::to_string(medium.first) +
                 " to " + std::to_string(medium.end()));
  const FeatureRun &front = medium.runs.front(), &back = medium.runs.back();
  if (front.first != medium.first || int64_t{back.first} + back.count != medium.end())
    return wrong("Expected " + name + "'s tokens to begin and end with a row of features");
  int64_t end = medium.first - 1;
  for (const FeatureRun& run : medium.runs) {
    if (run.count <= 0 || run.first <= end)
      return wrong("Expected " + name +
                   "'s rows of features in order, with marks between their runs");
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

// What an input's hash is of: whole numbers, and the hash of those that an encoder reads.
class HashWords {
 public:
  void add(int64_t number) { words_.push_back(static_cast<uint64_t>(number)); }
  void add(const media::Size& size) {
    add(size.width);
    add(size.height);
  }
  void add(std::span<const float> numbers) {
    for (const uint64_t part : kv::hash128(bytes_of(numbers))) words_.push_back(part);
  }
  MediaHash hash() const { return kv::hash128(bytes_of(std::span(words_))); }

 private:
  template <class T>
  static std::string_view bytes_of(std::span<T> numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
  }

  std::vector<uint64_t> words_;
};

// By how much positions after it lie further on than its tokens would have them.
int32_t shift_past(const Medium& medium) {
  return medium.is_sound() ? 0 : std::max(medium.grid_rows, medium.grid_columns) - medium.tokens;
}

}  // namespace

MediaHash hash_of(const PictureInput& input) {
  const media::ImagePlan& plan = input.plan;
  HashWords words;
  words.add(plan.canvas);
  words.add(plan.whole);
  words.add(plan.grid.columns);
  words.add(plan.grid.rows);
  for (const media::Size& view : input.pixels.views) words.add(view);
  words.add(input.pixels.numbers);
  return words.hash();
}

// A picture's begins with a width, which is never negative.
MediaHash hash_of(const SoundInput& input) {
  HashWords words;
  words.add(-1);
  words.add(input.frames);
  words.add(input.heard);
  words.add(input.numbers);
  return words.hash();
}

int32_t Medium::features() const {
  int32_t features = 0;
  for (const FeatureRun& run : runs) features += run.count;
  return features;
}

Result<void> check_media(const PromptMedia& media, int64_t prompt_tokens,
                         const MediaLimits& limits) {
  int64_t begin = 0, rows = 0;
  for (const Medium& medium : media.items) {
    if (medium.is_sound() ? !limits.sounds : !limits.pictures)
      return fail(ErrorCode::kInvalid, std::string("This model takes no ") +
                                           (medium.is_sound() ? "sounds" : "pictures"));
    WEIR_TRY(check_medium(medium, begin, prompt_tokens));
    const bool one_view =
        medium.runs.size() == 1 && int64_t{medium.grid_rows} * medium.grid_columns == medium.tokens;
    if (limits.three_positions && !medium.is_sound() && !one_view)
      return fail(ErrorCode::kInvalid, "Expected a picture of one view, with its grid");
    begin = medium.end();
    rows += medium.features();
  }
  if (rows * limits.row_bytes > limits.features_bytes_max)
    return fail(ErrorCode::kInvalid,
                "Expected pictures and sounds of at most " +
                    std::to_string(limits.features_bytes_max / limits.row_bytes) +
                    " tokens together, which is what --image-cache holds; found " +
                    std::to_string(rows));
  return check_spans(media, prompt_tokens, limits);
}

MediaHash hash_within(const PromptMedia& media, int32_t begin, int32_t end) {
  struct Part {
    MediaHash hash;
    int64_t from = 0;  // Where the medium begins, counted from `begin`.
  };
  MediaHash hash{};
  for (const Medium& medium : media.items) {
    if (medium.end() <= begin) continue;
    if (medium.first >= end) break;
    // A chain: of what came before, and of this one.
    const std::array<Part, 2> parts = {Part{hash}, {medium.hash, medium.first - begin}};
    static_assert(std::has_unique_object_representations_v<Part>);
    hash = kv::hash128({reinterpret_cast<const char*>(&parts), sizeof parts});
  }
  return hash;
}

bool same_before(const PromptMedia* a, const PromptMedia* b, int32_t end) {
  if (a == b) return true;
  const auto before = [end](const PromptMedia* media) {
    if (media == nullptr) return std::span<const Medium>();
    const auto past = std::ranges::lower_bound(media->items, end, {}, &Medium::first);
    return std::span(media->items.begin(), past);
  };
  return std::ranges::equal(before(a), before(b), [](const Medium& x, const Medium& y) {
    return x.first == y.first && x.hash == y.hash;
  });
}

model::Mask span_after(const PromptMedia& media, model::BothWays both_ways, int32_t prompt_tokens,
                       int32_t from) {
  if (both_ways == model::BothWays::kNone) return {};
  if (both_ways == model::BothWays::kPrompt)
    return from < prompt_tokens ? model::Mask{0, prompt_tokens} : model::Mask{};
  for (const Medium& medium : media.items) {
    if (medium.end() <= from || medium.is_sound()) continue;
    for (const FeatureRun& run : medium.runs)
      if (run.first + run.count > from) return {run.first, run.first + run.count};
  }
  return {};
}

void append_prompt(std::span<const int32_t> tokens, const PromptMedia* media, TextIndex& text) {
  size_t at = 0;
  if (media != nullptr)
    for (const Medium& medium : media->items)
      for (const FeatureRun& run : medium.runs) {
        const auto first = static_cast<size_t>(run.first);
        text.append(tokens.subspan(at, first - at));
        for (int32_t i = 0; i < run.count; ++i) text.append(TextIndex::kNoToken);
        at = first + static_cast<size_t>(run.count);
      }
  text.append(tokens.subspan(at));
}

int32_t shift_of(const PromptMedia& media) {
  int32_t shift = 0;
  for (const Medium& medium : media.items) shift += shift_past(medium);
  return shift;
}

void rope_positions(const PromptMedia& media, int32_t first,
                    std::span<model::RopePosition> positions) {
  int32_t shift = 0;
  auto medium = media.items.begin();
  for (int32_t i = first; model::RopePosition & position : positions) {
    for (; medium != media.items.end() && medium->end() <= i; ++medium)
      shift += shift_past(*medium);
    const int32_t text = i + shift;
    position = {text, text, text};
    if (medium != media.items.end() && i >= medium->first && !medium->is_sound()) {
      const int32_t begin = medium->first + shift, at = i - medium->first;
      position = {begin, begin + at / medium->grid_columns, begin + at % medium->grid_columns};
    }
    ++i;
  }
}

}  // namespace weir::sched
