// A driver-API program that loads an image in the way it is told and launches a kernel of it, for the tests of nt-run.
//
//     images WAY IMAGE KERNEL LAUNCHES
//
// WAY is LOOKUP-LOAD. LOOKUP: `dlsym`, or `proc` for cuGetProcAddress_v2, as the runtime does it. LOAD:
//     data      cuModuleLoadData of the bytes          wrapper   of the 24 bytes that nvcc puts before them
//     fatbin    cuModuleLoadFatBinary                  file      cuModuleLoad
//     library   cuLibraryLoadData of a wrapper, cuLibraryGetKernel; the kernel itself is launched
//     function  likewise, launched as what cuKernelGetFunction gives
//     module    likewise, launched as a function of what cuLibraryGetModule gives
//     linked    likewise, of a wrapper of relocatable device code: nothing was linked yet, and IMAGE is to be
//     libfile   cuLibraryLoadFromFile, cuLibraryGetKernel
// The kernel has one parameter, a pointer. Bytes are overwritten and freed as soon as they are loaded, but not those of
// a library, which has to stay until it is unloaded. Says "ok" if every call answered 0.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
typedef unsigned U;
static void *driver;
static int (*by_proc)(const char *, void **, int, uint64_t, void *);

static void *lookup(const char *name, int version) {
    void *found = NULL;
    if (by_proc && by_proc(name, &found, version, 0, NULL)) found = NULL;
    if (!by_proc) found = dlsym(driver, name);
    if (!found) fprintf(stderr, "images: no %s\n", name), exit(1);
    return found;
}

static void check(const char *name, int code) {
    if (code) fprintf(stderr, "images: %s answers %d\n", name, code), exit(1);
}

// `proc` asks for base names with the version of the runtime, `dlsym` for symbols.
#define CALL(base, symbol, types, ...) \
    check(#base, ((int(*) types)lookup(by_proc ? #base : #symbol, 13000))(__VA_ARGS__))

static char *contents(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) fprintf(stderr, "images: cannot read %s\n", path), exit(1);
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    char *bytes = calloc(1, *size + 1);
    if (fread(bytes, 1, *size, file) != *size) exit(1);
    fclose(file);
    return bytes;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    const char *load = strchr(argv[1], '-');
    if (!load++ || !(driver = dlopen("libcuda.so.1", RTLD_NOW))) return 2;
    if (!strncmp(argv[1], "proc", 4)) *(void **)&by_proc = dlsym(driver, "cuGetProcAddress_v2");
    int is(const char *word) { return !strcmp(load, word); }

    Handle context, module = NULL, library = NULL, function, kernel;
    uint64_t memory;
    CALL(cuInit, cuInit, (U), 0);
    CALL(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (Handle *, int), &context, 0);
    CALL(cuCtxSetCurrent, cuCtxSetCurrent, (Handle), context);
    CALL(cuMemAlloc, cuMemAlloc_v2, (uint64_t *, size_t), &memory, 4096);

    size_t size;
    char *bytes = contents(argv[2], &size);
    struct { U magic, version; const void *data; void *more; } wrapper = {0x466243b1, 1, bytes, NULL};
    struct { U magic; uint16_t version, header; uint64_t size; } nothing = {0xba55ed50, 1, 16, 0};
    const void *to_be_linked[] = {bytes, NULL};
    if (is("linked")) wrapper.version = 2, wrapper.data = &nothing, wrapper.more = to_be_linked;
    if (is("data")) CALL(cuModuleLoadData, cuModuleLoadData, (Handle *, const void *), &module, bytes);
    else if (is("wrapper")) CALL(cuModuleLoadData, cuModuleLoadData, (Handle *, const void *), &module, &wrapper);
    else if (is("fatbin")) CALL(cuModuleLoadFatBinary, cuModuleLoadFatBinary, (Handle *, const void *), &module, bytes);
    else if (is("file")) CALL(cuModuleLoad, cuModuleLoad, (Handle *, const char *), &module, argv[2]);
    else if (is("libfile"))
        CALL(cuLibraryLoadFromFile, cuLibraryLoadFromFile, (Handle *, const char *, void *, void *, U, void *, void *, U), &library, argv[2], NULL, NULL, 0, NULL, NULL, 0);
    else
        CALL(cuLibraryLoadData, cuLibraryLoadData, (Handle *, const void *, void *, void *, U, void *, void *, U), &library, &wrapper, NULL, NULL, 0, NULL, NULL, 0);
    if (module) memset(bytes, 0x55, size), free(bytes);

    if (library && is("module")) CALL(cuLibraryGetModule, cuLibraryGetModule, (Handle *, Handle), &module, library);
    if (module) {
        CALL(cuModuleGetFunction, cuModuleGetFunction, (Handle *, Handle, const char *), &function, module, argv[3]);
    } else {
        CALL(cuLibraryGetKernel, cuLibraryGetKernel, (Handle *, Handle, const char *), &kernel, library, argv[3]);
        function = kernel;
        if (is("function")) CALL(cuKernelGetFunction, cuKernelGetFunction, (Handle *, Handle), &function, kernel);
    }
    void *params[] = {&memory};
    for (int n = atoi(argv[4]); n > 0; n--)
        CALL(cuLaunchKernel, cuLaunchKernel, (Handle, U, U, U, U, U, U, U, Handle, void **, void **), function, 3, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
    CALL(cuCtxSynchronize, cuCtxSynchronize, (void));
    if (library) CALL(cuLibraryUnload, cuLibraryUnload, (Handle), library);
    else CALL(cuModuleUnload, cuModuleUnload, (Handle), module);
    puts("ok");
    return 0;
}
