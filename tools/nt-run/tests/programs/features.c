// Launches the kernels of testdata/cu/features.cu, from PTX, and prints what they print and compute: calls, recursion,
// function pointers, printf, constants, variables, dynamic shared memory, switches, local arrays, clusters.
// Usage: features MODULE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
typedef unsigned U;
static void *driver;
static Handle module;

static void *lookup(const char *name) {
    void *found = dlsym(driver, name);
    if (!found) fprintf(stderr, "features: no %s\n", name), exit(2);
    return found;
}
static void check(const char *name, int code) {
    if (code) fprintf(stderr, "features: %s answers %d\n", name, code), exit(1);
}
#define CALL(name, types, ...) check(#name, ((int(*) types)lookup(#name))(__VA_ARGS__))

static uint64_t upload(const void *bytes, size_t size) {
    uint64_t memory;
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &memory, size);
    CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), memory, bytes, size);
    return memory;
}
static void launch(const char *kernel, U blocks, U threads, U shared, void **params) {
    Handle function;
    CALL(cuModuleGetFunction, (Handle *, Handle, const char *), &function, module, kernel);
    CALL(cuLaunchKernel, (Handle, U, U, U, U, U, U, U, Handle, void **, void **), function, blocks, 1, 1, threads, 1, 1, shared, NULL, params, NULL);
}
static void show(const char *kernel, uint64_t memory, size_t words) {
    uint32_t all[1024];
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), all, memory, words * 4);
    printf("%s:", kernel);
    for (size_t i = 0; i < words; i++) printf(" %x", all[i]);
    printf("\n");
}
static uint64_t variable(const char *name) {
    uint64_t address;
    size_t size;
    CALL(cuModuleGetGlobal_v2, (uint64_t *, size_t *, Handle, const char *), &address, &size, module, name);
    return address;
}

int main(int argc, char **argv) {
    if (argc != 2 || !(driver = dlopen("libcuda.so.1", RTLD_NOW))) return 2;
    Handle context;
    CALL(cuInit, (U), 0);
    CALL(cuDevicePrimaryCtxRetain, (Handle *, int), &context, 0);
    CALL(cuCtxSetCurrent, (Handle), context);
    CALL(cuModuleLoad, (Handle *, const char *), &module, argv[1]);

    float table[64], floats[1024];
    double doubles[100];
    uint32_t words[1024], n = 100, start = 41;
    for (int i = 0; i < 1024; i++) floats[i] = i / 128.0f, words[i] = i * 2654435761u;
    for (int i = 0; i < 100; i++) doubles[i] = i * 0.5;
    uint64_t out = upload(floats, sizeof floats), in = upload(floats, sizeof floats), x = upload(doubles, 800), y = upload(doubles, 800);
    uint64_t data = upload(words, sizeof words);

    launch("no_parameters", 3, 48, 0, NULL);
    // The program changes a constant and a variable between launches; what kernels see is what was there in order.
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < 64; i++) table[i] = round / (i + 1.0f);
        CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), variable("table"), table, sizeof table);
        launch("calls", 2, 64, 0, (void *[]){&in, &out, &n});
        show("calls", out, 100);
        int minus = -7;
        CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), variable("counter"), &start, 4);
        launch("prints", 2, 32, 0, (void *[]){&minus});
        launch("prints", 1, 33, 0, (void *[]){&minus});
        show("counter", variable("counter"), 1);
    }
    launch("exits_in_callee", 1, 64, 0, (void *[]){&out});
    show("exits_in_callee", out, 64);
    uint32_t which = 1;
    launch("through_pointers", 1, 40, 0, (void *[]){&in, &which});
    show("through_pointers", in, 40);
    struct { float scale; int shape[3]; char tag; } config = {2.5f, {7, 3, 9}, -6};
    char byte = 4;
    launch("by_value", 2, 128, 512, (void *[]){&config, &out, &byte});
    show("by_value", out, 128);
    uint32_t op[100], count = 97;
    for (int i = 0; i < 100; i++) op[i] = i % 8;
    uint64_t ops = upload(op, sizeof op);
    launch("switches", 4, 31, 0, (void *[]){&ops, &data, &count});
    show("switches", data, 100);
    launch("local_array", 1, 32, 0, (void *[]){&data, &out});
    show("local_array", out, 32);
    double a = 2.5;
    uint64_t size = 50;
    launch("_Z4axpyIdEvT_PKS0_PS0_m", 2, 9, 0, (void *[]){&a, &x, &y, &size});
    show("axpy", y, 200);
    launch("clustered", 6, 33, 0, (void *[]){&data});
    show("clustered", data, 6);
    return 0;
}
