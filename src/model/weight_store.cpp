#include "model/weight_store.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

namespace weir::model {

namespace {

constexpr size_t kAlign = 64;
// Address space, not memory: a slab is touched as far as it is used.
constexpr size_t kSlabBytes = size_t{64} << 20;
// About 1 MiB of 4-bit words at a width of 4,096: long enough to keep a claim cheap, short enough
// that the last block does not keep the others waiting.
constexpr int32_t kJobBlocks = 32;
// A piece of floats that are copied: as much as a job of words.
constexpr int64_t kCopyBytes = int64_t{1} << 20;
// Rows that are gathered together: 64 bytes of a transposed column of 16-bit numbers.
constexpr int32_t kGatherRows = 32;

float widen(DType type, const std::byte* data, int64_t i) {
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, data + i * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, data + i * 2, 2);
  return type == DType::kF16 ? half_to_float(bits) : bf16_to_float(bits);
}

}  // namespace

Result<std::byte*> WeightStore::allocate(int64_t bytes, Slabs& in) {
  const size_t size = (static_cast<size_t>(bytes) + kAlign - 1) / kAlign * kAlign;
  if (in.slabs.empty() || in.slabs.back().bytes() - in.used < size) {
    WEIR_ASSIGN(HugeBuffer slab, HugeBuffer::allocate(std::max(size, kSlabBytes)));
    in.slabs.push_back(std::move(slab));
    in.used = 0;
  }
  std::byte* memory = in.slabs.back().data() + in.used;
  in.used += size;
  packed_bytes_ += static_cast<int64_t>(size);
  return memory;
}

// Rows [first, first + count) of the source have been read.
void WeightStore::drop_rows(const QuantSource& source, const RowBytes& row, int64_t first,
                            int64_t count) {
  const int64_t sizes[3] = {row.words, row.scales, row.scales};
  for (int i = 0; i < 3; ++i)
    source.file[i]->drop(source.offset[i] + static_cast<size_t>(first * sizes[i]),
                         static_cast<size_t>(count * sizes[i]));
}

WeightStore::RowBytes WeightStore::row_bytes(const kernels::StoredQuant& s) {
  const int64_t scale = s.scale_type == kernels::FloatType::kF32 ? 4 : 2;
  return {int64_t{s.k} * s.bits / 8, s.k / s.group * scale};
}

Result<Linear> WeightStore::place(const StoredMatrix& m) {
  Linear out = m.linear;
  Result<void> placed;
  if (m.source) {
    placed = add_sourced(m, out);
  } else if (m.linear.has_codes()) {
    placed = add_packed(m, out);
  } else {
    const Result<const void*> rows = m.format      ? add_turned(m)
                                     : m.in_rows() ? add_floats(m)
                                                   : add_gathered(m);
    if (rows)
      out.floats.rows = *rows;
    else
      placed = tl::unexpected(rows.error());
  }
  if (!placed)
    return fail(placed.error().code, "tensor '" + m.name + "': " + placed.error().message);
  return out;
}

WeightStore::QuantSource WeightStore::source_of(const StoredMatrix& m) {
  const auto bytes = [&](size_t i) { return reinterpret_cast<const uint8_t*>(m.piece[i].data()); };
  const bool turned = m.turned();
  QuantSource source;
  source.stored = {.n = turned ? m.linear.k : m.linear.n,
                   .k = turned ? m.linear.n : m.linear.k,
                   .group = m.format->group,
                   .bits = m.format->bits,
                   .scale_type = float_type(m.scale_type),
                   .words = bytes(0),
                   .scales = bytes(1),
                   .biases = bytes(2)};
  for (size_t i = 0; i < 3; ++i) {
    source.file[i] = m.piece[i].file;
    source.offset[i] = m.piece[i].offset;
  }
  source.runs = m.runs;
  return source;
}

