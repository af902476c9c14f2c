// What calls cost a program: cost [LAUNCHES]. Prints a name and nanoseconds a line, the best of a hundred short rounds.
// With LAUNCHES it also launches that many kernels a round and waits for them, each way: for a real driver.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef void *Handle;
typedef unsigned U;
typedef int Result;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

#define TIME(name, n, work, after)                          \
    do {                                                    \
        double best = 1e18, whole = 1e18;                   \
        for (int round = 0; round < 100; round++) {           \
            double begin = now();                           \
            for (int i = 0; i < (n); i++) { work; }         \
            double one = (now() - begin) / (n);             \
            after;                                          \
            double all = (now() - begin) / (n);             \
            if (one < best) best = one;                     \
            if (all < whole) whole = all;                   \
        }                                                   \
        printf("%-44s %9.1f %9.1f\n", name, best, whole);   \
    } while (0)

static const char PTX[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry chosen(.param .u64 out) { ret; }\n"
    ".visible .entry other(.param .u64 out) { ret; }\n";

#define GET(name, types) Result(*name) types = (Result(*) types)dlsym(driver, #name)

int main(int argc, char **argv) {
    int launches = argc > 1 ? atoi(argv[1]) : 0;
    Handle driver = dlopen("libcuda.so.1", RTLD_NOW), libc = dlopen("libc.so.6", RTLD_NOW), context, module;
    if (!driver) return printf("%s\n", dlerror()), 2;
    GET(cuInit, (U));
    GET(cuDevicePrimaryCtxRetain, (Handle *, int));
    GET(cuCtxSetCurrent, (Handle));
    GET(cuCtxSynchronize, (void));
    GET(cuModuleLoadData, (Handle *, const void *));
    GET(cuModuleGetFunction, (Handle *, Handle, const char *));
    GET(cuStreamCreate, (Handle *, U));
    GET(cuLaunchKernel, (Handle, U, U, U, U, U, U, U, Handle, void **, void **));
    GET(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *));
    Handle chosen, other, stream;
    unsigned long long out = 0;
    void *params[] = {&out}, *found;
    int status;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuModuleLoadData(&module, PTX) ||
        cuModuleGetFunction(&chosen, module, "chosen") || cuModuleGetFunction(&other, module, "other") ||
        cuStreamCreate(&stream, 1))
        return printf("the driver failed\n"), 1;
    volatile Handle sink;
    printf("%-44s %9s %9s\n", "", "call", "and wait");
    TIME("dlsym, another library's name", 5000, sink = dlsym(libc, "strlen"), );
    TIME("dlsym, a driver's name that is not hooked", 5000, sink = dlsym(driver, "cuDeviceGet"), );
    TIME("dlsym, a hooked name", 5000, sink = dlsym(driver, "cuLaunchKernel"), );
    TIME("cuGetProcAddress, a hooked name", 5000, cuGetProcAddress_v2("cuLaunchKernel", &found, 12000, 0, &status), );
    int n = launches ? launches : 20000;
    TIME("launch of `other`", n, cuLaunchKernel(other, 1, 1, 1, 32, 1, 1, 0, stream, params, 0), cuCtxSynchronize());
    // Few enough that memory for all of a round is there at once.
    n = launches ? launches : 400;
    TIME("launch of `chosen`", n, cuLaunchKernel(chosen, 1, 1, 1, 32, 1, 1, 0, stream, params, 0),
         launches ? cuCtxSynchronize() : usleep(20000));
    (void)sink;
    return 0;
}
