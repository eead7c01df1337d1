// The pictures and sounds of requests: fetched where they are elsewhere, then decoded in the pool, a
// few at once and apart from what else is prepared there.
#include <utility>

#include "api/api_impl.h"
#include "base/check.h"

namespace weir::api {

void Api::Impl::read_media(const ExchangePtr& exchange, const MediaSetPtr& media,
                              std::function<void()> then) {
  if (media->addresses().empty()) return decode_media(exchange, media, std::move(then));
  fetch_media(exchange, media, std::move(then));
}

void Api::Impl::fetch_media(const ExchangePtr& exchange, const MediaSetPtr& media,
                               std::function<void()> then) {
  CHECK(config.media != nullptr);
  // Known to the calls below only once the desk has given it.
  const auto number = std::make_shared<uint64_t>();
  MediaDesk::Order order{.addresses = media->addresses(),
                         .bytes_max = media->file_bytes_max()};
  order.admit = [this, media](size_t bytes) { return media->admit(media_budget, bytes); };
  order.done = [this, exchange, media, number,
                then = std::move(then)](std::vector<Result<std::string>> files) mutable {
    fetches.erase(*number);
    stats.fetched_media.add(files.size());
    media->set_files(std::move(files));
    decode_media(exchange, media, std::move(then));
  };
  *number = config.media->fetch(std::move(order));
  fetches.emplace(*number, exchange);
  exchange->responder().on_closed([this, number, weak = std::weak_ptr(exchange)] {
    config.media->cancel(*number);
    fetches.erase(*number);
    if (const auto left = weak.lock()) left->abandon();
  });
}

void Api::Impl::decode_media(const ExchangePtr& exchange, const MediaSetPtr& media,
                                std::function<void()> then) {
  Preparation::Job job;
  job.work = [this, media, stop = job.interrupt] { media->read(media_budget, *stop); };
  job.done = [this, exchange, media, then = std::move(then)] {
    if (exchange->responder().closed()) return exchange->abandon();
    if (const auto seen = media->seen(); seen && *seen)
      for (const SeenMedium& each : **seen) count(each);
    then();
  };
  hand_over(media_reading, exchange, std::move(job));
}

// Of a video its first moment counts.
void Api::Impl::count(const SeenMedium& seen) {
  if (seen.moment > 0) return;
  switch (seen.medium) {
    case Medium::kPicture:
      return stats.pictures.add(1);
    case Medium::kVideo:
      return stats.videos.add(1);
    case Medium::kSound:
      return stats.sounds.add(1);
  }
}

void Api::Impl::end_fetches(const Error& error) {
  for (const auto& [number, exchange] : std::exchange(fetches, {})) {
    config.media->cancel(number);
    exchange->respond_error(error);
  }
}

}  // namespace weir::api