Result<void> WeightStore::add_packed(const StoredMatrix& m, Linear& out) {
  const QuantSource source = source_of(m);
  const kernels::StoredQuant& s = source.stored;
  WEIR_ASSIGN(std::byte * memory, reserve(kernels::packed_word_bytes(s.n, s.k, out.quant.bits)));
  auto* words = reinterpret_cast<uint8_t*>(memory);
  WEIR_ASSIGN(memory, reserve(kernels::packed_scale_bytes(s.n, s.k, s.group, s.scale_type)));
  auto* scales = reinterpret_cast<uint8_t*>(memory);
  out.quant.words = words;
  out.quant.scales = scales;
  const int32_t blocks = (s.n + kernels::kBlockRows - 1) / kernels::kBlockRows;
  for (int32_t begin = 0; begin < blocks; begin += kJobBlocks)
    jobs_.push_back({source, words, scales, begin, std::min(begin + kJobBlocks, blocks)});
  stored_bytes_ += s.n * row_bytes(s).all();
  return {};
}

Result<const void*> WeightStore::add_floats(const StoredMatrix& m) {
  const FileView& file = *m.piece[0].file;
  const std::byte* data = m.piece[0].data();
  const int64_t bytes = m.numbers() * dtype_bytes(m.type);
  if (!copy_floats_ &&
      reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(dtype_bytes(m.type)) == 0) {
    mapped_bytes_ += bytes;
    if (file.mapped() && std::ranges::find(mapped_files_, &file) == mapped_files_.end())
      mapped_files_.push_back(&file);
    return data;
  }
  WEIR_ASSIGN(std::byte * copy, reserve(bytes));
  for (int64_t at = 0; at < bytes; at += kCopyBytes)
    copy_jobs_.push_back({&file,
                          m.piece[0].offset + static_cast<uint64_t>(at),
                          {copy + at, static_cast<size_t>(std::min(kCopyBytes, bytes - at))}});
  stored_bytes_ += bytes;
  return copy;
}

Result<const void*> WeightStore::add_gathered(const StoredMatrix& m) {
  const ScatteredFloats source = {.file = m.piece[0].file,
                                  .type = m.type,
                                  .data = m.piece[0].data(),
                                  .n = m.linear.n,
                                  .k = m.linear.k,
                                  .row_step = m.row_step,
                                  .column_step = m.column_step,
                                  .runs = m.runs};
  WEIR_ASSIGN(std::byte * rows, reserve(source.bytes()));
  for (int32_t begin = 0; begin < source.n; begin += kGatherRows)
    gather_jobs_.push_back({source, rows, begin, std::min(begin + kGatherRows, source.n)});
  stored_bytes_ += source.bytes();
  return rows;
}

Result<const void*> WeightStore::add_turned(const StoredMatrix& m) {
  WEIR_ASSIGN(std::byte * rows, reserve(m.numbers() * 4));
  turn_jobs_.push_back({source_of(m), reinterpret_cast<float*>(rows)});
  const kernels::StoredQuant& s = turn_jobs_.back().source.stored;
  stored_bytes_ += s.n * row_bytes(s).all();
  return rows;
}

Result<void> WeightStore::add_sourced(const StoredMatrix& m, Linear& out) {
  auto sourced = std::make_unique<Sourced>(m);
  WEIR_ASSIGN(std::byte * memory, reserve(out.number_bytes()));
  sourced->to.numbers = reinterpret_cast<uint8_t*>(memory);
  WEIR_ASSIGN(memory, reserve(out.scale_bytes()));
  sourced->to.scales = reinterpret_cast<uint8_t*>(memory);
  out.point(sourced->to.numbers, sourced->to.scales);
  for (size_t i = 0; i < static_cast<size_t>(m.pieces); ++i)
    sourced->bytes += static_cast<int64_t>(m.piece[i].bytes);
  stored_bytes_ += sourced->bytes;
  const int32_t step = m.turned() ? out.n : kJobBlocks * kernels::kBlockRows;
  for (int32_t begin = 0; begin < out.n; begin += step, ++sourced->jobs)
    sourced_jobs_.push_back({sourced.get(), begin, std::min(begin + step, out.n)});
  sourced_.push_back(std::move(sourced));
  return {};
}

Result<const float*> WeightStore::add_widened(DType type, const std::byte* data, int64_t count,
                                              float offset, const RowRuns& runs) {
  WEIR_ASSIGN(std::byte * memory, allocate(count * 4));
  auto* out = reinterpret_cast<float*>(memory);
  for (int64_t i = 0; i < count; ++i) out[i] = widen(type, data, runs.stored(i)) + offset;
  return out;
}

