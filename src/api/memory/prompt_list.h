// PromptList: the token ids of many prompts that wait for the engine. What a prompt has in common
// with the beginning of the first one is kept once, so that documents that are judged by one query
// take no more memory than the query and they themselves.
//
// Threads: its owner's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace weir::api {

class PromptList {
 public:
  void add(std::span<const int32_t> prompt) {
    if (entries_.empty()) first_.assign(prompt.begin(), prompt.end());
    const auto shared =
        static_cast<size_t>(std::ranges::mismatch(prompt, first_).in1 - prompt.begin());
    const std::span<const int32_t> rest = prompt.subspan(shared);
    entries_.push_back({prompt.size(), {rest.begin(), rest.end()}});
    tokens_ += prompt.size();
    longest_ = std::max(longest_, prompt.size());
    bytes_ +=
        sizeof(Entry) + (entries_.size() == 1 ? prompt.size() : rest.size()) * sizeof(int32_t);
  }

  size_t size() const { return entries_.size(); }
  size_t tokens() const { return tokens_; }  // Of all.
  size_t tokens(size_t index) const { return entries_[index].tokens; }
  size_t longest() const { return longest_; }
  // That the prompts take, before any is dropped.
  size_t memory_bytes() const { return bytes_; }

  // That so many without anything in common take.
  static constexpr size_t bytes_of(size_t prompts, size_t tokens) {
    return prompts * sizeof(Entry) + tokens * sizeof(int32_t);
  }

  // REQUIRES: it was not dropped.
  std::vector<int32_t> at(size_t index) const {
    const Entry& entry = entries_[index];
    std::vector<int32_t> prompt;
    prompt.reserve(entry.tokens);
    const auto shared = static_cast<std::ptrdiff_t>(entry.tokens - entry.rest.size());
    prompt.assign(first_.begin(), first_.begin() + shared);
    prompt.insert(prompt.end(), entry.rest.begin(), entry.rest.end());
    return prompt;
  }
  // Frees what this prompt alone has; its length stays.
  void drop(size_t index) { std::vector<int32_t>().swap(entries_[index].rest); }

 private:
  struct Entry {
    size_t tokens = 0;
    std::vector<int32_t> rest;  // From the first token on that differs from first_.
  };

  std::vector<int32_t> first_;
  std::vector<Entry> entries_;
  size_t tokens_ = 0, longest_ = 0, bytes_ = 0;
};

}  // namespace weir::api
