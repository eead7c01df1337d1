// DraftKind: the ways to guess next tokens, by which figures are told apart.
//
// Threads: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::sched {

enum class DraftKind : uint8_t {
  kPrediction,  // A text that the client expects.
  kNgram,       // Copies of the sequence's own text,
  kAnswers,     // or of earlier answers.
  kDraft,       // A small model,
  kMtp,         // or a head of the model's own,
  kEagle3,
  kDflash,
};

inline constexpr std::array<std::string_view, 7> kDraftKindNames = {
    "prediction", "ngram", "answers", "draft", "mtp", "eagle3", "dflash"};

inline constexpr size_t index_of(DraftKind kind) { return static_cast<size_t>(kind); }
inline constexpr std::string_view name_of(DraftKind kind) {
  return kDraftKindNames[index_of(kind)];
}

}  // namespace weir::sched
