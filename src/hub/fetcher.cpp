#include "hub/fetcher.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "base/concat.h"

namespace weir::hub {

namespace {

// A repository that was renamed a few times, or a CDN before another.
constexpr int kHopsMax = 5;

bool is_redirect(int status) {
  constexpr std::array kStatuses = {301, 302, 303, 307, 308};
  return std::ranges::find(kStatuses, status) != kStatuses.end();
}

// W/"abc" and "abc" are abc.
std::string_view bare_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    etag = etag.substr(1, etag.size() - 2);
  return etag;
}

// "bytes 0-99/1234": where it begins, and the whole (-1: it does not say).
struct ContentRange {
  uint64_t begin = 0;
  int64_t whole = -1;
};
std::optional<ContentRange> content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  ContentRange range;
  if (std::from_chars(text.data(), text.data() + text.size(), range.begin).ec != std::errc())
    return std::nullopt;
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view whole = text.substr(slash + 1);
    if (std::from_chars(whole.data(), whole.data() + whole.size(), range.whole).ec != std::errc())
      range.whole = -1;
  }
  return range;
}

}  // namespace

class Fetcher::OpenPiece final : public Receiver {
 public:
  enum class State : uint8_t { kWantsLink, kAsksForLink, kFetches, kWaits, kStandsStill };

  OpenPiece(const Piece& what, Sink& sink) : piece(what), at(what.range.begin), sink_(sink) {}

  void begin(State next) {
    state = next;
    head = {};
    ended = ignored = false;
    passed_over_ = 0;
  }
  bool whole() const { return at == piece.range.end; }

  bool on_head(const ResponseHead& answer) override {
    head = answer;
    if (state == State::kAsksForLink) return true;
    if (head.status == 200) {
      ignored = piece.range.begin > 0 || piece.range.end < file_bytes();
      if (!ignored || piece.from_whole) return true;
    } else if (head.status == 206) {
      const std::optional<ContentRange> range = content_range(head.header("content-range"));
      if (!range || (range->begin == at && (range->whole < 0 || range->whole == piece.file->size)))
        return true;
      failure = Error{ErrorCode::kInvalid,
                      concat({piece.file->path, ": expected the bytes from ", std::to_string(at),
                              " of ", std::to_string(piece.file->size), "; found '",
                              head.header("content-range").substr(0, 80), "'"})};
    }
    return end();
  }

  bool on_data(std::string_view bytes) override {
    if (state == State::kAsksForLink) return true;
    if (head.status == 200 && passed_over_ < at - taken_) {
      const size_t over = std::min<uint64_t>(bytes.size(), at - taken_ - passed_over_);
      passed_over_ += over;
      bytes.remove_prefix(over);
    }
    const size_t wanted = std::min<uint64_t>(bytes.size(), piece.range.end - at);
    if (wanted > 0) {
      tries.progress();
      hops = expired = 0;
      if (const Result<void> put = sink_.take(piece.key, at, bytes.substr(0, wanted)); !put) {
        failure = put.error();
        return end();
      }
      at += wanted;
      taken_ += wanted;
    }
    return bytes.size() == wanted || end();
  }

  void on_end(Ending how, const std::string& text) override {
    ended = true;
    ending = how;
    why = text;
  }

  const Piece piece;
  uint64_t at;  // The next byte.
  State state = State::kWantsLink;
  Transport::Id request = 0;
  std::chrono::steady_clock::time_point until;  // kWaits.
  ResponseHead head;
  bool ended = false;
  Ending ending = Ending::kWhole;
  std::string why;
  bool ignored = false;  // The answer has the whole file.
  std::optional<Error> failure;
  Tries tries;
  std::optional<Url> asked;          // For a link.
  std::optional<Client::Link> link;  // That is being fetched from.
  int hops = 0;
  int expired = 0;  // Links, without a byte between.

 private:
  uint64_t file_bytes() const { return static_cast<uint64_t>(piece.file->size); }
  // The receiver ends the request itself.
  bool end() {
    ended = true;
    ending = Ending::kWhole;
    return false;
  }

  Sink& sink_;
  uint64_t taken_ = 0;        // Of the answer at hand.
  uint64_t passed_over_ = 0;  // Of an answer that has the whole file.

  friend class Fetcher;
};

Fetcher::Fetcher(Client& client, const HubModel& model, Sink& sink)
    : client_(client), model_(model), sink_(sink) {}

Fetcher::~Fetcher() {
  for (const auto& piece : pieces_) client_.transport().cancel(piece->request);
}

void Fetcher::add(const Piece& piece) {
  CHECK(piece.range.begin < piece.range.end &&
        piece.range.end <= static_cast<uint64_t>(piece.file->size));
  pieces_.push_back(std::make_unique<OpenPiece>(piece, sink_));
}

