// WeightStore: the memory of a model's weights. Quantised ones are repacked once into huge
// pages, by the whole team, and the pages they came from dropped as they are read; float weights
// stay mapped from the file; small vectors are widened to float32.
//
// Threads: filled by one thread; pack() uses the team; immutable afterwards.
// Invariants: (1) pointers handed out stay valid for the store's life; (2) the weights of a matrix
// that place() has not mapped are filled by pack().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/huge_pages.h"
#include "base/result.h"
#include "base/tensor.h"
#include "base/thread_team.h"
#include "kernels/ops.h"
#include "kernels/repack.h"
#include "model/placer.h"

namespace weir::model {

class WeightStore final : public Placer {
 public:
  // 64-byte aligned memory that lives as long as the store, to be written to at once.
  Result<std::byte*> allocate(int64_t bytes) { return allocate(bytes, now_); }

  // Float rows stay in place in their file, unless it has them unaligned. Of those and of any other
  // matrix a copy is planned, in the form of `matrix.linear`: codes are packed, floats are copied
  // or gathered row by row, codes that are wanted as columns become float32, exactly, and rows of a
  // source are packed as their RowPacker says.
  Result<Linear> place(const StoredMatrix& matrix) override;
  // `count` elements, as `runs` has them, widened to float32, plus `offset`.
  Result<const float*> add_widened(DType type, const std::byte* data, int64_t count, float offset,
                                   const RowRuns& runs = {});

  // Of [rows, columns] elements: one over the length of each row.
  Result<const float*> add_row_scales(DType type, const std::byte* data, int64_t rows,
                                      int64_t columns);

  // [rows, columns] elements, widened to float32, as [columns, rows].
  Result<const float*> add_transposed(DType type, const std::byte* data, int64_t rows,
                                      int64_t columns);

  // [rows, columns] elements, widened to float32, in strips of `strip` rows, each as [columns,
  // strip]; the last one is filled up with zeros. f(x) stands for each.
  Result<const float*> add_strips(DType type, const std::byte* data, int64_t rows, int64_t columns,
                                  int64_t strip, float (*f)(float));

  // Repacks and copies what is planned, until all is done or it is `until`, but for what has begun
  // by then: a millisecond or so. True when all is. `progress(done, total)` in stored bytes, from
  // the calling thread.
  bool pack(
      ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress,
      std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());

  // Float matrices are copied too: nothing of the file stays mapped in memory, where it would
  // compete with what is read from it.
  void copy_floats() { copy_floats_ = true; }

  // What pack() found in a tensor that cannot be a weight; empty: nothing.
  const std::string& fault() const { return fault_; }

  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t mapped_bytes() const { return mapped_bytes_; }
  // The files that some weight is used from in place, and that may so change under it.
  std::span<const FileView* const> mapped_files() const { return mapped_files_; }

 private:
  // Rows of codes as stored, and the tensors they lie in.
  struct QuantSource {
    kernels::StoredQuant stored{};
    const FileView* file[3] = {};  // Of words, scales and biases.
    size_t offset[3] = {};         // Of the first row in that file.
    RowRuns runs{};
  };
  // A float matrix [n, k] that is not stored row by row: transposed, or its rows among others.
  struct ScatteredFloats {
    const FileView* file = nullptr;
    DType type = DType::kF32;
    const std::byte* data = nullptr;  // Of its first element.
    int32_t n = 0, k = 0;
    int64_t row_step = 0, column_step = 0;  // In elements.
    RowRuns runs{};

    int64_t bytes() const { return int64_t{n} * k * dtype_bytes(type); }
  };
  static QuantSource source_of(const StoredMatrix& matrix);
  // place(), by how the matrix is stored and how kernels want it: their weights.
  Result<void> add_packed(const StoredMatrix& matrix, Linear& out);
  Result<const void*> add_floats(const StoredMatrix& matrix);
  Result<const void*> add_gathered(const StoredMatrix& matrix);
  Result<const void*> add_turned(const StoredMatrix& matrix);
  Result<void> add_sourced(const StoredMatrix& matrix, Linear& out);

  struct RowBytes {
    int64_t words, scales;
    int64_t all() const { return words + 2 * scales; }
  };
  static RowBytes row_bytes(const kernels::StoredQuant& stored);
  static void drop_rows(const QuantSource& source, const RowBytes& row, int64_t first,
                        int64_t count);
  template <class T>
  static void gather(const ScatteredFloats& source, int32_t begin, int32_t end, std::byte* rows);

  // A unit of work: blocks of 16 rows of one matrix.
  struct Job {
    QuantSource source;
    uint8_t* words = nullptr;
    uint8_t* scales = nullptr;
    int32_t begin = 0, end = 0;
  };
  static int64_t run(const Job& job);
  // The same for rows that come in runs: they are brought together first.
  static void repack_runs(const Job& job, int64_t first, int64_t rows);
  // Rows [begin, end) of a matrix that is gathered.
  struct GatherJob {
    ScatteredFloats source;
    std::byte* rows = nullptr;
    int32_t begin = 0, end = 0;
  };
  static int64_t run(const GatherJob& job);
  // A piece of float rows that are copied as they are.
  struct CopyJob {
    const FileView* file = nullptr;
    size_t offset = 0;
    std::span<std::byte> to;
  };
  static int64_t run(const CopyJob& job);
  struct TurnJob {
    QuantSource source;
    float* rows = nullptr;
  };
  static int64_t run(const TurnJob& job);
  // A matrix whose rows a RowSource reads, and how many of its jobs are still to be done.
  struct Sourced {
    explicit Sourced(const StoredMatrix& stored) : matrix(stored), packer(stored.packer()) {}

    StoredMatrix matrix;
    RowPacker packer;
    RowPacker::Target to;
    int64_t bytes = 0;
    std::atomic<int32_t> jobs{0};
    std::atomic<bool> finite{true};
  };
  // Rows [begin, end) of it.
  struct SourcedJob {
    Sourced* matrix = nullptr;
    int32_t begin = 0, end = 0;
  };
  static int64_t run(const SourcedJob& job);
  void finish_packing();

  // Pieces of memory that lie one after another.
  struct Slabs {
    std::vector<HugeBuffer> slabs;
    size_t used = 0;  // Of the last one.
  };
  Result<std::byte*> allocate(int64_t bytes, Slabs& slabs);
  // Memory that pack() fills.
  Result<std::byte*> reserve(int64_t bytes) { return allocate(bytes, later_); }

  // Apart, so that a model that is bound and never packed takes the memory of its vectors: a page
  // that has one of them besides what is filled later would be taken whole.
  Slabs now_, later_;
  std::vector<Job> jobs_;
  std::vector<GatherJob> gather_jobs_;
  std::vector<CopyJob> copy_jobs_;
  std::vector<TurnJob> turn_jobs_;
  std::vector<std::unique_ptr<Sourced>> sourced_;
  std::vector<SourcedJob> sourced_jobs_;
  std::string fault_;
  int64_t stored_bytes_ = 0;
  std::atomic<int32_t> next_job_{0};  // In pack(), which may be called again to go on.
  std::atomic<int64_t> done_bytes_{0};
  int64_t packed_bytes_ = 0;
  int64_t mapped_bytes_ = 0;
  std::vector<const FileView*> mapped_files_;
  bool copy_floats_ = false;
};

}  // namespace weir::model
