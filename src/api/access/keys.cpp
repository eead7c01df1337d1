#include "api/access/keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/ascii.h"

namespace weir::api {

namespace {

constexpr size_t kNameBytesMax = 64;
// A request that finds its key's places taken may try again soon: answers end all the time.
constexpr double kConcurrencyRetryS = 1;
constexpr double kMinuteS = 60;

// Takes as long for any guess of one length: timing tells nothing about the key.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<uint8_t>(a[i]) ^ static_cast<uint8_t>(b[i]));
  return difference == 0;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-_.@").find(c) != std::string_view::npos;
  });
}

// What can stand in a header, and be given on a command line with others.
bool is_secret(std::string_view text) {
  return !text.empty() && text.size() <= kKeyBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f' && c != ','; });
}

std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kSpace = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kSpace));
  line.remove_prefix(word.size());
  return word;
}

template <class T>
Result<T> number(std::string_view value, T min, T max) {
  T parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error == std::errc() && end == value.data() + value.size() && parsed >= min && parsed <= max)
    return parsed;
  return fail(ErrorCode::kConfig, "expected an integer from " + std::to_string(min) + " to " +
                                      std::to_string(max) + ", found '" +
                                      std::string(value.substr(0, 32)) + "'");
}

constexpr int64_t kRateMax = 1'000'000'000'000;

Result<KeyScopes> parse_scopes(std::string_view value) {
  KeyScopes scopes{.api = false, .monitor = false};
  for (bool more = true; more;) {
    const size_t end = std::min(value.find(','), value.size());
    const std::string_view word = value.substr(0, end);
    if (word != "all" && word != "api" && word != "monitor" && word != "admin")
      return fail(ErrorCode::kConfig,
                  "expected all, api, monitor or admin, or several of them with commas between, "
                  "found '" +
                      std::string(word.substr(0, 32)) + "'");
    scopes.api |= word == "all" || word == "api";
    scopes.monitor |= word == "all" || word == "monitor";
    scopes.admin |= word == "admin";
    more = end < value.size();
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return scopes;
}

Result<void> set_attribute(std::string_view name, std::string_view value, KeySpec& key) {
  if (name == "name") {
    if (!is_name(value))
      return fail(ErrorCode::kConfig, "expected 1 to " + std::to_string(kNameBytesMax) +
                                          " letters, digits or any of -_.@");
    key.name = value;
    key.named = true;
  } else if (name == "scope") {
    WEIR_ASSIGN(key.scopes, parse_scopes(value));
  } else if (name == "concurrency") {
    WEIR_ASSIGN(key.concurrency, number<int32_t>(value, 1, INT32_MAX));
  } else if (name == "requests-per-minute") {
    WEIR_ASSIGN(key.requests_per_minute, number<int64_t>(value, 1, kRateMax));
  } else if (name == "tokens-per-minute") {
    WEIR_ASSIGN(key.tokens_per_minute, number<int64_t>(value, 1, kRateMax));
  } else if (name == "priority") {
    WEIR_ASSIGN(key.priority, number<int32_t>(value, INT32_MIN, INT32_MAX));
  } else {
    return fail(ErrorCode::kConfig,
                "unknown; expected name, scope, concurrency, requests-per-minute, "
                "tokens-per-minute or priority");
  }
  return {};
}

Result<KeySpec> parse_line(std::string_view line) {
  KeySpec key;
  const std::string_view secret = take_word(line);
  if (!is_secret(secret))
    return fail(ErrorCode::kConfig, "expected a key of 1 to " + std::to_string(kKeyBytesMax) +
                                        " printable ASCII characters without a comma");
  key.secret = secret;
  while (true) {
    const std::string_view word = take_word(line);
    if (word.empty()) return key;
    const size_t equals = word.find('=');
    // Never repeated: what stands here may be a key.
    if (equals == std::string_view::npos)
      return fail(ErrorCode::kConfig, "expected attribute=value after the key");
    const std::string_view name = word.substr(0, equals);
    if (const auto set = set_attribute(name, word.substr(equals + 1), key); !set)
      return fail(ErrorCode::kConfig, (is_name(name) ? std::string(name) : "an attribute") + ": " +
                                          set.error().message);
  }
}

std::string per_minute(int64_t limit, std::string_view what) {
  return "Rate limit reached: this key may use " + std::to_string(limit) + " " + std::string(what) +
         " a minute.";
}

Key::Refusal refusal(std::string message, double retry_after_s) {
  message += " Please try again in " + duration_text(retry_after_s) + ".";
  return {Error{ErrorCode::kOverloaded, std::move(message), {}, "rate_limit_exceeded"},
          retry_after_s};
}

}  // namespace

