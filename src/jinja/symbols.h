// Symbols: what one frame of a template (a body with variables of its own) knows about names, and
// in which slot of which function each lives. jinja2.idtracking's rules.
//
// Threads: owned by one parse. Names point into the template.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::jinja {

// What is a function in Python: has its own scope when it runs.
struct Function {
  Function* parent = nullptr;
  int depth = 0;
  uint32_t slot_count = 0;
  std::map<std::pair<int, std::string_view>, uint32_t> slots = {};  // By frame level and name.

  uint32_t slot(int level, std::string_view name);
};

struct Place {
  Function* function = nullptr;
  uint32_t slot = 0;
};

// How a slot gets its value when its frame is entered.
struct Source {
  enum class Kind : uint8_t { kParameter, kResolve, kAlias, kUndefined };
  Kind kind = Kind::kUndefined;
  Place from;             // kAlias: the variable of an outer frame.
  std::string_view name;  // kResolve: a variable of the rendering.
};

struct NameState {
  Place place;
  Source source;
  bool stored = false;  // Something in this frame assigns it.
};

class Symbols {
 public:
  // Frames inside one another have growing levels, which keep their slots apart.
  Symbols(const Symbols* parent, Function* function, int level)
      : parent_(parent), function_(function), level_(level) {}

  int level() const { return level_; }
  const std::unordered_map<std::string_view, NameState>& names() const { return names_; }
  // In this frame or one around it; null if none mentions the name.
  const Place* find(std::string_view name) const;

  // The name is used, is assigned, is a parameter.
  void load(std::string_view name);
  void store(std::string_view name);
  Place declare_parameter(std::string_view name);

  // The branches of an if are analysed one by one, each from the same start: `analyse` changes the
  // frame, branch() takes that back and returns it.
  using Changes = std::vector<std::pair<std::string_view, NameState>>;
  template <class Analyse>
  Changes branch(Analyse analyse) {
    Log log;
    Log* const outer = std::exchange(log_, &log);
    analyse();
    log_ = outer;
    return take_back(log);
  }
  // Then all branches are put together. A name that only some of them store keeps its former
  // meaning in the others.
  void merge(const std::vector<Changes>& branches);

 private:
  // Former states, in the order of the changes.
  using Log = std::vector<std::pair<std::string_view, std::optional<NameState>>>;

  Changes take_back(const Log& log);
  void set(std::string_view name, const NameState& state);
  Place place(std::string_view name) { return {function_, function_->slot(level_, name)}; }
  // What the name means at the start of this frame, unless it is a parameter.
  Source outer_source(std::string_view name, Source::Kind otherwise) const;
  bool stored(std::string_view name) const;

  const Symbols* parent_;
  Function* function_;
  int level_;
  std::unordered_map<std::string_view, NameState> names_;
  Log* log_ = nullptr;
};

}  // namespace weir::jinja
