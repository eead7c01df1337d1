// MediaFetcher: images from the web addresses that requests name, within limits: hosts that
// --allow-remote-media lists, no proxy, a few redirects that are held against the list too, a time
// and a size for each file.
//
// Threads: fetch() and cancel() are called on the thread that `post` posts to, and so is what they
// call; files come on another, which begins with the first order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "api/serving/media_desk.h"
#include "hub/transport.h"
#include "program/media_hosts.h"

namespace weir {

class MediaFetcher final : public api::MediaDesk {
 public:
  // For one file, with its redirects.
  static constexpr std::chrono::seconds kTimeMax{10};
  static constexpr int kRedirectsMax = 3;
  // Requests at once, of all orders, and of one.
  static constexpr size_t kAtOnceMax = 16, kOfOneMax = 4;

  using Post = std::function<void(std::function<void()>)>;

  // `transport` makes the way out; without one that follows `hosts` over libcurl is made. What
  // `post` has not run when the fetcher goes does nothing any more.
  MediaFetcher(MediaHosts hosts, Post post,
               std::function<Result<std::unique_ptr<hub::Transport>>()> transport = {});
  // Waits for the other thread, which takes no longer than a step of its work.
  ~MediaFetcher() override;

  uint64_t fetch(Order order) override;
  void cancel(uint64_t number) override;

 private:
  class File;
  struct Open;  // An order, on the other thread.

  void work();
  bool take_orders(std::map<uint64_t, std::unique_ptr<Open>>& open,
                   std::vector<uint64_t>& cancelled);
  void start_files(hub::Transport& transport, std::map<uint64_t, std::unique_ptr<Open>>& open);
  void finish(uint64_t number, std::vector<Result<std::string>> files);

  const MediaHosts hosts_;
  const Post post_;
  const std::function<Result<std::unique_ptr<hub::Transport>>()> make_transport_;
  uint64_t ordered_ = 0;
  // What is told when an order is done, by its number.
  std::map<uint64_t, std::function<void(std::vector<Result<std::string>>)>> waiting_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::mutex mutex_;
  std::condition_variable bell_;
  // Guarded by mutex_, what the other thread has not heard of yet:
  std::map<uint64_t, Order> orders_;
  std::vector<uint64_t> cancelled_;
  bool ending_ = false;

  std::thread thread_;
};

}  // namespace weir
