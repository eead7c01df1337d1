#include "net/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace weir::net {

PeerId peer_id(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(&address)->sin_addr.s_addr);
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  const int first = IN6_IS_ADDR_V4MAPPED(&ip) ? 12 : 0, end = IN6_IS_ADDR_V4MAPPED(&ip) ? 16 : 8;
  PeerId id = 0;
  for (int i = first; i < end; ++i) id = id << 8 | ip.s6_addr[i];
  return id;
}

}  // namespace weir::net