Result<const float*> WeightStore::add_row_scales(DType type, const std::byte* data, int64_t rows,
                                                 int64_t columns) {
  constexpr double kTiny = 1e-7;  // Rows of zeros stay zeros.
  WEIR_ASSIGN(std::byte * memory, allocate(rows * 4));
  auto* out = reinterpret_cast<float*>(memory);
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const double x = widen(type, data, r * columns + c);
      squares += x * x;
    }
    out[r] = static_cast<float>(1 / (std::sqrt(squares) + kTiny));
  }
  return out;
}

Result<const float*> WeightStore::add_transposed(DType type, const std::byte* data, int64_t rows,
                                                 int64_t columns) {
  WEIR_ASSIGN(std::byte * memory, allocate(rows * columns * 4));
  auto* out = reinterpret_cast<float*>(memory);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) out[c * rows + r] = widen(type, data, r * columns + c);
  return out;
}

Result<const float*> WeightStore::add_strips(DType type, const std::byte* data, int64_t rows,
                                             int64_t columns, int64_t strip, float (*f)(float)) {
  const int64_t padded = (rows + strip - 1) / strip * strip;
  WEIR_ASSIGN(std::byte * memory, allocate(padded * columns * 4));
  auto* out = reinterpret_cast<float*>(memory);
  for (int64_t first = 0; first < padded; first += strip)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = first; r < first + strip; ++r)
        *out++ = r < rows ? f(widen(type, data, r * columns + c)) : 0.0f;
  return reinterpret_cast<const float*>(memory);
}

int64_t WeightStore::run(const Job& job) {
  const kernels::StoredQuant& s = job.source.stored;
  const int64_t first = int64_t{job.begin} * kernels::kBlockRows;
  const int64_t rows = std::min<int64_t>(int64_t{job.end} * kernels::kBlockRows, s.n) - first;
  const RowBytes row = row_bytes(s);
  if (job.source.runs.one()) {
    kernels::repack_blocks(s, job.begin, job.end, job.words, job.scales);
    drop_rows(job.source, row, first, rows);
  } else {
    repack_runs(job, first, rows);
  }
  return rows * row.all();
}

void WeightStore::repack_runs(const Job& job, int64_t first, int64_t rows) {
  const kernels::StoredQuant& s = job.source.stored;
  const RowBytes row = row_bytes(s);
  const auto together = [&](const uint8_t* from, int64_t bytes) {
    std::vector<uint8_t> out(static_cast<size_t>(rows * bytes));
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(out.data() + r * bytes, from + job.source.runs.stored(first + r) * bytes,
                  static_cast<size_t>(bytes));
    return out;
  };
  const std::vector<uint8_t> words = together(s.words, row.words),
                             scales = together(s.scales, row.scales),
                             biases = together(s.biases, row.scales);
  kernels::StoredQuant some = s;
  some.n = static_cast<int32_t>(rows);
  some.words = words.data();
  some.scales = scales.data();
  some.biases = biases.data();
  const auto before = static_cast<int32_t>(first);
  kernels::repack_blocks(
      some, 0, job.end - job.begin,
      job.words + kernels::packed_word_bytes(before, s.k, kernels::container_bits(s.bits)),
      job.scales + kernels::packed_scale_bytes(before, s.k, s.group, s.scale_type));
}

int64_t WeightStore::run(const TurnJob& job) {
  const kernels::StoredQuant& s = job.source.stored;
  kernels::dequantise_turned(s, job.rows);
  const RowBytes row = row_bytes(s);
  drop_rows(job.source, row, 0, s.n);
  return s.n * row.all();
}

int64_t WeightStore::run(const SourcedJob& job) {
  Sourced& s = *job.matrix;
  const bool finite =
      s.matrix.turned()
          ? s.packer.pack_turned(s.matrix.bases(), reinterpret_cast<float*>(s.to.numbers))
          : s.packer.pack(s.matrix.bases(), job.begin, job.end, s.to);
  if (!finite) s.finite.store(false, std::memory_order_relaxed);
  // Rows of all jobs may lie among one another in the file.
  if (s.jobs.fetch_sub(1) == 1)
    for (size_t i = 0; i < static_cast<size_t>(s.matrix.pieces); ++i)
      s.matrix.piece[i].file->drop(s.matrix.piece[i].offset, s.matrix.piece[i].bytes);
  return s.bytes * (job.end - job.begin) / s.matrix.linear.n;
}

