#include "card/gguf_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace weir::card {

namespace fs = std::filesystem;

namespace {

// "NAME-00001-of-00003.gguf": what stands before the number, and the number of parts; 0: no part.
std::pair<std::string, int> split_name(const std::string& file) {
  constexpr std::string_view kForm = "-00001-of-00003.gguf";
  if (file.size() <= kForm.size()) return {file, 0};
  const std::string_view end = std::string_view(file).substr(file.size() - kForm.size());
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = kForm[i] >= '0' && kForm[i] <= '9';
    if (digit ? end[i] < '0' || end[i] > '9' : end[i] != kForm[i]) return {file, 0};
  }
  return {file.substr(0, file.size() - kForm.size()), std::stoi(std::string(end.substr(10, 5)))};
}

std::string part_name(const std::string& stem, int part, int count) {
  const auto five = [](int number) {
    std::string digits = std::to_string(number);
    return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
  };
  return stem + "-" + five(part) + "-of-" + five(count) + ".gguf";
}

}  // namespace

Result<std::vector<std::string>> gguf_parts(const std::string& folder, const std::string& file) {
  const auto [stem, count] = split_name(file);
  if (count <= 1) return std::vector<std::string>{file};
  std::vector<std::string> parts;
  std::error_code error;
  for (int part = 1; part <= count; ++part) {
    parts.push_back(part_name(stem, part, count));
    if (!fs::exists(folder + "/" + parts.back(), error))
      return fail(ErrorCode::kConfig, folder + "/" + file + ": expected all " +
                                          std::to_string(count) + " parts of the model beside " +
                                          "it; " + parts.back() + " is not there");
  }
  return parts;
}

Result<std::vector<std::string>> find_gguf(const std::string& folder) {
  std::vector<std::string> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".gguf" || name.starts_with("mmproj")) continue;
    const auto [stem, count] = split_name(name);
    // Of parts the first stands for all.
    if (count <= 1 || name == part_name(stem, 1, count)) models.push_back(name);
  }
  if (models.empty()) return models;
  std::ranges::sort(models);
  if (models.size() == 1) return gguf_parts(folder, models[0]);
  std::string names;
  for (const std::string& name : models) names += (names.empty() ? "" : ", ") + name;
  return fail(ErrorCode::kConfig, folder + ": expected one GGUF model in a folder without " +
                                      "config.json, found " + names + ": give one of the files");
}

}  // namespace weir::card