void Fetcher::drop(size_t key) {
  for (const auto& piece : pieces_)
    if (piece->piece.key == key) client_.transport().cancel(piece->request);
  std::erase_if(pieces_, [&](const auto& piece) { return piece->piece.key == key; });
}

Result<std::vector<Fetcher::Piece>> Fetcher::run(std::chrono::milliseconds time) {
  for (size_t i = 0; i < pieces_.size(); ++i) WEIR_TRY(advance(*pieces_[i]));
  client_.transport().run(time);
  for (size_t i = 0; i < pieces_.size(); ++i) WEIR_TRY(advance(*pieces_[i]));
  std::vector<Piece> whole;
  for (const auto& piece : pieces_)
    if (piece->whole() && piece->ended) whole.push_back(piece->piece);
  std::erase_if(pieces_, [](const auto& piece) { return piece->whole() && piece->ended; });
  return whole;
}

std::vector<size_t> Fetcher::ignoring_ranges() const {
  std::vector<size_t> keys;
  for (const auto& piece : pieces_)
    if (piece->state == OpenPiece::State::kStandsStill) keys.push_back(piece->piece.key);
  return keys;
}

std::string Fetcher::waiting() const {
  std::string why;
  for (const auto& piece : pieces_) {
    if (piece->state != OpenPiece::State::kWaits) return {};
    why = piece->why;
  }
  return why;
}

Result<void> Fetcher::advance(OpenPiece& piece) {
  using State = OpenPiece::State;
  if (piece.state == State::kWaits && client_.transport().now() >= piece.until)
    piece.begin(State::kWantsLink);
  if (piece.state == State::kWantsLink) WEIR_TRY(ask_for_link(piece));
  if (piece.state == State::kAsksForLink && piece.ended) WEIR_TRY(take_link(piece));
  if (piece.state == State::kFetches && piece.ended && !piece.whole()) return take_end(piece);
  return {};
}

// One piece of a file asks for its link, the others wait for that.
Result<void> Fetcher::ask_for_link(OpenPiece& piece) {
  const std::string name = model_.tree.commit + "/" + piece.piece.file->path;
  if (client_.links().contains(name)) {
    fetch(piece);
    return {};
  }
  for (const auto& other : pieces_)
    if (other->piece.file->path == piece.piece.file->path &&
        other->state == OpenPiece::State::kAsksForLink)
      return {};
  if (!piece.asked) {
    WEIR_ASSIGN(piece.asked, Url::parse(concat({client_.settings().endpoint, "/", model_.name.id,
                                                "/resolve/", model_.tree.commit, "/",
                                                percent_encode(piece.piece.file->path, true)})));
  }
  piece.begin(OpenPiece::State::kAsksForLink);
  Request request = client_.request_for(*piece.asked);
  request.head_only = true;
  request.time = client_.settings().metadata_time;
  piece.request = client_.transport().start(request, piece);
  return {};
}

Result<void> Fetcher::take_link(OpenPiece& piece) {
  const std::string name = model_.tree.commit + "/" + piece.piece.file->path;
  const int status = piece.head.status;
  if (piece.ending == Ending::kRefused) return fail(ErrorCode::kForbidden, piece.why);
  if (piece.ending == Ending::kBroken) return try_again(piece, piece.why);
  if (is_redirect(status)) {
    WEIR_ASSIGN(Url to, piece.asked->join(std::string(piece.head.header("location"))));
    if (to.same_origin(client_.endpoint())) {  // The repository has another name now.
      if (++piece.hops > kHopsMax)
        return fail(ErrorCode::kInvalid, piece.piece.file->path + ": the hub redirects in circles");
      piece.asked = std::move(to);
      piece.begin(OpenPiece::State::kWantsLink);
      return ask_for_link(piece);
    }
    WEIR_TRY(check_link(piece));
    client_.links().insert_or_assign(name, Client::Link{std::move(to), false});
  } else if (status >= 200 && status < 300) {
    WEIR_TRY(check_link(piece));
    client_.links().insert_or_assign(name, Client::Link{*piece.asked, true});
  } else if (may_come_right(status)) {
    return try_again(piece, concat({"the hub answers ", std::to_string(status)}));
  } else {
    return tl::unexpected(error_of(piece.head, client_.asked_for(model_, *piece.piece.file)));
  }
  piece.hops = 0;
  fetch(piece);
  return {};
}