std::string text_of(const KeyScopes& scopes) {
  std::string text;
  const auto add = [&](bool has, std::string_view name) {
    if (has) text.append(text.empty() ? "" : ",").append(name);
  };
  add(scopes.api && scopes.monitor, "all");
  add(scopes.api && !scopes.monitor, "api");
  add(scopes.monitor && !scopes.api, "monitor");
  add(scopes.admin, "admin");
  return text;
}

Result<std::vector<KeySpec>> parse_keys(std::string_view text, std::string_view source) {
  std::vector<KeySpec> keys;
  for (size_t line_number = 1; !text.empty(); ++line_number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const std::string where = std::string(source) + " line " + std::to_string(line_number) + ": ";
    Result<KeySpec> key = parse_line(line);
    if (!key) return fail(ErrorCode::kConfig, where + key.error().message);
    if (keys.size() == kKeysMax)
      return fail(ErrorCode::kConfig,
                  where + "expected at most " + std::to_string(kKeysMax) + " keys");
    if (key->name.empty()) key->name = "line-" + std::to_string(line_number);
    keys.push_back(std::move(*key));
  }
  if (keys.empty())
    return fail(ErrorCode::kConfig, std::string(source) + ": expected a key a line; found no key");
  return keys;
}

void add_plain_keys(std::span<const std::string> secrets, std::vector<KeySpec>& keys) {
  int32_t count = 0;
  for (const std::string& secret : secrets)
    keys.push_back({.secret = secret, .name = "key-" + std::to_string(++count)});
}

Result<void> check_keys(std::span<const KeySpec> keys) {
  if (keys.size() > kKeysMax)
    return fail(ErrorCode::kConfig, "expected at most " + std::to_string(kKeysMax) +
                                        " API keys, found " + std::to_string(keys.size()));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!is_secret(keys[i].secret))
      return fail(ErrorCode::kConfig, "API key '" + keys[i].name + "': expected 1 to " +
                                          std::to_string(kKeyBytesMax) +
                                          " printable ASCII characters without a comma");
    for (size_t k = 0; k < i; ++k) {
      if (keys[k].name == keys[i].name)
        return fail(ErrorCode::kConfig, "two API keys have the name '" + keys[i].name + "'");
      if (keys[k].secret == keys[i].secret)
        return fail(ErrorCode::kConfig, "the API keys '" + keys[k].name + "' and '" + keys[i].name +
                                            "' are the same key");
    }
  }
  return {};
}

void TokenBucket::fill(Clock::time_point now) {
  if (filled_ == Clock::time_point{}) filled_ = now;
  const std::chrono::duration<double> passed = now - filled_;
  if (passed.count() <= 0) return;
  const auto full = static_cast<double>(per_minute_);
  level_ = std::min(full, level_ + full / kMinuteS * passed.count());
  filled_ = now;
}

int64_t TokenBucket::remaining(Clock::time_point now) {
  fill(now);
  return static_cast<int64_t>(std::max(0.0, std::floor(level_)));
}

double TokenBucket::seconds_until(int64_t amount, Clock::time_point now) {
  if (!limited()) return 0;
  fill(now);
  const auto full = static_cast<double>(per_minute_);
  const double missing = std::min(static_cast<double>(amount), full) - level_;
  // A rounding error is not worth a refusal.
  return missing <= 1e-6 ? 0 : missing / full * kMinuteS;
}

