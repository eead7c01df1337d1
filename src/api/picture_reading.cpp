// The pictures of requests: fetched where they are elsewhere, then decoded in the pool, a few at once
// and apart from what else is prepared there.
#include <utility>

#include "api/api_impl.h"
#include "base/check.h"

namespace weir::api {

void Api::Impl::read_pictures(const ExchangePtr& exchange, const PictureSetPtr& pictures,
                              std::function<void()> then) {
  if (pictures->addresses().empty()) return decode_pictures(exchange, pictures, std::move(then));
  fetch_pictures(exchange, pictures, std::move(then));
}

void Api::Impl::fetch_pictures(const ExchangePtr& exchange, const PictureSetPtr& pictures,
                               std::function<void()> then) {
  CHECK(config.media != nullptr);
  // Known to the calls below only once the desk has given it.
  const auto number = std::make_shared<uint64_t>();
  MediaDesk::Order order{.addresses = pictures->addresses(),
                         .bytes_max = config.pictures.file_bytes_max};
  order.admit = [this, pictures](size_t bytes) { return pictures->admit(picture_budget, bytes); };
  order.done = [this, exchange, pictures, number,
                then = std::move(then)](std::vector<Result<std::string>> files) mutable {
    fetches.erase(*number);
    stats.fetched_pictures.add(files.size());
    pictures->set_files(std::move(files));
    decode_pictures(exchange, pictures, std::move(then));
  };
  *number = config.media->fetch(std::move(order));
  fetches.emplace(*number, exchange);
  exchange->responder().on_closed([this, number, weak = std::weak_ptr(exchange)] {
    config.media->cancel(*number);
    fetches.erase(*number);
    if (const auto left = weak.lock()) left->abandon();
  });
}

void Api::Impl::decode_pictures(const ExchangePtr& exchange, const PictureSetPtr& pictures,
                                std::function<void()> then) {
  Preparation::Job job;
  job.work = [this, pictures, stop = job.interrupt] { pictures->read(picture_budget, *stop); };
  job.done = [this, exchange, pictures, then = std::move(then)] {
    if (exchange->responder().closed()) return exchange->abandon();
    if (const auto seen = pictures->seen(); seen && *seen) stats.pictures.add((*seen)->size());
    then();
  };
  hand_over(picture_reading, exchange, std::move(job));
}

void Api::Impl::end_fetches(const Error& error) {
  for (const auto& [number, exchange] : std::exchange(fetches, {})) {
    config.media->cancel(number);
    exchange->respond_error(error);
  }
}

}  // namespace weir::api
