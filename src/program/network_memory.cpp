#include "program/network_memory.h"

#include <algorithm>

#include "api/memory/memory_cost.h"
#include "base/fair_budget.h"

namespace weir {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// A connection's buffers while it is idle, its parser included: measured 1.7 KiB. The kernel has
// 1.5 KiB of it beside that, which the tenth that memory_limit() leaves has room for.
constexpr int64_t kConnectionBytes = 2048;
// What OpenSSL holds beside it, measured 17 KiB of an idle session: its state and keys. Buffers are
// held only while they are used.
constexpr int64_t kTlsSessionBytes = 18 << 10;
// Without --max-connections; with TLS so many that they take about the same memory, 40 MiB.
constexpr int32_t kConnectionsDefault = 16384;
constexpr int32_t kTlsConnectionsDefault = kConnectionsDefault / 8;
// Without --max-body: enough for a few photographs in base64, and on small machines a hundredth of
// the memory, so that all bodies together (see plan_bodies) take a seventh.
constexpr int64_t kBodyDefaultMax = 32 * kMiB;
constexpr int64_t kBodyDefaultMin = kMiB;
constexpr int64_t kBodiesPerLimit = 100;
// One of the largest arrives beside as much of others: its peer may hold what is left then
// (FairBudget).
constexpr int64_t kArrivingBodies = 3;
// For small bodies beside them, of that.
constexpr int64_t kSmallBodiesShare = 16, kSmallBodiesMin = kMiB;
// Heads of requests. Measured of real clients: 1 to 2 KiB, with a browser's cookies 8; of a hostile
// one up to 150, from which a larger share of more memory would not protect better. As many
// requests as may wait or run have theirs. With TLS as much for handshakes, which hold 41 KiB each.
constexpr int64_t kHeadsShare = 128, kHeadsMin = 4 * kMiB, kHeadsMax = 32 * kMiB;
constexpr int64_t kHeadBytes = 4 << 10;
// Answers that clients have not taken: streams hold up to 64 KiB before they pause, others all.
constexpr int64_t kAnswersShare = 128, kAnswersMin = 8 * kMiB, kAnswersMax = 128 * kMiB;
// Large machines give more to bodies that arrive and are prepared: these shares, up to these sizes.
constexpr int64_t kArrivingShare = 64, kArrivingMax = 512 * kMiB;
constexpr int64_t kPreparingShare = 32, kPreparingMax = 1024 * kMiB;
// Without --image-memory. Decoding a photograph of 12 megapixels takes 160 MiB, one of 50 takes 670.
constexpr int64_t kImagesShare = 8, kImagesMax = 2048 * kMiB;
constexpr int64_t kSharedImagesShare = 32, kSharedImagesMax = 512 * kMiB;

}  // namespace

BodyPlan plan_bodies(const NetworkOptions& options, const MemoryLimit& limit) {
  BodyPlan plan;
  plan.largest = options.max_body > 0
                     ? options.max_body
                     : std::clamp(limit.bytes / kBodiesPerLimit, kBodyDefaultMin, kBodyDefaultMax);
  plan.arriving = std::max(kArrivingBodies * plan.largest,
                           std::min(limit.bytes / kArrivingShare, kArrivingMax));
  plan.small = std::max(plan.arriving / kSmallBodiesShare, kSmallBodiesMin);
  plan.preparing = std::max(static_cast<int64_t>(FairBudget::size_for(
                                api::kPreparingPerByte * static_cast<size_t>(plan.largest))),
                            std::min(limit.bytes / kPreparingShare, kPreparingMax));
  return plan;
}

int32_t plan_connections(const NetworkOptions& options) {
  if (options.max_connections > 0) return options.max_connections;
  return options.tls_cert.empty() ? kConnectionsDefault : kTlsConnectionsDefault;
}

int64_t plan_heads(const Options& options, const MemoryLimit& limit) {
  const int64_t heads = std::max(std::clamp(limit.bytes / kHeadsShare, kHeadsMin, kHeadsMax),
                                 kHeadBytes * options.queue);
  return options.tls_cert.empty() ? heads : 2 * heads;
}

int64_t plan_answers(const MemoryLimit& limit) {
  return std::clamp(limit.bytes / kAnswersShare, kAnswersMin, kAnswersMax);
}

int64_t plan_images(const Options& options, const MemoryLimit& limit, bool several) {
  if (options.image_memory > 0) return options.image_memory;
  return several ? std::min(limit.bytes / kSharedImagesShare, kSharedImagesMax)
                 : std::min(limit.bytes / kImagesShare, kImagesMax);
}

int64_t connection_bytes(const NetworkOptions& options) {
  const int64_t each = kConnectionBytes + (options.tls_cert.empty() ? 0 : kTlsSessionBytes);
  return each * plan_connections(options);
}

net::HttpLimits http_limits(const Options& options, const MemoryLimit& limit) {
  net::HttpLimits limits;
  limits.connections_max = plan_connections(options);
  const BodyPlan bodies = plan_bodies(options, limit);
  limits.body_bytes_max = static_cast<size_t>(bodies.largest);
  limits.arriving_bytes_max = static_cast<size_t>(bodies.arriving);
  limits.small_bodies_bytes_max = static_cast<size_t>(bodies.small);
  limits.heads_bytes_max = static_cast<size_t>(plan_heads(options, limit));
  limits.answers_bytes_max = static_cast<size_t>(plan_answers(limit));
  limits.idle_timeout_ms = static_cast<uint64_t>(options.idle_timeout) * 1000;
  return limits;
}

}  // namespace weir