// What the hub says of the file itself must be what its list said.
Result<void> Fetcher::check_link(const OpenPiece& piece) const {
  const TreeFile& file = *piece.piece.file;
  const auto wrong = [&](const char* what, std::string_view expected, std::string_view found) {
    return fail(ErrorCode::kInvalid,
                concat({model_.name.id, "/", file.path, ": expected ", what, " ", expected,
                        ", as the list of files has it; found ", found.substr(0, 80)}));
  };
  const std::string_view commit = piece.head.header("x-repo-commit");
  if (!commit.empty() && commit != model_.tree.commit)
    return wrong("commit", model_.tree.commit, commit);
  std::string_view size = piece.head.header("x-linked-size");
  if (size.empty() && piece.head.status == 200) size = piece.head.header("content-length");
  if (!size.empty() && size != std::to_string(file.size))
    return wrong("bytes", std::to_string(file.size), size);
  std::string_view etag = bare_etag(piece.head.header("x-linked-etag"));
  if (etag.empty() && piece.head.status == 200) etag = bare_etag(piece.head.header("etag"));
  if (is_blob_name(etag) && etag != file.blob) return wrong("hash", file.blob, etag);
  return {};
}

void Fetcher::fetch(OpenPiece& piece) {
  piece.link = client_.links().at(model_.tree.commit + "/" + piece.piece.file->path);
  piece.begin(OpenPiece::State::kFetches);
  piece.taken_ = 0;
  Request request = client_.request_for(piece.link->url);
  // Always a range: bridges to Xet refuse the whole of very large files.
  request.range = ByteRange{piece.at, piece.piece.range.end};
  piece.request = client_.transport().start(request, piece);
}

Result<void> Fetcher::take_end(OpenPiece& piece) {
  if (piece.failure) return tl::unexpected(*piece.failure);
  const int status = piece.head.status;
  const Client::Link& link = *piece.link;
  if (piece.ending == Ending::kRefused) return fail(ErrorCode::kForbidden, piece.why);
  if (piece.ignored && !piece.piece.from_whole) {
    piece.state = OpenPiece::State::kStandsStill;
    return {};
  }
  if (piece.ending == Ending::kBroken) return try_again(piece, piece.why);
  if (status == 200 || status == 206)
    return try_again(piece, link.url.host + ": the answer ended too early");
  if (is_redirect(status)) return follow(piece, Url(link.url));
  // The link has expired: the first new one is asked for at once.
  const bool may_be_old = status == 401 || status == 403 || status == 404 || status == 410;
  if (status == 416 || (may_be_old && !link.at_hub)) {
    // Another piece may have found a new one already.
    const auto known = client_.links().find(model_.tree.commit + "/" + piece.piece.file->path);
    if (known != client_.links().end() && known->second.url.text == link.url.text)
      client_.links().erase(known);
    piece.asked.reset();
    return try_again(piece, concat({link.url.host, " answers ", std::to_string(status)}),
                     ++piece.expired == 1);
  }
  if (may_come_right(status))
    return try_again(piece, concat({link.url.host, " answers ", std::to_string(status)}));
  if (link.at_hub)
    return tl::unexpected(error_of(piece.head, client_.asked_for(model_, *piece.piece.file)));
  return fail(ErrorCode::kInvalid, concat({piece.piece.file->path, ": ", link.url.host, " answers ",
                                           std::to_string(status)}));
}

// Data that lie elsewhere by now. The token goes only where request_for() lets it.
Result<void> Fetcher::follow(OpenPiece& piece, const Url& from) {
  if (++piece.hops > kHopsMax)
    return fail(ErrorCode::kInvalid, piece.piece.file->path + ": the CDN redirects in circles");
  WEIR_ASSIGN(Url to, from.join(std::string(piece.head.header("location"))));
  const bool at_hub = to.same_origin(client_.endpoint());
  client_.links().insert_or_assign(model_.tree.commit + "/" + piece.piece.file->path,
                                   Client::Link{std::move(to), at_hub});
  fetch(piece);
  return {};
}

Result<void> Fetcher::try_again(OpenPiece& piece, const std::string& why, bool at_once) {
  if (at_once) {
    piece.begin(OpenPiece::State::kWantsLink);
    return ask_for_link(piece);
  }
  const std::optional<std::chrono::milliseconds> usual = piece.tries.next();
  if (!usual)
    return fail(ErrorCode::kUnavailable, concat({model_.name.id, "/", piece.piece.file->path, ": ",
                                                 why, ", after five further tries"}));
  const std::chrono::milliseconds time = wait_asked(piece.head).value_or(*usual);
  piece.until = client_.transport().now() + time;
  piece.why = concat({why, "; again in ", std::to_string(time.count() / 1000), " s"});
  piece.state = OpenPiece::State::kWaits;
  client_.tell(piece.why);
  return {};
}

}  // namespace weir::hub
