// Bundles of experts: what is written is read back, and nothing else is taken for one.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <random>

#include "base/crc32c.h"
#include "base/huge_pages.h"
#include "ssd/bundle_writer.h"
#include "ssd/expert_bundle.h"
#include "temp_file.h"

namespace weir::ssd {
namespace {

constexpr SourceHash kSource = {0x0123456789abcdef, 0xfedcba9876543210};
constexpr int32_t kLayers = 3, kExperts = 5;

ExpertCatalogue catalogue() {
  ExpertCatalogue made(kExperts, /*in_slot_form=*/false);
  made.add_file("model.safetensors");
  for (int32_t l = 0; l < kLayers; ++l) {
    made.add_layer({5000u + 4096u * static_cast<uint64_t>(l), 4096}, {1, 1});
    for (int32_t e = 0; e < kExperts; ++e)
      made.add_expert(std::array<StoredRange, 2>{{{0, 0, 100}, {0, 100, 100}}});
  }
  return made;
}

// What layer `l`'s expert `e` holds: bytes that tell their place.
void fill(ReadMemory& memory, int32_t l, int32_t e, uint64_t bytes) {
  fill_words(static_cast<uint64_t>(l * 100 + e), 0, memory.span(0, bytes));
}

class Bundle : public testing::Test {
 protected:
  Result<std::unique_ptr<BundleWriter>> writer(uint64_t reserve = 0) {
    return BundleWriter::create(path_, plan_bundle(catalogue_, kSource), reserve);
  }
  // Layers until `end`.
  void write_layers(BundleWriter& writer, int32_t end) {
    ReadMemory memory(1 << 20);
    for (int32_t l = writer.layers_done(); l < end; ++l) {
      for (int32_t e = kExperts - 1; e >= 0; --e) {  // In any order.
        fill(memory, l, e, catalogue_.slot_bytes(catalogue_.layer(l).class_index));
        const Result<void> written = writer.write(l, e, memory.at(0));
        ASSERT_TRUE(written) << written.error().message;
      }
      ASSERT_TRUE(writer.end_layer());
    }
  }
  std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  void write_all() {
    auto made = writer();
    ASSERT_TRUE(made) << made.error().message;
    write_layers(**made, kLayers);
    ASSERT_TRUE((*made)->finish());
  }

