// Keys: who may use this server, what for, and how much of it. A key's limits are token buckets: a
// minute's worth may be used at once, and comes back evenly.
//
// Threads: the loop's; parse_keys() any.
//
// Invariants:
// (1) A key's secret leaves this file by no way: not into logs, metrics or messages. Its name does.
// (2) Looking a key up takes as long for any wrong key of one length.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/reference/endpoint_table.h"
#include "base/metrics.h"
#include "base/result.h"
#include "net/http.h"
#include "sched/request.h"

namespace weir::api {

using Clock = sched::Clock;

// What a key is good for. Without a word of it: "all", which stands for all but `admin`, because
// keys from before there was something to manage must not have it.
struct KeyScopes {
  bool api = true;      // Answers, and what the caller itself has stored.
  bool monitor = true;  // Figures about the server.
  bool admin = false;   // Management (Access::kAdmin).
};
// As a key file says it: "all", "api,admin".
std::string text_of(const KeyScopes& scopes);

// A key as the command line or a key file says it.
struct KeySpec {
  std::string secret{};
  std::string name{};
  KeyScopes scopes{};
  int32_t concurrency = 0;            // Choices being answered at once; 0: no limit.
  int64_t requests_per_minute = 0;    // 0: no limit.
  int64_t tokens_per_minute = 0;      // Prompts and answers together; 0: no limit.
  std::optional<int32_t> priority{};  // The earliest that its requests may ask for.
  bool named = false;                 // The name was given, not made of the key's place.
};

inline constexpr size_t kKeysMax = 1024;
inline constexpr size_t kKeyBytesMax = 512;
inline constexpr size_t kKeyFileBytesMax = 1 << 20;

// A key a line, followed by words of attribute=value: `KEY name=alice concurrency=4`. Empty lines
// and those that begin with '#' are passed over. Errors name `source`, the line and the attribute,
// never the key.
Result<std::vector<KeySpec>> parse_keys(std::string_view text, std::string_view source);

// Adds keys that were given without a name; each is called key-N.
void add_plain_keys(std::span<const std::string> secrets, std::vector<KeySpec>& keys);

// What all keys together must fulfil: no secret and no name twice, not too many.
Result<void> check_keys(std::span<const KeySpec> keys);

// Holds up to a minute's worth, and fills at an even rate. May be overdrawn.
class TokenBucket {
 public:
  explicit TokenBucket(int64_t per_minute)
      : per_minute_(per_minute), level_(static_cast<double>(per_minute)) {}

  bool limited() const { return per_minute_ > 0; }
  int64_t limit() const { return per_minute_; }
  int64_t remaining(Clock::time_point now);
  // The time until `amount` can be taken; if that is more than the bucket holds, until it is full.
  double seconds_until(int64_t amount, Clock::time_point now);
  double seconds_until_full(Clock::time_point now) { return seconds_until(per_minute_, now); }
  // An amount below 0 is given back.
  void take(int64_t amount, Clock::time_point now);
  // The same share of the new limit is left as was of the old one; all, if there was none.
  void set_limit(int64_t per_minute, Clock::time_point now);

 private:
  void fill(Clock::time_point now);

  int64_t per_minute_;
  double level_;
  Clock::time_point filled_{};
};

// A key and what is used of it.
class Key {
 public:
  // `id`: never another key's, also when names and secrets are changed.
  Key(KeySpec spec, uint64_t id);
  // Changes what the key may do; its figures and what is used of it stay.
  void update(KeySpec spec, Clock::time_point now);

  uint64_t id() const { return id_; }
  const std::string& name() const { return spec_.name; }
  const KeySpec& spec() const { return spec_; }
  bool may_use(Access access) const;

  struct Refusal {
    Error error;
    double retry_after_s = 0;
  };
  // Counts a request in, as one choice, unless a limit is reached.
  std::optional<Refusal> begin(Clock::time_point now);
  // A request that counts as `held` choices has so many, unless the limit is reached.
  std::optional<Refusal> set_choices(int32_t held, int32_t choices);
  void end(int32_t choices) { open_ -= choices; }
  // One more request of an answer that needs many and can wait: true unless the limit is reached.
  // Such a request keeps no other answer away, so that one long list of texts is no reason to
  // refuse a chat.
  bool lend();
  void give_back(int32_t lent) { lent_ -= lent; }
  // Takes a prompt's tokens, unless the limit is reached.
  std::optional<Refusal> take_prompt(int64_t tokens, Clock::time_point now);
  // Counts what a request has used, which took `taken` before. What it used beyond, its answer's
  // tokens, was not asked for: later requests wait for them. What it has not used comes back.
  void settle(int64_t taken, int64_t used, Clock::time_point now);

  // x-ratelimit-*, as OpenAI spells them.
  void append_headers(net::HttpResponder::Headers& headers, Clock::time_point now);

  struct Figures {
    Counter requests, refused, tokens;
  };
  const Figures& figures() const { return figures_; }
  int32_t open() const { return open_; }  // Choices.

 private:
  std::optional<Refusal> places_refusal(int32_t open, int32_t choices);

  KeySpec spec_;
  const uint64_t id_;
  TokenBucket requests_, tokens_;
  int32_t open_ = 0;
  int32_t lent_ = 0;
  Figures figures_;
};

// A request's hold on its key: counts it out in the end. Without a key everything is granted.
class KeyUse {
 public:
  KeyUse() = default;
  explicit KeyUse(std::shared_ptr<Key> key) : key_(std::move(key)), choices_(1) {}
  KeyUse(KeyUse&& other) noexcept { *this = std::move(other); }
  KeyUse& operator=(KeyUse&& other) noexcept {
    std::swap(key_, other.key_);
    std::swap(choices_, other.choices_);
    std::swap(lent_, other.lent_);
    return *this;
  }
  ~KeyUse() {
    if (!key_) return;
    key_->end(choices_);
    key_->give_back(lent_);
  }

  // The request has so many choices.
  std::optional<Key::Refusal> set_choices(int32_t choices);
  // See Key::lend().
  bool lend();
  void give_back(int32_t lent);

 private:
  std::shared_ptr<Key> key_;
  int32_t choices_ = 0, lent_ = 0;
};

// All keys. Requests share theirs: it lives as long as they do, also when it is taken away.
class Keyring {
 public:
  explicit Keyring(std::vector<KeySpec> specs);

  // From now on these count. A key of before with the same secret, or else with the same given
  // name, is the same key.
  void replace(std::vector<KeySpec> specs, Clock::time_point now);

  // Without keys everybody may do everything.
  bool empty() const { return keys_.empty(); }
  // By `Authorization: Bearer`, `x-api-key` or `api-key`; null if none of them holds a key.
  std::shared_ptr<Key> find(const net::HttpRequest& request) const;
  std::span<const std::shared_ptr<Key>> keys() const { return keys_; }

 private:
  std::vector<std::shared_ptr<Key>> keys_;
  uint64_t next_id_ = 1;
};

// A duration as OpenAI's headers have it: "250ms", "1.5s", "6m0s".
std::string duration_text(double seconds);

}  // namespace weir::api
