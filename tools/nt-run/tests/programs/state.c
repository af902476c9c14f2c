// A driver-API program whose host and kernels share variables of a module, for the tests of nt-run.
//
//     state IMAGE ROUNDS module|library
//
// IMAGE is `state.ptx`, loaded as one or the other. Before each launch the host sets the constants, and a kernel writes them by their address; now and
// then the host sets `offset`, which a kernel sets as well. In the end all variables are read back. Everything is computed here too: the last word is `ok`, or the
// exit status is 1.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
typedef unsigned U;
static void *driver;

#define CALL(name, types, ...)                                                     \
    do {                                                                           \
        int code = ((int(*) types)dlsym(driver, #name))(__VA_ARGS__);              \
        if (code) fprintf(stderr, "state: %s answers %d\n", #name, code), exit(2); \
    } while (0)

enum { BLOCKS = 5, THREADS = 48, N = BLOCKS * THREADS };
static Handle module, library;

static void launch(const char *kernel, uint64_t out) {
    Handle function;
    void *params[] = {&out};
    if (library) CALL(cuLibraryGetKernel, (Handle *, Handle, const char *), &function, library, kernel);
    else CALL(cuModuleGetFunction, (Handle *, Handle, const char *), &function, module, kernel);
    CALL(cuLaunchKernel, (Handle, U, U, U, U, U, U, U, Handle, void **, void **), function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
}

static uint64_t symbol(const char *name, size_t expected) {
    uint64_t address;
    size_t size;
    if (library) CALL(cuLibraryGetGlobal, (uint64_t *, size_t *, Handle, const char *), &address, &size, library, name);
    else CALL(cuModuleGetGlobal_v2, (uint64_t *, size_t *, Handle, const char *), &address, &size, module, name);
    if (size != expected) fprintf(stderr, "state: %s has %zu bytes\n", name, size), exit(2);
    return address;
}

static void put(uint64_t to, const void *from, size_t size) {
    CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), to, from, size);
}

static void check(const char *what, uint64_t from, const uint32_t *expected, int words) {
    uint32_t found[N];
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), found, from, words * 4);
    for (int i = 0; i < words; i++)
        if (found[i] != expected[i]) printf("%s[%d] is %u and not %u\n", what, i, found[i], expected[i]), exit(1);
}

int main(int argc, char **argv) {
    if (argc != 4 || !(driver = dlopen("libcuda.so.1", RTLD_NOW))) return 2;
    Handle context;
    CALL(cuInit, (U), 0);
    CALL(cuDevicePrimaryCtxRetain, (Handle *, int), &context, 0);
    CALL(cuCtxSetCurrent, (Handle), context);
    static char text[1 << 16];
    FILE *file = fopen(argv[1], "rb");
    if (!file || !fread(text, 1, sizeof text - 1, file)) return 2;
    if (!strcmp(argv[3], "library"))
        CALL(cuLibraryLoadData, (Handle *, const void *, void *, void *, U, void *, void *, U), &library, text, NULL, NULL, 0, NULL, NULL, 0);
    else CALL(cuModuleLoadData, (Handle *, const void *), &module, text);

    uint32_t out[N] = {0}, bins[8] = {0}, offset = 5, threads = 0;
    uint64_t memory, factors = symbol("factors", 16), place = symbol("offset", 4);
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &memory, sizeof out);
    put(memory, out, sizeof out);
    int rounds = atoi(argv[2]);
    for (int round = 0; round < rounds; round++) {
        uint32_t now[4] = {round + 1, round * 7, 0x80000001u, 1000 - round};
        put(factors, now, sizeof now);
        if (round % 3 == 1) offset = 100 + round, put(place, &offset, 4);
        launch("turn", factors);
        launch("scale", memory);
        launch("bump", memory);
        for (int i = 0; i < 4; i++) now[i] = now[i] * 5 + i;
        launch("through", memory);
        for (int i = 0; i < N; i++) {
            out[i] += i * now[i & 3] + offset;
            bins[i & 7]++;
            threads++;
        }
        offset = offset * 3 + 1;
        for (int i = 0; i < N; i++) out[i] ^= offset;
    }
    CALL(cuCtxSynchronize, (void));
    check("out", memory, out, N);
    check("bins", symbol("bins", 32), bins, 8);
    check("offset", place, &offset, 1);
    check("threads", symbol("threads", 4), &threads, 1);
    printf("%d rounds ok\n", rounds);
    return 0;
}
