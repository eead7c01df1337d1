// Run: what a part of the suite is given: the options, what is measured, servers to ask, and where
// its figures go.
//
// Threads: one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "program/options.h"
#include "suite/report.h"
#include "suite/server.h"
#include "suite/words.h"

namespace weir::suite {

// What is known of the model before anything is measured.
struct ModelFacts {
  int32_t context = 0;    // Positions of one sequence, as the server has it.
  int64_t kv_tokens = 0;  // Of all sequences together; 0: not known.
};

class Run {
 public:
  struct Sink {
    std::function<void(const Figure&)> on_figure;  // As it is found.
    std::function<void(const std::string&)> on_progress;
  };

  // Finds out what the model is, and asks the server that --url names whether it is there.
  static Result<Run> begin(const Options& options, Sink sink);

  const Options& options() const { return options_; }
  bool quick() const { return options_.quick; }
  // The model and servers of the suite's own are at hand; else there is an address and no more.
  bool inside() const { return options_.url.empty(); }
  const ModelFacts& model() const { return model_; }
  const Setting& setting() const { return setting_; }

  // --- what parts find ---
  // The part's name is filled in.
  void add(Figure figure);
  // A figure that cannot be had here, and why.
  void skip(std::string name, std::string why);
  // What only the inside shows: true if it can be measured; else it is skipped by name.
  bool needs_inside(const std::string& name);
  // The same of a sequence of so many tokens.
  bool needs_context(const std::string& name, int64_t tokens);
  // What is going on, for who waits.
  void say(const std::string& text) { sink_.on_progress(text); }

  // --- whom parts ask ---
  // The server that parts share: the one at --url, or one that is started by the first who asks.
  Result<const Endpoint*> endpoint();
  // Without --url: the process of that server.
  const Server* server() const { return server_ ? &*server_ : nullptr; }
  // Before a part that needs the machine for itself, or has servers of its own.
  Result<void> stop_server();
  // The server's name for its model; after endpoint().
  const std::string& model_id() const { return model_id_; }
  // A request to it.
  Request completion(Completion of) const;
  // How many tokens a word of words.h has, asked once of the server that is shared.
  Result<double> tokens_per_word();

  // --- for the command ---
  void begin_part(std::string_view name) { part_ = name; }
  // The part could not be measured.
  void fail_part(const Error& error);
  std::vector<Figure> take_figures() { return std::move(figures_); }

 private:
  Run(const Options& options, Sink sink) : options_(options), sink_(std::move(sink)) {}
  Result<void> look_inside();
  Result<void> look_at_url();

  Options options_;
  Sink sink_;
  Setting setting_;
  ModelFacts model_;
  std::string model_id_;
  std::string part_;
  std::vector<Figure> figures_;
  std::optional<Endpoint> url_;
  std::optional<Server> server_;
  std::optional<double> tokens_per_word_;
};

}  // namespace weir::suite
