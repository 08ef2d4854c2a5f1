/* For the wheel: names of glibc as its version 2.28 has them, so that the wheel runs where glibc is older than here.

   Newer versions export some names anew (`pow@GLIBC_2.29`, `pthread_create@GLIBC_2.34`), with the meaning of the old ones,
   and have some more (`stat`, `arc4random`). The linker is told to replace each (`--wrap`, build.rs) by what is defined
   here: a jump to the old version, or what programs did before there was a function. */

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#define JUMP "jmp "
#define OLD_SETNAME "GLIBC_2.12"
#define OLD_FSTATAT "GLIBC_2.4"
#define STAT_VERSION 1
#else
#define FIRST "GLIBC_2.17"
#define JUMP "b "
#define OLD_SETNAME "GLIBC_2.17"
#define OLD_FSTATAT "GLIBC_2.17"
#define STAT_VERSION 0
#endif

/* `name` jumps to the version of it. */
#define OLD(name, version)                                                                                             \
    __asm__(".text\n.globl __wrap_" #name "\n.hidden __wrap_" #name "\n.type __wrap_" #name ", @function\n"             \
            "__wrap_" #name ":\n" JUMP "old_" #name "@PLT\n.symver old_" #name ", " #name "@" version "\n")

#if defined(__aarch64__)
#undef OLD
#define OLD(name, version)                                                                                             \
    __asm__(".text\n.globl __wrap_" #name "\n.hidden __wrap_" #name "\n.type __wrap_" #name ", %function\n"             \
            "__wrap_" #name ":\n" JUMP "old_" #name "\n.symver old_" #name ", " #name "@" version "\n")
#endif

OLD(exp, FIRST);
OLD(exp2, FIRST);
OLD(log, FIRST);
OLD(log2, FIRST);
OLD(pow, FIRST);
OLD(hypot, FIRST);
OLD(hypotf, FIRST);
OLD(pthread_getattr_np, FIRST);
OLD(pthread_sigmask, FIRST);
OLD(pthread_attr_getguardsize, FIRST);
OLD(pthread_attr_getstack, FIRST);
OLD(pthread_attr_setstacksize, FIRST);
OLD(pthread_create, FIRST);
OLD(pthread_detach, FIRST);
OLD(pthread_join, FIRST);
OLD(pthread_key_create, FIRST);
OLD(pthread_key_delete, FIRST);
OLD(pthread_once, FIRST);
OLD(pthread_rwlock_rdlock, FIRST);
OLD(pthread_rwlock_unlock, FIRST);
OLD(pthread_rwlock_wrlock, FIRST);
OLD(pthread_setname_np, OLD_SETNAME);
OLD(pthread_setspecific, FIRST);
OLD(dlopen, FIRST);
OLD(dlsym, FIRST);
OLD(dlclose, FIRST);
OLD(dlerror, FIRST);

/* Before 2.33 these were inline functions of the headers. */
int __xstat(int, const char *, void *);
int __fxstat(int, int, void *);
int __lxstat(int, const char *, void *);
int __fxstatat(int, int, const char *, void *, int);
int __xmknod(int, const char *, mode_t, dev_t *);
__asm__(".symver __xstat, __xstat@" FIRST);
__asm__(".symver __fxstat, __fxstat@" FIRST);
__asm__(".symver __lxstat, __lxstat@" FIRST);
__asm__(".symver __fxstatat, __fxstatat@" OLD_FSTATAT);
__asm__(".symver __xmknod, __xmknod@" FIRST);
#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN int __wrap_stat(const char *path, void *out) { return __xstat(STAT_VERSION, path, out); }
HIDDEN int __wrap_fstat(int file, void *out) { return __fxstat(STAT_VERSION, file, out); }
HIDDEN int __wrap_lstat(const char *path, void *out) { return __lxstat(STAT_VERSION, path, out); }
HIDDEN int __wrap_fstatat(int folder, const char *path, void *out, int flags) {
    return __fxstatat(STAT_VERSION, folder, path, out, flags);
}
/* Files have 64-bit sizes either way. */
HIDDEN int __wrap_stat64(const char *path, void *out) { return __xstat(STAT_VERSION, path, out); }
HIDDEN int __wrap_fstat64(int file, void *out) { return __fxstat(STAT_VERSION, file, out); }
HIDDEN int __wrap_lstat64(const char *path, void *out) { return __lxstat(STAT_VERSION, path, out); }
HIDDEN int __wrap_fstatat64(int folder, const char *path, void *out, int flags) {
    return __fxstatat(STAT_VERSION, folder, path, out, flags);
}
HIDDEN int __wrap_mknod(const char *path, mode_t mode, dev_t device) { return __xmknod(0, path, mode, &device); }

/* What LLVM asks how much memory it has: with numbers of 32 bits before 2.33. */
struct mallinfo {
    int numbers[10];
};
struct mallinfo2 {
    size_t numbers[10];
};
struct mallinfo mallinfo(void);
HIDDEN struct mallinfo2 __wrap_mallinfo2(void) {
    struct mallinfo found = mallinfo();
    struct mallinfo2 out;
    for (int k = 0; k < 10; k++) out.numbers[k] = (unsigned)found.numbers[k];
    return out;
}

/* Names of temporary files of libstdc++. */
ssize_t getrandom(void *, size_t, unsigned);
HIDDEN unsigned __wrap_arc4random(void) {
    unsigned out = 0;
    while (getrandom(&out, sizeof out, 0) < 0 && errno == EINTR) {
    }
    return out;
}

/* Whether libstdc++ may count references without atomic operations: it may not. */
HIDDEN char __wrap___libc_single_threaded = 0;
