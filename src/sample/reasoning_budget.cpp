#include "sample/reasoning_budget.h"

namespace weir::sample {

namespace {

bool is_space(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

}  // namespace

ReasoningBudget::Marker::Marker(std::string_view text_in) : text(text_in), borders(text.size()) {
  for (uint32_t i = 1, border = 0; i < text.size(); ++i) {
    while (border > 0 && text[i] != text[border]) border = borders[border - 1];
    if (text[i] == text[border]) ++border;
    borders[i] = border;
  }
}

bool ReasoningBudget::Marker::advance(char byte) {
  while (matched > 0 && text[matched] != byte) matched = borders[matched - 1];
  if (text[matched] == byte) ++matched;
  if (matched < text.size()) return false;
  matched = 0;
  return true;
}

ReasoningBudget::ReasoningBudget(const ReasoningLimit* limit) : limit_(limit) {
  if (!limit_) return;
  open_ = Marker(limit_->open);
  close_ = Marker(limit_->close);
  state_ = State::kStart;
  if (limit_->begun) begin();
}

void ReasoningBudget::begin() {
  state_ = State::kReasoning;
  close_.matched = 0;
  if (tokens_ >= limit_->tokens_max) closing_ = limit_->closing;
}

void ReasoningBudget::take_byte(char byte) {
  switch (state_) {
    case State::kStart:
      if (open_.matched == 0 && is_space(byte)) return;
      if (open_.text[open_.matched] != byte && !limit_->anywhere) {
        state_ = State::kOutside;
        return;
      }
      if (open_.advance(byte)) begin();
      return;
    case State::kReasoning:
      if (close_.advance(byte)) {
        state_ = State::kOutside;
        open_.matched = 0;
      }
      return;
    case State::kOutside:
      if (limit_->anywhere && open_.advance(byte)) begin();
      return;
  }
}

void ReasoningBudget::add(int32_t token) {
  if (!limit_ || (state_ == State::kOutside && !limit_->anywhere && closing_.empty())) return;
  const bool closes = !closing_.empty();
  if (closes) closing_ = closing_.subspan(1);
  const bool reasoned = state_ == State::kReasoning;
  for (const char byte : limit_->text_of(token)) take_byte(byte);
  // However its tokens are spelled, the closing closes.
  if (closes && closing_.empty() && state_ == State::kReasoning) state_ = State::kOutside;
  if (closes || !reasoned || state_ != State::kReasoning) return;
  if (++tokens_ >= limit_->tokens_max && closing_.empty()) closing_ = limit_->closing;
}

void ReasoningBudget::give_up() {
  closing_ = {};
  limit_ = nullptr;
}

}  // namespace weir::sample