// Column by column: where the source is transposed, the rows' elements of a column lie together.
template <class T>
void WeightStore::gather(const ScatteredFloats& s, int32_t begin, int32_t end, std::byte* rows) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  for (int64_t c = 0; c < s.k; ++c)
    for (int64_t r = begin; r < end; ++r)
      std::memcpy(rows + (r * s.k + c) * kSize,
                  s.data + (s.runs.stored(r) * s.row_step + c * s.column_step) * kSize, sizeof(T));
}

int64_t WeightStore::run(const GatherJob& job) {
  const ScatteredFloats& s = job.source;
  if (dtype_bytes(s.type) == 4)
    gather<uint32_t>(s, job.begin, job.end, job.rows);
  else
    gather<uint16_t>(s, job.begin, job.end, job.rows);
  return (job.end - job.begin) * (s.bytes() / s.n);
}

int64_t WeightStore::run(const CopyJob& job) {
  std::memcpy(job.to.data(), job.file->bytes().data() + job.offset, job.to.size());
  job.file->drop(job.offset, job.to.size());
  return static_cast<int64_t>(job.to.size());
}

bool WeightStore::pack(ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress,
                       std::chrono::steady_clock::time_point until) {
  const auto packs = static_cast<int32_t>(jobs_.size());
  const auto gathers = packs + static_cast<int32_t>(gather_jobs_.size());
  const auto copies = gathers + static_cast<int32_t>(copy_jobs_.size());
  const auto turns = copies + static_cast<int32_t>(turn_jobs_.size());
  const auto count = turns + static_cast<int32_t>(sourced_jobs_.size());
  const bool ends = until != std::chrono::steady_clock::time_point::max();
  team.run([&](int member) {
    while (!ends || std::chrono::steady_clock::now() < until) {
      const int32_t i = next_job_.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) break;
      const int64_t bytes = i < packs     ? run(jobs_[static_cast<size_t>(i)])
                            : i < gathers ? run(gather_jobs_[static_cast<size_t>(i - packs)])
                            : i < copies  ? run(copy_jobs_[static_cast<size_t>(i - gathers)])
                            : i < turns   ? run(turn_jobs_[static_cast<size_t>(i - copies)])
                                          : run(sourced_jobs_[static_cast<size_t>(i - turns)]);
      done_bytes_.fetch_add(bytes, std::memory_order_relaxed);
      if (member == 0 && progress)
        progress(done_bytes_.load(std::memory_order_relaxed), stored_bytes_);
    }
  });
  if (next_job_.load(std::memory_order_relaxed) < count) return false;
  if (progress) progress(stored_bytes_, stored_bytes_);
  finish_packing();
  return true;
}

// All jobs are done.
void WeightStore::finish_packing() {
  // Matrices that are gathered lie among one another: only now are all of them read.
  for (const Job& job : jobs_)
    if (const kernels::StoredQuant& s = job.source.stored; !job.source.runs.one() && job.begin == 0)
      drop_rows(job.source, row_bytes(s), 0, job.source.runs.stored(s.n - 1) + 1);
  for (const GatherJob& job : gather_jobs_) {
    const ScatteredFloats& s = job.source;
    const int64_t last = s.runs.stored(s.n - 1) * s.row_step + (s.k - 1) * s.column_step;
    if (job.begin == 0)
      s.file->drop(static_cast<size_t>(s.data - s.file->bytes().data()),
                   static_cast<size_t>((last + 1) * dtype_bytes(s.type)));
  }
  const auto bad = std::ranges::find_if(sourced_, [](const auto& s) { return !s->finite; });
  if (bad != sourced_.end())
    fault_ = (*bad)->matrix.piece[0].file->name() + ": tensor '" + (*bad)->matrix.name +
             "': expected finite weights and scales, found an infinity or a NaN";
  sourced_.clear();
  sourced_jobs_ = {};
  jobs_ = {};
  gather_jobs_ = {};
  copy_jobs_ = {};
  turn_jobs_ = {};
  next_job_ = 0;
}

}  // namespace weir::model
