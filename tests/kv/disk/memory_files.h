// MemoryFiles: a file system in memory, for tests: fast, and as full or broken as they want it.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "kv/disk/files.h"

namespace weir::kv::disk {

class MemoryFiles final : public Files {
 public:
  // What outlives the object that a store owns.
  struct State {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<std::string>> files;
    int64_t room = int64_t{1} << 40;  // Bytes that may still be written: then the disk is full.
    std::chrono::microseconds read_time{0};  // What a read takes.
    bool reads_fail = false;
    bool writes_fail = false;
    bool quota_is_spent = false;  // It is full, whatever free_bytes() says.
  };
  explicit MemoryFiles(std::shared_ptr<State> state) : state_(std::move(state)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, bool create) override {
    const std::lock_guard lock(state_->mutex);
    std::shared_ptr<std::string>& file = state_->files[path];
    if (create == (file != nullptr)) return fail(ErrorCode::kIo, path + ": open: File exists or not");
    if (create) file = std::make_shared<std::string>();
    return std::make_unique<Open>(state_, file);
  }
  Result<std::string> read_whole(const std::string& path, size_t bytes_max) override {
    const std::lock_guard lock(state_->mutex);
    const auto file = state_->files.find(path);
    if (file == state_->files.end() || file->second->size() > bytes_max)
      return fail(ErrorCode::kIo, path + ": open: No such file");
    return *file->second;
  }
  Result<void> write_whole(const std::string& path, std::string_view bytes) override {
    const std::lock_guard lock(state_->mutex);
    WEIR_TRY(spend(*state_, static_cast<int64_t>(bytes.size())));
    state_->files[path] = std::make_shared<std::string>(bytes);
    return {};
  }
  Result<void> remove(const std::string& path) override {
    const std::lock_guard lock(state_->mutex);
    state_->files.erase(path);
    return {};
  }
  Result<std::vector<Entry>> list(const std::string& folder) override {
    const std::lock_guard lock(state_->mutex);
    std::vector<Entry> entries;
    for (const auto& [path, bytes] : state_->files)
      if (path.starts_with(folder + "/"))
        entries.push_back({path.substr(folder.size() + 1), bytes->size(), 0});
    return entries;
  }
  Result<int64_t> free_bytes(const std::string&) override {
    const std::lock_guard lock(state_->mutex);
    return state_->room;
  }

 private:
  static Result<void> spend(State& state, int64_t bytes) {
    if (state.writes_fail) return fail(ErrorCode::kIo, "write: Input/output error");
    if (bytes > state.room || state.quota_is_spent)
      return fail(ErrorCode::kIo, "write: No space left on device");
    state.room -= bytes;
    return {};
  }

  struct Open final : File {
    Open(std::shared_ptr<State> of, std::shared_ptr<std::string> bytes)
        : state(std::move(of)), file(std::move(bytes)) {}

    Result<void> read(uint64_t offset, std::span<std::byte> to) override {
      std::this_thread::sleep_for(state->read_time);
      const std::lock_guard lock(state->mutex);
      if (state->reads_fail) return fail(ErrorCode::kIo, "read: Input/output error");
      if (offset + to.size() > file->size()) return fail(ErrorCode::kIo, "it ends too early");
      std::memcpy(to.data(), file->data() + offset, to.size());
      return {};
    }
    // Half of what does not fit is written all the same, as disks do.
    Result<void> write(uint64_t offset, std::span<const std::byte> bytes) override {
      const std::lock_guard lock(state->mutex);
      const Result<void> room = spend(*state, static_cast<int64_t>(bytes.size()));
      if (!room) bytes = bytes.first(bytes.size() / 2);
      if (file->size() < offset + bytes.size()) file->resize(offset + bytes.size());
      std::memcpy(file->data() + offset, bytes.data(), bytes.size());
      return room;
    }
    Result<void> truncate(uint64_t bytes) override {
      const std::lock_guard lock(state->mutex);
      file->resize(bytes);
      return {};
    }
    Result<void> sync() override { return {}; }
    Result<uint64_t> size() const override {
      const std::lock_guard lock(state->mutex);
      return file->size();
    }

    const std::shared_ptr<State> state;
    const std::shared_ptr<std::string> file;
  };

  const std::shared_ptr<State> state_;
};

}  // namespace weir::kv::disk