  TempFolder folder_;
  std::string path_ = folder_.path() + "/weir-experts.bundle", part_ = path_ + ".part";
  ExpertCatalogue catalogue_ = catalogue();
};

TEST_F(Bundle, HoldsWhatWasWritten) {
  write_all();
  const Result<ExpertBundle> bundle = ExpertBundle::open(path_);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_TRUE(bundle->head.complete);
  EXPECT_EQ(bundle->head.source, kSource);
  ASSERT_EQ(bundle->index.size(), static_cast<size_t>(kLayers * kExperts));
  const std::string text = contents(path_);
  ReadMemory memory(1 << 20);
  for (int32_t l = 0; l < kLayers; ++l)
    for (int32_t e = 0; e < kExperts; ++e) {
      const PackedExpert& entry = bundle->index[static_cast<size_t>(l * kExperts + e)];
      const uint64_t size = uint64_t{entry.bytes[0]} + entry.bytes[1];
      fill(memory, l, e, size);
      ASSERT_LE(entry.offset + size, text.size());
      EXPECT_EQ(std::memcmp(text.data() + entry.offset, memory.at(0), size), 0) << l << " " << e;
      EXPECT_EQ(entry.crc[0], crc32c(memory.span(0, entry.bytes[0])));
      EXPECT_EQ(entry.crc[1], crc32c(memory.span(entry.bytes[0], entry.bytes[1])));
    }
  ExpertCatalogue used = catalogue();
  ASSERT_TRUE(used.use_bundle(path_, bundle->index));
  EXPECT_TRUE(used.packed() && used.in_slot_form());
  const StoredRange range = used.packed_range(1, 2, 1);
  EXPECT_EQ(used.files()[static_cast<size_t>(range.file)], path_);
  EXPECT_EQ(range.offset, bundle->index[7].offset + bundle->index[7].bytes[0]);
}

TEST_F(Bundle, GoesOnWhereAnEarlierWriterStopped) {
  write_all();
  const std::string whole = contents(path_);
  std::remove(path_.c_str());
  {
    auto first = writer();
    ASSERT_TRUE(first) << first.error().message;
    write_layers(**first, 2);
    EXPECT_FALSE(writer()) << "two at once";
  }
  EXPECT_TRUE(contents(path_).empty());
  const auto unfinished = ExpertBundle::open(part_);
  ASSERT_TRUE(unfinished) << unfinished.error().message;
  EXPECT_FALSE(unfinished->head.complete);
  EXPECT_EQ(unfinished->index.size(), size_t{2 * kExperts});
  auto second = writer();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ((*second)->layers_done(), 2);
  write_layers(**second, kLayers);
  ASSERT_TRUE((*second)->finish());
  EXPECT_EQ(contents(path_), whole);
  EXPECT_FALSE(std::filesystem::exists(part_));
}

TEST_F(Bundle, BeginsAnewWhereTheBeginningIsAnothers) {
  {
    auto first = writer();
    ASSERT_TRUE(first);
    write_layers(**first, 2);
  }
  auto other = BundleWriter::create(path_, plan_bundle(catalogue_, {1, 2}), 0);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ((*other)->layers_done(), 0);
}

TEST_F(Bundle, LeavesTheReserveFree) {
  const auto refused = writer(uint64_t{1} << 60);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCapacity);
  EXPECT_NE(refused.error().message.find("--disk-reserve"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(part_));
}

TEST_F(Bundle, LeavesNothingWhereThereIsNoRoom) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 64 << 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto refused = writer();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCapacity);
  EXPECT_NE(refused.error().message.find("deleted"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(std::filesystem::exists(part_));
}

TEST_F(Bundle, DeletesWhatItHasWrittenWhenTheRoomEnds) {
  auto made = writer();
  ASSERT_TRUE(made);
  write_layers(**made, 1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 64 << 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  ReadMemory memory(1 << 20);
  const Result<void> written = (*made)->write(1, kExperts - 1, memory.at(0));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kCapacity);
  EXPECT_FALSE(std::filesystem::exists(part_));
}

// One bit anywhere in what is checked at the start is found at the start.
TEST_F(Bundle, NoBitOfSuperblockAndIndexMayChange) {
  write_all();
  const std::string text = contents(path_);
  ASSERT_TRUE(ExpertBundle::parse(bytes_of(text), text.size()));
  const size_t checked = kBlockBytes + size_t{kLayers * kExperts} * 24;
  for (size_t at = 0; at < checked; ++at) {
    std::string changed = text.substr(0, 2 * kBlockBytes);
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    EXPECT_FALSE(ExpertBundle::parse(bytes_of(changed), text.size())) << at;
  }
  for (const size_t size : {size_t{0}, size_t{100}, size_t{kBlockBytes}, size_t{checked - 1}})
    EXPECT_FALSE(ExpertBundle::parse(bytes_of(text).first(size), text.size())) << size;
  EXPECT_FALSE(ExpertBundle::parse(bytes_of(text), text.size() - 1)) << "truncated";
}

// With right checksums around wrong numbers.
TEST_F(Bundle, EveryNumberIsChecked) {
  const ExpertBundle plan = plan_bundle(catalogue_, kSource);
  const auto parse = [](BundleHead head, std::vector<PackedExpert> index, uint64_t file_bytes) {
    const std::vector<std::byte> entries = encode(index);
    head.index_crc = crc32c(entries);
    head.layers_done = head.layers;
    head.complete = true;
    const auto block = encode(head);
    std::vector<std::byte> bytes(block.begin(), block.end());
    bytes.insert(bytes.end(), entries.begin(), entries.end());
    return ExpertBundle::parse(bytes, file_bytes).has_value();
  };
  const uint64_t size = plan.head.file_bytes;
  EXPECT_TRUE(parse(plan.head, plan.index, size));
  const auto with = [&](auto&& change) {
    std::vector<PackedExpert> index = plan.index;
    change(index[4]);
    return parse(plan.head, index, size);
  };
  EXPECT_FALSE(with([](PackedExpert& e) { e.offset += 1; }));
  EXPECT_FALSE(with([](PackedExpert& e) { e.offset = 0; }));
  EXPECT_FALSE(with([](PackedExpert& e) { e.offset = ~uint64_t{4095}; }));
  EXPECT_FALSE(with([&](PackedExpert& e) { e.offset = size; }));
  EXPECT_FALSE(with([](PackedExpert& e) { e.bytes[0] = 0; }));
  EXPECT_FALSE(with([](PackedExpert& e) { e.bytes[1] = 100; }));
  EXPECT_FALSE(with([](PackedExpert& e) { e.bytes[1] = uint32_t{1} << 31; }));
  BundleHead head = plan.head;
  head.layers = head.experts = ~uint32_t{0};
  EXPECT_FALSE(parse(head, plan.index, size));
  head = plan.head;
  head.experts = 0;
  EXPECT_FALSE(parse(head, plan.index, size));
  head = plan.head;
  head.layers = 1000;
  EXPECT_FALSE(parse(head, plan.index, size));
}

TEST_F(Bundle, OfAnotherLayoutIsRefused) {
  std::vector<PackedExpert> index = plan_bundle(catalogue_, kSource).index;
  index[3].bytes[0] += kBlockBytes;
  EXPECT_FALSE(catalogue_.use_bundle(path_, index));
  index.pop_back();
  EXPECT_FALSE(catalogue_.use_bundle(path_, index));
  EXPECT_FALSE(catalogue_.packed());
}

}  // namespace
}  // namespace weir::ssd
