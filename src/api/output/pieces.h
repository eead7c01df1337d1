// Pieces: what an output parser has found in the text so far, in order: text that the model
// thought, text that it says, calls of functions. Taken and cleared after every token.
//
// Threads: owned by one stream.
//
// Invariants:
// (1) Pieces of text beside one another have different kinds; so the pieces of an output do not
//     depend on where its tokens end, once those of all tokens are put together.
// (2) A call is kCallBegin, its kCallArguments, kCallEnd, with nothing in between. Only a call that
//     the output's end has cut lacks the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::api::output {

enum class PieceKind : uint8_t {
  kReasoning,
  kContent,
  kCallBegin,      // The function's name; and the call's id, if the model gave it one.
  kCallArguments,  // A part of a JSON object.
  kCallEnd,        // The arguments are complete.
};

struct Piece {
  PieceKind kind = PieceKind::kContent;
  std::string_view text;
  std::string_view id;
};

class Pieces {
 public:
  // Text, reasoning or arguments.
  void add(PieceKind kind, std::string_view text) {
    if (text.empty()) return;
    if (entries_.empty() || entries_.back().kind != kind)
      entries_.push_back({kind, text_.size(), text_.size()});
    text_ += text;
    entries_.back().end = text_.size();
  }
  void begin_call(std::string_view name, std::string_view id) {
    entries_.push_back({PieceKind::kCallBegin, text_.size(), text_.size() + name.size()});
    text_.append(name).append(id);
    entries_.back().id_end = text_.size();
  }
  void end_call() { entries_.push_back({PieceKind::kCallEnd, text_.size(), text_.size()}); }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  Piece operator[](size_t index) const {
    const Entry& entry = entries_[index];
    const std::string_view text = text_;
    Piece piece{entry.kind, text.substr(entry.begin, entry.end - entry.begin), {}};
    if (entry.id_end > entry.end) piece.id = text.substr(entry.end, entry.id_end - entry.end);
    return piece;
  }
  void clear() {
    text_.clear();
    entries_.clear();
  }

 private:
  struct Entry {
    PieceKind kind = PieceKind::kContent;
    size_t begin = 0, end = 0;
    size_t id_end = 0;
  };
  std::string text_;
  std::vector<Entry> entries_;
};

}  // namespace weir::api::output
