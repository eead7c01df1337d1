// LD_PRELOAD library: what goes wrong with reads of a model's files, as a test says while the
// server runs. It stands in for preadv2(), with which `weir --ssd-io pread` reads experts; other
// files are read as ever.
//
// The test writes what is to happen into the file that WEIR_INJECT names, of which all of `struct
// Control` is mapped.
//
// Threads: any; each field is written by the test or counted here.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum Kind { kNone, kError, kShort, kEnd, kHold };

struct Control {
  _Atomic int32_t kind;
  _Atomic int32_t error;   // Of kError.
  _Atomic int64_t left;    // Reads that it will befall still; negative: all.
  _Atomic int64_t struck;  // Reads that it has befallen; counted here.
};

// A shorter read comes whole: so what a short one leaves does, and none is cut four times.
static const size_t kShortFrom = 16384;
// Less by a block and something, so that the rest does not begin at a block.
static const size_t kCut = 4096 + 100;

static struct Control* control(void) {
  static _Atomic(struct Control*) mapped;
  struct Control* known = atomic_load(&mapped);
  if (known) return known;
  const char* path = getenv("WEIR_INJECT");
  const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return NULL;
  known = mmap(NULL, sizeof *known, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (known == MAP_FAILED) return NULL;
  atomic_store(&mapped, known);
  return known;
}

static int of_model(int fd) {
  char link[64], path[4096];
  (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  // A file that has been replaced is called "... (deleted)".
  return strstr(path, ".safetensors") != NULL || strstr(path, ".bundle") != NULL;
}

static int take(struct Control* c) {
  int64_t left = atomic_load(&c->left);
  while (left > 0 && !atomic_compare_exchange_weak(&c->left, &left, left - 1)) {
  }
  if (left == 0) return 0;
  atomic_fetch_add(&c->struck, 1);
  return 1;
}

static ssize_t read_as_ever(int fd, const struct iovec* to, int count, off64_t offset, int flags) {
  return syscall(SYS_preadv2, fd, to, count, (long)offset, 0L, flags);
}

static ssize_t read_short(int fd, const struct iovec* to, off64_t offset, int flags) {
  const ssize_t got = read_as_ever(fd, to, 1, offset, flags);
  if (got <= (ssize_t)kCut) return got;
  memset((char*)to->iov_base + got - kCut, 0xAA, kCut);  // What was not read is not there.
  return got - (ssize_t)kCut;
}

ssize_t preadv64v2(int fd, const struct iovec* to, int count, off64_t offset, int flags) {
  struct Control* c = control();
  const int kind = c ? atomic_load(&c->kind) : kNone;
  if (kind == kNone || count != 1 || !of_model(fd) ||
      (kind == kShort && to->iov_len < kShortFrom) || !take(c))
    return read_as_ever(fd, to, count, offset, flags);
  switch (kind) {
    case kError:
      errno = atomic_load(&c->error);
      return -1;
    case kShort:
      return read_short(fd, to, offset, flags);
    case kEnd:
      return 0;
    default:
      while (atomic_load(&c->kind) == kHold) {
        const struct timespec pause = {0, 5000000};
        (void)nanosleep(&pause, NULL);
      }
      return read_as_ever(fd, to, count, offset, flags);
  }
}

ssize_t preadv2(int fd, const struct iovec* to, int count, off_t offset, int flags) {
  return preadv64v2(fd, to, count, offset, flags);
}
