// A library that finds the driver for itself, as the CUDA runtime does, and is opened with RTLD_DEEPBIND.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

typedef void *Handle;
typedef unsigned U;

static const char PTX[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry chosen(.param .u64 out, .param .u32 n) { ret; }\n";

#define GET(name, types) int(*name) types = (int(*) types)dlsym(driver, #name)

int go(int launches) {
    Handle driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return 100;
    GET(cuInit, (U));
    GET(cuDevicePrimaryCtxRetain, (Handle *, int));
    GET(cuCtxSetCurrent, (Handle));
    GET(cuCtxSynchronize, (void));
    GET(cuModuleLoadData, (Handle *, const void *));
    GET(cuModuleGetFunction, (Handle *, Handle, const char *));
    GET(cuLaunchKernel, (Handle, U, U, U, U, U, U, U, Handle, void **, void **));
    Handle context, module, chosen;
    unsigned long long out = 0;
    U n = 1;
    void *params[] = {&out, &n};
    int bad = cuInit(0) | cuDevicePrimaryCtxRetain(&context, 0) | cuCtxSetCurrent(context) |
              cuModuleLoadData(&module, PTX) | cuModuleGetFunction(&chosen, module, "chosen");
    for (int i = 0; i < launches; i++) bad |= cuLaunchKernel(chosen, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
    return bad | cuCtxSynchronize();
}
