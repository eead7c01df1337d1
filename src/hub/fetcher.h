// Fetcher: pieces of a model's files, several under way at once. A piece finds the link to its
// file, follows it, and goes on at the byte where it was cut, with a new link where the old one has
// expired.
//
// Threads: the Client's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/client.h"
#include "hub/transport.h"

namespace weir::hub {

class Fetcher {
 public:
  // Where bytes go. `key` is what add() was given. Bytes of a piece come in order.
  class Sink {
   public:
    virtual ~Sink() = default;
    // An error ends all that is under way.
    virtual Result<void> take(size_t key, uint64_t offset, std::string_view bytes) = 0;
  };

  struct Piece {
    size_t key = 0;
    const TreeFile* file = nullptr;  // Outlives it.
    ByteRange range;
    // Take an answer that has the whole file instead of the range, and pass over what is before
    // it. Without: such a file is told by ignoring_ranges().
    bool from_whole = false;
  };

  // All outlive it.
  Fetcher(Client& client, const HubModel& model, Sink& sink);
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // REQUIRES: the range is not empty, and within the file.
  void add(const Piece& piece);
  size_t open() const { return pieces_.size(); }
  // Works until something has come, at most for `time`. The pieces that are whole now.
  Result<std::vector<Piece>> run(std::chrono::milliseconds time);
  // Ends all pieces of `key`.
  void drop(size_t key);
  // Keys of files whose server sends all of them whatever range is asked for. Their pieces stand
  // still until they are dropped.
  std::vector<size_t> ignoring_ranges() const;
  // Why nothing comes: every piece waits for its next try. Empty: something may come.
  std::string waiting() const;

 private:
  class OpenPiece;

  Result<void> advance(OpenPiece& piece);
  Result<void> ask_for_link(OpenPiece& piece);
  Result<void> take_link(OpenPiece& piece);
  Result<void> check_link(const OpenPiece& piece) const;
  void fetch(OpenPiece& piece);
  Result<void> take_end(OpenPiece& piece);
  Result<void> follow(OpenPiece& piece, const Url& from);
  Result<void> try_again(OpenPiece& piece, const std::string& why, bool at_once = false);

  Client& client_;
  const HubModel& model_;
  Sink& sink_;
  std::vector<std::unique_ptr<OpenPiece>> pieces_;
};

}  // namespace weir::hub
