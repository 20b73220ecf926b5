/* Preloaded into a bench and the server it starts: every fsync and fdatasync is counted in the file SYNCS_COUNTED and
 * takes SYNCS_MICROS microseconds longer. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic unsigned long *counted;
static long micros;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SYNCS_COUNTED"), *delay = getenv("SYNCS_MICROS");
    micros = delay ? atol(delay) : 0;
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(0, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) counted = page;
    close(file);
}

static int synced(long number, int file) {
    int result = (int)syscall(number, file);
    struct timespec delay = {micros / 1000000, micros % 1000000 * 1000};
    if (counted) atomic_fetch_add(counted, 1);
    if (micros) nanosleep(&delay, 0);
    return result;
}

int fsync(int file) { return synced(SYS_fsync, file); }
int fdatasync(int file) { return synced(SYS_fdatasync, file); }
