// Digest: the SHA-1 or SHA-256 of bytes that come in pieces, by libcrypto.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace weir::net {

class Digest {
 public:
  enum class Kind : uint8_t { kSha1, kSha256 };

  explicit Digest(Kind kind);

  void add(std::string_view bytes);
  // Hexadecimal, in lower case. Nothing may be added after it.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace weir::net
