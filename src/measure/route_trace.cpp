// Reading and writing of route traces.
#include "measure/route_trace.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include "base/check.h"

namespace weir::measure {
namespace {

constexpr std::string_view kMagic = "weir-route-trace";
constexpr int32_t kVersion = 1;
constexpr std::string_view kKinds = "dpa";  // By RouteKind.

// Takes the next word off the line; empty at its end.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

bool read_number(std::string_view& line, int32_t* value) {
  const std::string_view word = next_word(line);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size();
}

std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool read_header(std::string_view line, std::array<int32_t, 3>* shape) {
  int32_t version = 0;
  if (next_word(line) != kMagic || !read_number(line, &version) || version != kVersion)
    return false;
  for (int32_t& number : *shape)
    if (!read_number(line, &number)) return false;
  const auto [layers, experts, top_k] = *shape;
  return next_word(line).empty() && layers > 0 && layers <= RouteTrace::kLayersMax && experts > 0 &&
         experts <= RouteTrace::kExpertsMax && top_k > 0 && top_k <= experts;
}

void append_number(std::string& out, int32_t value) {
  std::array<char, 12> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out += ' ';
  out.append(digits.data(), end);
}

}  // namespace

RouteTrace::RouteTrace(int32_t layers, int32_t experts, int32_t top_k)
    : layers_(layers), experts_(experts), top_k_(top_k), seen_(static_cast<size_t>(experts), 0) {}

// What is wrong with a row; empty: nothing.
std::string RouteTrace::problem(RouteKind kind, int32_t step, int32_t layer, int32_t sequence,
                                std::span<const int32_t> experts) {
  const auto is = [](const char* what, int64_t found, int64_t end) {
    return std::string("expected ") + what + " below " + std::to_string(end) + ", found " +
           std::to_string(found);
  };
  if (layer < 0 || layer >= layers_) return is("a layer", layer, layers_);
  if (sequence < 0 || sequence >= kSequencesMax) return is("a sequence", sequence, kSequencesMax);
  const int32_t step_before = rows_.empty() ? 0 : rows_.back().step;
  if (step < step_before || (step == step_before && !rows_.empty() && layer < rows_.back().layer))
    return "expected a step and layer not before those of the last line";
  const size_t count = static_cast<size_t>(kind == RouteKind::kLookahead ? experts_ : top_k_);
  if (experts.size() > count || (kind != RouteKind::kLookahead && experts.size() < count))
    return "expected " + std::to_string(count) + " experts, found " +
           std::to_string(experts.size());
  ++checked_;
  for (const int32_t expert : experts) {
    if (expert < 0 || expert >= experts_) return is("an expert", expert, experts_);
    uint64_t& seen = seen_[static_cast<size_t>(expert)];
    if (seen == checked_) return "found expert " + std::to_string(expert) + " twice";
    seen = checked_;
  }
  return {};
}

void RouteTrace::add(RouteKind kind, int32_t step, int32_t layer, int32_t sequence,
                     std::span<const int32_t> experts) {
  CHECK(problem(kind, step, layer, sequence, experts).empty());
  rows_.push_back(
      {step, layer, sequence, kind, static_cast<int32_t>(experts.size()), list_.size()});
  list_.insert(list_.end(), experts.begin(), experts.end());
}

Result<RouteTrace> RouteTrace::parse(std::string_view text, const std::string& name) {
  const auto error = [&](int64_t line, const std::string& what) {
    return fail(ErrorCode::kInvalid, name + ":" + std::to_string(line) + ": " + what);
  };
  std::array<int32_t, 3> shape{};
  if (!read_header(next_line(text), &shape))
    return error(1, "expected `weir-route-trace 1 LAYERS EXPERTS TOP_K`");
  RouteTrace trace(shape[0], shape[1], shape[2]);
  std::vector<int32_t> experts;
  for (int64_t number = 2; !text.empty(); ++number) {
    std::string_view line = next_line(text);
    if (line.empty()) continue;
    const std::string_view word = next_word(line);
    const size_t kind = word.size() == 1 ? kKinds.find(word[0]) : std::string_view::npos;
    if (kind == std::string_view::npos) return error(number, "expected d, p or a");
    int32_t step = 0, layer = 0, sequence = 0;
    if (!read_number(line, &step) || !read_number(line, &layer) || !read_number(line, &sequence))
      return error(number, "expected step, layer and sequence");
    experts.clear();
    while (!line.empty()) {
      // One more than a layer has is enough to be refused.
      if (experts.size() > static_cast<size_t>(shape[1])) break;
      if (!read_number(line, &experts.emplace_back())) return error(number, "expected an expert");
      if (line.find_first_not_of(' ') == std::string_view::npos) break;
    }
    const std::string what =
        trace.problem(static_cast<RouteKind>(kind), step, layer, sequence, experts);
    if (!what.empty()) return error(number, what);
    trace.rows_.push_back({step, layer, sequence, static_cast<RouteKind>(kind),
                           static_cast<int32_t>(experts.size()), trace.list_.size()});
    trace.list_.insert(trace.list_.end(), experts.begin(), experts.end());
  }
  return trace;
}

RouteTrace as_generated(const RouteTrace& trace) {
  RouteTrace out(trace.layers(), trace.experts(), trace.top_k());
  const std::span<const RouteRow> rows = trace.rows();
  int32_t step = 0;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    // The chunk's rows by layer: the n-th of each belong to one token.
    std::vector<std::vector<size_t>> layers(static_cast<size_t>(trace.layers()));
    for (; end < rows.size() && rows[end].step == rows[begin].step; ++end)
      if (rows[end].kind != RouteKind::kLookahead)
        layers[static_cast<size_t>(rows[end].layer)].push_back(end);
    for (size_t token = 0; token < layers[0].size(); ++token, ++step)
      for (const std::vector<size_t>& layer : layers)
        if (token < layer.size()) {
          const RouteRow& row = rows[layer[token]];
          out.add(RouteKind::kDecode, step, row.layer, row.sequence, trace.experts_of(row));
        }
    begin = end;
  }
  return out;
}

void append_header(std::string& out, int32_t layers, int32_t experts, int32_t top_k) {
  out += kMagic;
  for (const int32_t number : {kVersion, layers, experts, top_k}) append_number(out, number);
  out += '\n';
}

void append_row(std::string& out, RouteKind kind, int32_t step, int32_t layer, int32_t sequence,
                std::span<const int32_t> experts) {
  out += kKinds[static_cast<size_t>(kind)];
  for (const int32_t number : {step, layer, sequence}) append_number(out, number);
  for (const int32_t expert : experts) append_number(out, expert);
  out += '\n';
}

std::string to_text(const RouteTrace& trace) {
  std::string out;
  append_header(out, trace.layers(), trace.experts(), trace.top_k());
  for (const RouteRow& row : trace.rows())
    append_row(out, row.kind, row.step, row.layer, row.sequence, trace.experts_of(row));
  return out;
}

Result<void> write_file(const RouteTrace& trace, const std::string& path) {
  const std::string text = to_text(trace);
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (out) return {};
  return fail(ErrorCode::kIo,
              path + ": expected a file that can be written, found '" + std::strerror(errno) + "'");
}

}  // namespace weir::measure
