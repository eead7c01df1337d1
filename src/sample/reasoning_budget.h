// ReasoningBudget: counts the tokens of an answer's reasoning and says what must follow when there
// have been as many as are allowed: the tokens that close it.
//
// Where reasoning begins and ends is seen in the text of the tokens, however the markers are
// spelled. Tokens that complete a marker are none of the reasoning's; those before, which may have
// been a marker's beginning, are.
//
// Threads: a ReasoningLimit is immutable and shared by the choices of a request; a ReasoningBudget
// belongs to one Sampler.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::sample {

struct ReasoningLimit {
  int32_t tokens_max = 0;
  std::string open, close;  // Markers; not empty.
  bool begun = false;       // The prompt has opened it.
  // It may begin anywhere and more than once; else only where the output begins.
  bool anywhere = false;
  std::vector<int32_t> closing;  // Not empty: a message, perhaps, and the closing marker.
  // The bytes of a token; valid for as long as tokens are sampled.
  std::function<std::string_view(int32_t)> text_of;
};

class ReasoningBudget {
 public:
  // Null: nothing is bounded. `limit` outlives it.
  explicit ReasoningBudget(const ReasoningLimit* limit);

  // The output's next token, sampled or forced.
  void add(int32_t token);

  // Tokens that must come next, in this order; each is add()ed when it has come.
  std::span<const int32_t> closing() const { return closing_; }
  // What must come next cannot come: the reasoning goes on.
  void give_up();

 private:
  enum class State : uint8_t { kStart, kReasoning, kOutside };

  // How much of a text the output so far ends with (Knuth, Morris, Pratt).
  struct Marker {
    explicit Marker(std::string_view text_in = {});
    bool advance(char byte);  // True when all of it has come.

    std::string_view text;
    std::vector<uint32_t> borders;
    uint32_t matched = 0;
  };

  void take_byte(char byte);
  void begin();

  const ReasoningLimit* limit_;
  State state_ = State::kOutside;
  Marker open_, close_;
  int32_t tokens_ = 0;  // Of the reasoning, so far.
  std::span<const int32_t> closing_;
};

}  // namespace weir::sample
