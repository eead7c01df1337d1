#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace weir::text {

namespace {

// More than any token and most stop strings, so that nothing grows while text arrives.
constexpr size_t kReserveBytes = 256;

}  // namespace

Detokenizer::Detokenizer(const Tokenizer& tokenizer, Options options)
    : tokenizer_(tokenizer), options_(std::move(options)) {
  if (options_.strip_leading_space) leading_spaces_ = tokenizer.leading_spaces_stripped();
  size_t held_max = 0;
  for (const std::string& text : options_.stop) {
    CHECK(!text.empty());
    Stop stop;
    append_valid_utf8(stop.text, text);  // As the text that it is compared with.
    stop.borders.assign(stop.text.size(), 0);
    for (size_t i = 1; i < stop.text.size(); ++i) {
      uint32_t border = stop.borders[i - 1];
      while (border > 0 && stop.text[border] != stop.text[i]) border = stop.borders[border - 1];
      stop.borders[i] = border + (stop.text[border] == stop.text[i] ? 1 : 0);
    }
    held_max = std::max(held_max, stop.text.size());
    stops_.push_back(std::move(stop));
  }
  bytes_.reserve(kReserveBytes);
  pending_.reserve(held_max + kReserveBytes);
  out_.reserve(held_max + kReserveBytes);
}

std::string_view Detokenizer::push(int32_t token) {
  out_.clear();
  token_begin_ = {taken_.bytes + std::ssize(bytes_), taken_.characters};
  if (stopped_ || (options_.skip_special && tokenizer_.is_special(token) &&
                   !std::ranges::binary_search(options_.keep_special, token)))
    return out_;
  const std::string_view piece = drop_leading_spaces(tokenizer_.piece(token));
  if (bytes_.empty() && stops_.empty() && valid_utf8(piece)) {
    count_text(piece);
    return piece;  // As it is: nothing to wait for, nothing to look for.
  }
  take_bytes(piece);
  return release();
}

std::string_view Detokenizer::finish() {
  out_.clear();
  if (stopped_) return out_;
  if (!bytes_.empty()) {
    bytes_.clear();
    take_text(kReplacementCharacter);
  }
  if (!stopped_) {
    for (Stop& stop : stops_) stop.matched = 0;  // No more text: nothing can be a stop string.
  }
  return release();
}

std::string_view Detokenizer::drop_leading_spaces(std::string_view piece) {
  if (leading_spaces_ == 0 || piece.empty()) return piece;
  size_t spaces = piece.find_first_not_of(' ');
  if (spaces == std::string_view::npos) spaces = piece.size();
  piece.remove_prefix(std::min(spaces, leading_spaces_));
  leading_spaces_ = 0;  // Only the first token's.
  return piece;
}

// Whole characters go on as text; an incomplete one waits for the next token.
void Detokenizer::take_bytes(std::string_view piece) {
  const size_t held = bytes_.size();
  bytes_ += piece;
  size_t done = 0, valid = 0;  // bytes_[valid, done): valid text not yet taken.
  while (done < bytes_.size() && !stopped_) {
    const Utf8Front front = utf8_front(std::string_view(bytes_).substr(done));
    if (front.kind == Utf8Front::Kind::kIncomplete) break;
    if (front.kind == Utf8Front::Kind::kInvalid) {
      take_text(std::string_view(bytes_).substr(valid, done - valid));
      if (!stopped_) take_text(kReplacementCharacter);
      valid = done + front.bytes;
      if (valid == held) token_begin_ = taken_;  // What was held is no part of this token's text.
    }
    done += front.bytes;
  }
  if (!stopped_) take_text(std::string_view(bytes_).substr(valid, done - valid));
  bytes_.erase(0, done);
}

void Detokenizer::count_text(std::string_view text) {
  taken_.bytes += std::ssize(text);
  taken_.characters += std::ranges::count_if(
      text, [](char byte) { return (static_cast<uint8_t>(byte) & 0xc0) != 0x80; });
}

void Detokenizer::take_text(std::string_view text) {
  count_text(text);
  if (stops_.empty()) {
    pending_ += text;
    return;
  }
  for (const char byte : text) {
    pending_ += byte;
    if (advance(byte)) return;
  }
}

// True, with pending_ cut, if a stop string ends with this byte.
bool Detokenizer::advance(char byte) {
  const Stop* met = nullptr;
  for (Stop& stop : stops_) {
    while (stop.matched > 0 && stop.text[stop.matched] != byte)
      stop.matched = stop.borders[stop.matched - 1];
    if (stop.text[stop.matched] == byte) ++stop.matched;
    if (stop.matched == stop.text.size() && (!met || stop.text.size() > met->text.size()))
      met = &stop;
  }
  if (!met) return false;
  stopped_ = true;
  stop_string_ = met->text;
  if (!options_.include_stop) pending_.resize(pending_.size() - met->text.size());
  return true;
}

// What can no longer be the beginning of a stop string.
std::string_view Detokenizer::release() {
  size_t held = 0;
  if (!stopped_) {
    for (const Stop& stop : stops_) held = std::max<size_t>(held, stop.matched);
  }
  out_.assign(pending_, 0, pending_.size() - held);
  pending_.erase(0, pending_.size() - held);
  return out_;
}

}  // namespace weir::text
