#include "net/digest.h"

#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace weir::net {

void Digest::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Digest::Digest(Kind kind) : context_(EVP_MD_CTX_new()) {
  CHECK(context_ != nullptr);
  const EVP_MD* method = kind == Kind::kSha1 ? EVP_sha1() : EVP_sha256();
  CHECK(EVP_DigestInit_ex(context_.get(), method, nullptr) == 1);
}

void Digest::add(std::string_view bytes) {
  CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Digest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(context_.get(), bytes.data(), &length) == 1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace weir::net