void TokenBucket::take(int64_t amount, Clock::time_point now) {
  if (!limited()) return;
  fill(now);
  level_ = std::min(level_ - static_cast<double>(amount), static_cast<double>(per_minute_));
}

void TokenBucket::set_limit(int64_t per_minute, Clock::time_point now) {
  if (per_minute == per_minute_) return;
  fill(now);
  const double share = limited() ? level_ / static_cast<double>(per_minute_) : 1;
  per_minute_ = per_minute;
  level_ = share * static_cast<double>(per_minute);
}

Key::Key(KeySpec spec, uint64_t id)
    : spec_(std::move(spec)),
      id_(id),
      requests_(spec_.requests_per_minute),
      tokens_(spec_.tokens_per_minute) {}

void Key::update(KeySpec spec, Clock::time_point now) {
  spec_ = std::move(spec);
  requests_.set_limit(spec_.requests_per_minute, now);
  tokens_.set_limit(spec_.tokens_per_minute, now);
}

bool Key::may_use(Access access) const {
  switch (access) {
    case Access::kOpen:
    case Access::kAnyKey:
      return true;
    case Access::kMonitor:
      return spec_.scopes.monitor;
    case Access::kApi:
      return spec_.scopes.api;
    case Access::kAdmin:
      return spec_.scopes.admin;
  }
  return false;
}

std::optional<Key::Refusal> Key::begin(Clock::time_point now) {
  if (auto full = places_refusal(open_, 1)) return full;
  if (const double wait = requests_.seconds_until(1, now); wait > 0) {
    figures_.refused.add();
    return refusal(per_minute(requests_.limit(), "requests"), wait);
  }
  // A key in debt for tokens need not have a prompt prepared to learn of it.
  if (const double wait = tokens_.seconds_until(1, now); wait > 0) {
    figures_.refused.add();
    return refusal(per_minute(tokens_.limit(), "tokens"), wait);
  }
  requests_.take(1, now);
  figures_.requests.add();
  ++open_;
  return std::nullopt;
}

// What the key could never have is refused for good.
std::optional<Key::Refusal> Key::places_refusal(int32_t open, int32_t choices) {
  const int32_t limit = spec_.concurrency;
  if (limit == 0 || choices <= limit - open) return std::nullopt;
  figures_.refused.add();
  if (choices > limit)
    return Refusal{
        Error{ErrorCode::kInvalid,
              "Invalid value for 'n': expected at most " + std::to_string(limit) +
                  " choices of all prompts together, as many as this key may have at once; found " +
                  std::to_string(choices) + ".",
              "n"},
        0};
  return refusal("Too many answers at once: this key may have " + std::to_string(limit) +
                     " open, each choice counted; " + std::to_string(open) + " are open, and " +
                     std::to_string(choices) + (choices == 1 ? " was" : " were") + " asked for.",
                 kConcurrencyRetryS);
}

std::optional<Key::Refusal> Key::set_choices(int32_t held, int32_t choices) {
  if (auto full = places_refusal(open_ - held, choices)) return full;
  open_ += choices - held;
  return std::nullopt;
}

bool Key::lend() {
  const bool lent = spec_.concurrency == 0 || open_ + lent_ < spec_.concurrency;
  if (lent) ++lent_;
  return lent;
}

std::optional<Key::Refusal> Key::take_prompt(int64_t tokens, Clock::time_point now) {
  if (const double wait = tokens_.seconds_until(tokens, now); wait > 0) {
    figures_.refused.add();
    return refusal(
        per_minute(tokens_.limit(), "tokens") + " This prompt has " + std::to_string(tokens) + ".",
        wait);
  }
  tokens_.take(tokens, now);
  return std::nullopt;
}

void Key::settle(int64_t taken, int64_t used, Clock::time_point now) {
  figures_.tokens.add(static_cast<uint64_t>(used));
  tokens_.take(used - taken, now);
}

