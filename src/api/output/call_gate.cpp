#include "api/output/call_gate.h"

#include <algorithm>

#include "base/json.h"

namespace weir::api::output {

namespace {

// The arguments as a JSON object; some models write the object's text as a string.
bool normalise(std::string& arguments) {
  if (arguments.empty()) arguments = "{}";
  const Result<JsonDoc> doc = JsonDoc::parse(arguments);
  if (!doc) return false;
  if (doc->root().is_object()) return true;
  std::string_view text;
  if (doc->root().get(text) != simdjson::SUCCESS) return false;
  const Result<JsonDoc> inner = JsonDoc::parse(text);
  if (!inner || !inner->root().is_object()) return false;
  arguments = std::string(text);
  return true;
}

}  // namespace

bool CallGate::take(char byte) {
  if (shown_) return true;  // The text is on its way.
  if (held_.size() + arguments_.size() >= kHeldBytesMax) return false;
  held_ += byte;
  return true;
}

void CallGate::give_back() {
  if (!shown_ && !held_.empty()) held_.pop_back();
}

const CallableFunction* CallGate::function(std::string_view name) const {
  const auto found = std::ranges::find(options_.functions, name, &CallableFunction::name);
  return found == options_.functions.end() ? nullptr : &*found;
}

bool CallGate::begin(std::string_view name, std::string_view id, Pieces& out) {
  if (begun_ || !may_begin() || !function(name)) return false;
  begun_ = true;
  name_ = name;
  id_ = id;
  if (options_.calls_bound) {
    out.begin_call(name_, id_);
    out.add(PieceKind::kCallArguments, arguments_);
    ++calls_;
    shown_ = true;
    held_.clear();
    arguments_.clear();
  }
  return true;
}

void CallGate::arguments(std::string_view json, Pieces& out) {
  if (shown_)
    out.add(PieceKind::kCallArguments, json);
  else
    arguments_ += json;
}

bool CallGate::end(Pieces& out) {
  if (!begun_) return false;
  if (!shown_) {
    if (!normalise(arguments_)) return false;
    out.begin_call(name_, id_);
    out.add(PieceKind::kCallArguments, arguments_);
    ++calls_;
  }
  out.end_call();
  begun_ = shown_ = false;
  held_.clear();
  arguments_.clear();
  return true;
}

void CallGate::close(Pieces& out, bool failed) {
  if (failed) out.add(PieceKind::kContent, held_);
  begun_ = shown_ = false;
  held_.clear();
  arguments_.clear();
}

}  // namespace weir::api::output
