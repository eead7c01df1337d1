#include "fit/headers.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "card/gguf.h"
#include "card/safetensors.h"

namespace weir::fit {

namespace {

// What is asked for at first. Headers have about 100 bytes a tensor: 2,600 tensors, more than all
// but the shards of the largest mixtures have. A GGUF file has its vocabulary before its tensors.
constexpr uint64_t kFirstBytes = 256 << 10;
constexpr uint64_t kFirstBytesGguf = 4 << 20;
// The largest GGUF header published has about 15 MiB.
constexpr uint64_t kHeadBytesMax = 100'000'000;
// Of all files of a model: the largest mixtures published have 70 MB of headers.
constexpr uint64_t kAllHeadsBytesMax = 400'000'000;
constexpr size_t kWeightFilesMax = 4096;
// So many parts at once: what was asked for and is no header is in memory as long.
constexpr size_t kRangesMax = 32;

bool is_weights(std::string_view path) {
  return path.ends_with(".safetensors") || path.ends_with(".gguf");
}
bool is_gguf_file(std::string_view path) { return path.ends_with(".gguf"); }

// Vocabularies and licences say nothing of memory, and are megabytes. That they are there counts.
bool is_settings(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kVocabularies[] = {"tokenizer.json", "vocab.json", "tekken.json"};
  return (name.ends_with(".json") || name.ends_with(".jinja")) &&
         std::ranges::find(kVocabularies, name) == std::end(kVocabularies);
}

// How many bytes the header has, as far as can be seen: more than there are, where it goes on. Of
// what is no header no more is asked for: its reader says what is wrong with it.
uint64_t head_bytes(const card::ModelFiles::Beginning& file) {
  const uint64_t have = file.head.size();
  if (is_gguf_file(file.name)) {
    const Result<std::optional<uint64_t>> whole =
        card::gguf_head_bytes(file.name, std::as_bytes(std::span(file.head)));
    return whole ? whole->value_or(2 * have) : have;
  }
  if (have < sizeof(uint64_t)) return have;
  return card::safetensors_head_bytes(file.name, file.head).value_or(have);
}

class HeaderFetch {
 public:
  HeaderFetch(hub::Client& client, const hub::HubModel& model) : client_(client), model_(model) {
    for (const hub::TreeFile& file : model.files)
      files_.push_back({.name = file.path, .head = "", .bytes = static_cast<uint64_t>(file.size)});
  }

  Result<card::ModelFiles> run() {
    std::vector<Wanted> wanted;
    for (size_t i = 0; i < files_.size(); ++i) {
      const std::string& name = files_[i].name;
      if (is_weights(name)) {
        wanted.push_back({i, is_gguf_file(name) ? kFirstBytesGguf : kFirstBytes});
      } else if (is_settings(name)) {
        WEIR_ASSIGN(files_[i].head, client_.fetch_file(model_, model_.files[i],
                                                       card::ModelFiles::kSettingsBytesMax));
      }
    }
    if (wanted.size() > kWeightFilesMax)
      return wrong("at most " + std::to_string(kWeightFilesMax) + " files of weights",
                   std::to_string(wanted.size()));
    for (size_t begin = 0; begin < wanted.size(); begin += kRangesMax) {
      const auto end =
          wanted.begin() + static_cast<ptrdiff_t>(std::min(begin + kRangesMax, wanted.size()));
      std::vector<Wanted> some(wanted.begin() + static_cast<ptrdiff_t>(begin), end);
      while (!some.empty()) {
        WEIR_ASSIGN(some, fetch(some));
      }
    }
    return card::ModelFiles::beginnings(model_.name.text(), std::move(files_));
  }

 private:
  // A file, and how much of it there shall be.
  struct Wanted {
    size_t file = 0;
    uint64_t bytes = 0;
  };

  tl::unexpected<Error> wrong(const std::string& expected, const std::string& found) const {
    return fail(ErrorCode::kConfig,
                model_.name.text() + ": expected " + expected + ", found " + found);
  }

  // Those whose headers go on; the others have their headers then, and nothing else.
  Result<std::vector<Wanted>> fetch(std::span<const Wanted> wanted) {
    std::vector<hub::FileRange> ranges;
    for (const Wanted& one : wanted)
      ranges.push_back(
          {&model_.files[one.file],
           {files_[one.file].head.size(), std::min(one.bytes, files_[one.file].bytes)}});
    WEIR_ASSIGN(const std::vector<std::string> parts, client_.fetch_ranges(model_, ranges));
    std::vector<Wanted> more;
    for (size_t i = 0; i < wanted.size(); ++i) {
      card::ModelFiles::Beginning& file = files_[wanted[i].file];
      file.head += parts[i];
      const uint64_t whole = head_bytes(file);
      if (whole > kHeadBytesMax)
        return wrong(
            "a header of at most " + std::to_string(kHeadBytesMax) + " bytes in " + file.name,
            std::to_string(whole));
      if (whole > file.head.size() && file.head.size() < file.bytes) {
        if (parts[i].size() < ranges[i].range.bytes())
          return wrong(std::to_string(ranges[i].range.bytes()) + " bytes of " + file.name,
                       std::to_string(parts[i].size()));
        more.push_back({wanted[i].file, whole});
        continue;
      }
      file.head.resize(std::min<uint64_t>(whole, file.head.size()));
      file.head.shrink_to_fit();
      all_bytes_ += file.head.size();
    }
    if (all_bytes_ > kAllHeadsBytesMax)
      return wrong("headers of at most " + std::to_string(kAllHeadsBytesMax) + " bytes in all",
                   "more");
    return more;
  }

  hub::Client& client_;
  const hub::HubModel& model_;
  std::vector<card::ModelFiles::Beginning> files_;
  uint64_t all_bytes_ = 0;
};

}  // namespace

Result<card::ModelFiles> fetch_headers(hub::Client& client, const hub::HubModel& model) {
  return HeaderFetch(client, model).run();
}

}  // namespace weir::fit