void Key::append_headers(net::HttpResponder::Headers& headers, Clock::time_point now) {
  const auto append = [&](TokenBucket& bucket, const char* what) {
    if (!bucket.limited()) return;
    const auto name = [what](const char* part) {
      return std::string("x-ratelimit-") + part + "-" + what;
    };
    headers.emplace_back(name("limit"), std::to_string(bucket.limit()));
    headers.emplace_back(name("remaining"), std::to_string(bucket.remaining(now)));
    headers.emplace_back(name("reset"), duration_text(bucket.seconds_until_full(now)));
  };
  append(requests_, "requests");
  append(tokens_, "tokens");
}

std::optional<Key::Refusal> KeyUse::set_choices(int32_t choices) {
  if (!key_) return std::nullopt;
  auto refusal = key_->set_choices(choices_, choices);
  if (!refusal) choices_ = choices;
  return refusal;
}

bool KeyUse::lend() {
  if (!key_) return true;
  const bool lent = key_->lend();
  if (lent) ++lent_;
  return lent;
}

void KeyUse::give_back(int32_t lent) {
  if (!key_) return;
  lent = std::min(lent, lent_);
  key_->give_back(lent);
  lent_ -= lent;
}

Keyring::Keyring(std::vector<KeySpec> specs) { replace(std::move(specs), {}); }

// Secrets first: where lines have moved, the names that were made of their places belong to others.
void Keyring::replace(std::vector<KeySpec> specs, Clock::time_point now) {
  std::vector<std::shared_ptr<Key>> before = std::exchange(keys_, {});
  keys_.resize(specs.size());
  const auto keep = [&](auto&& is_same) {
    for (size_t i = 0; i < specs.size(); ++i) {
      if (keys_[i]) continue;
      const auto same = std::ranges::find_if(before, [&](const std::shared_ptr<Key>& key) {
        return key && is_same(key->spec(), specs[i]);
      });
      if (same != before.end()) keys_[i] = std::exchange(*same, nullptr);
    }
  };
  keep([](const KeySpec& a, const KeySpec& b) { return a.secret == b.secret; });
  keep([](const KeySpec& a, const KeySpec& b) { return a.named && b.named && a.name == b.name; });
  for (size_t i = 0; i < specs.size(); ++i) {
    if (keys_[i])
      keys_[i]->update(std::move(specs[i]), now);
    else
      keys_[i] = std::make_shared<Key>(std::move(specs[i]), next_id_++);
  }
}

// OpenAI's header, Anthropic's, and Azure's; Continue sends all three.
std::shared_ptr<Key> Keyring::find(const net::HttpRequest& request) const {
  std::string_view bearer = request.header("authorization");
  if (starts_with_ignoring_case(bearer, "bearer ")) {
    bearer.remove_prefix(7);
    bearer.remove_prefix(std::min(bearer.find_first_not_of(' '), bearer.size()));
  } else {
    bearer = {};
  }
  std::shared_ptr<Key> found;
  for (const std::string_view given :
       {bearer, request.header("x-api-key"), request.header("api-key")})
    for (const std::shared_ptr<Key>& key : keys_)  // To the end, whatever is found.
      if (equal_in_constant_time(given, key->spec().secret) && !found) found = key;
  return found;
}

std::string duration_text(double seconds) {
  // Rounded up: a client that waits that long is not refused again.
  const auto ms = static_cast<int64_t>(std::ceil(std::max(seconds, 0.0) * 1e3 - 1e-6));
  if (ms < 1000) return std::to_string(ms) + "ms";
  const int64_t minutes = ms / 60'000, rest = ms % 60'000;
  std::string text = minutes > 0 ? std::to_string(minutes) + "m" : "";
  text += std::to_string(rest / 1000);
  if (const int64_t fraction = rest % 1000; fraction > 0) {
    std::string digits = std::to_string(1000 + fraction).substr(1);
    while (digits.ends_with('0')) digits.pop_back();
    text += "." + digits;
  }
  return text + "s";
}

}  // namespace weir::api
