// A driver-API program with many ways in and out, for the tests of the hook.
//
//     app WAY-IN LIFE [LAUNCHES]
//
// It loads a PTX module (from memory that it overwrites and frees at once), launches the kernels `chosen` and `other`
// LAUNCHES times each from every thread, waits, and says "ok" if every call answered 0. What each argument means stands
// where it is handled below. With -DLINKED the driver's functions are undefined symbols of the program itself.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Result;
typedef void *Handle;
typedef unsigned long long Address;
typedef unsigned U;

typedef Result Launch(Handle, U, U, U, U, U, U, U, Handle, void **, void **);
typedef struct {
    U grid[3], block[3], shared;
    Handle stream;
    void *attributes;
    U count;
} Config;

#define CALLS(X)                                               \
    X(cuInit, (U))                                             \
    X(cuDevicePrimaryCtxRetain, (Handle *, int))               \
    X(cuCtxSetCurrent, (Handle))                               \
    X(cuModuleLoadData, (Handle *, const void *))              \
    X(cuModuleLoadDataEx, (Handle *, const void *, U, int *, void **)) \
    X(cuModuleGetFunction, (Handle *, Handle, const char *))   \
    X(cuModuleUnload, (Handle))                                \
    X(cuLibraryLoadData, (Handle *, const void *, void *, void *, U, void *, void *, U)) \
    X(cuLibraryGetKernel, (Handle *, Handle, const char *))    \
    X(cuLibraryGetModule, (Handle *, Handle))                  \
    X(cuKernelGetFunction, (Handle *, Handle))                 \
    X(cuModuleEnumerateFunctions, (Handle *, U, Handle))       \
    X(cuModuleLoadFatBinary, (Handle *, const void *))         \
    X(cuModuleGetGlobal_v2, (Address *, size_t *, Handle, const char *)) \
    X(cuLibraryUnload, (Handle))                               \
    X(cuMemAlloc_v2, (Address *, size_t))                      \
    X(cuMemcpyHtoDAsync_v2, (Address, const void *, size_t, Handle)) \
    X(cuStreamCreate, (Handle *, U))                           \
    X(cuStreamDestroy_v2, (Handle))                            \
    X(cuStreamSynchronize, (Handle))                           \
    X(cuStreamBeginCapture_v2, (Handle, int))                  \
    X(cuStreamEndCapture, (Handle, Handle *))                  \
    X(cuCtxSynchronize, (void))                                \
    X(cuCtxCreate_v2, (Handle *, U, int))                      \
    X(cuCtxDestroy_v2, (Handle))                               \
    X(cuFuncSetAttribute, (Handle, int, int))                  \
    X(cuGraphCreate, (Handle *, U))                            \
    X(cuGraphAddKernelNode, (Handle *, Handle, Handle *, size_t, const void *)) \
    X(cuGraphAddKernelNode_v2, (Handle *, Handle, Handle *, size_t, const void *)) \
    X(cuGraphAddNode_v2, (Handle *, Handle, Handle *, void *, size_t, void *)) \
    X(cuLaunchKernel, (Handle, U, U, U, U, U, U, U, Handle, void **, void **)) \
    X(cuLaunchKernelEx, (const Config *, Handle, void **, void **)) \
    X(cuLaunchCooperativeKernel, (Handle, U, U, U, U, U, U, U, Handle, void **))

#ifdef LINKED
#define X(name, types) extern Result name types;
CALLS(X)
#undef X
#endif
#define X(name, types) static Result (*p_##name) types;
CALLS(X)
#undef X

static const char PTX[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 8 .b64 counter;\n.const .align 4 .b32 scale[4];\n"
    ".visible .entry chosen(.param .u64 out, .param .u32 n) { ret; }\n"
    ".visible .entry other(.param .u64 out, .param .u32 n) { ret; }\n"
    ".visible .entry bare() { ret; }\n";

static int bad;
static void check(Result r, const char *what) {
    if (r) {
        bad = 1;
        printf("%s: %d\n", what, r);
    }
}
#define CALL(name, ...) check(p_##name(__VA_ARGS__), #name)

static int launches = 20;
static Handle chosen, other, bare, context, module;
static Address out;

static void launch_both(Handle stream, int n) {
    for (int i = 0; i < n; i++) {
        U count = 1000 + i;
        void *params[] = {&out, &count};
        CALL(cuLaunchKernel, chosen, 4, 2, 1, 128, 1, 1, 0, stream, params, 0);
        CALL(cuLaunchKernel, other, 1, 1, 1, 32, 1, 1, 0, stream, params, 0);
    }
}

static void *thread(void *unused) {
    Handle stream;
    CALL(cuCtxSetCurrent, context);
    CALL(cuStreamCreate, &stream, 1);
    launch_both(stream, launches);
    CALL(cuStreamSynchronize, stream);
    return unused;
}

// The same functions from `cuGetProcAddress`, asked by base name, version and flag.
static void by_proc_address(Handle driver, const char *way) {
    typedef Result Get(const char *, void *, int, uint64_t, int *);
    Get *get = (Get *)dlsym(driver, "cuGetProcAddress_v2");
    if (!strcmp(way, "proc-itself")) {
        int status;
        get("cuGetProcAddress", &get, 12000, 0, &status);
    }
    int version = !strcmp(way, "proc-newer") ? 14000 : 12080;
    uint64_t flags = !strcmp(way, "proc-ptsz") ? 2 : 0;
#define X(name, types)                                             \
    {                                                              \
        char base[64];                                             \
        int status;                                                \
        strcpy(base, #name);                                       \
        char *v2 = strstr(base, "_v2");                            \
        if (v2) *v2 = 0;                                           \
        check(get(base, &p_##name, version, flags, &status), base); \
        if (!p_##name) printf("no %s\n", base), exit(3);           \
    }
    CALLS(X)
#undef X
}

static void find(const char *way) {
#ifdef LINKED
    (void)way;
    (void)by_proc_address;
#define X(name, types) p_##name = name;
    CALLS(X)
#undef X
#else
    Handle driver = 0;
    if (!strcmp(way, "default")) {
        // RTLD_DEFAULT sees a driver that was opened for all.
        if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) printf("%s\n", dlerror()), exit(2);
        driver = RTLD_DEFAULT;
    } else if (!strcmp(way, "null")) {
        if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) printf("%s\n", dlerror()), exit(2);
        driver = dlopen(NULL, RTLD_NOW);
    } else if (way[0] == '/') {
        driver = dlopen(way, RTLD_NOW | RTLD_LOCAL);
    } else {
        driver = dlopen("libcuda.so.1", RTLD_NOW | (!strcmp(way, "deepbind") ? RTLD_DEEPBIND : 0));
    }
    if (!driver && strcmp(way, "default")) printf("%s\n", dlerror()), exit(2);
    if (!strncmp(way, "proc", 4)) {
        by_proc_address(driver, way);
        return;
    }
#define X(name, types)                                    \
    p_##name = (Result(*) types)dlsym(driver, #name);     \
    if (!p_##name) printf("no %s: %s\n", #name, dlerror()), exit(3);
    CALLS(X)
#undef X
    // What nobody has must stay what it was.
    if (dlsym(driver, "cuNope") || !dlerror()) printf("cuNope was found\n"), exit(3);
#endif
}

static void load(void) {
    char *text = strdup(PTX);
    CALL(cuModuleLoadData, &module, text);
    memset(text, 'x', strlen(text));
    free(text);
    CALL(cuModuleGetFunction, &chosen, module, "chosen");
    CALL(cuModuleGetFunction, &other, module, "other");
    CALL(cuModuleGetFunction, &bare, module, "bare");
}

static void start(void) {
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuMemAlloc_v2, &out, 4096);
    load();
}

// Sets a word of a module's constant, in stream order, and launches.
static void scale_part_and_launch(Handle from, Handle function, Handle stream, U value, int part) {
    static U values[4096];
    static int used;
    Address scale;
    size_t bytes;
    void *params[] = {&out, &value};
    U *word = &values[used++];
    *word = value;
    CALL(cuModuleGetGlobal_v2, &scale, &bytes, from, "scale");
    if (bytes != 16) bad = 1;
    CALL(cuMemcpyHtoDAsync_v2, scale + 4 * part, word, 4, stream);
    CALL(cuLaunchKernel, function, 4, 2, 1, 128, 1, 1, 0, stream, params, 0);
}

static void scale_and_launch(Handle from, Handle function, Handle stream, U value) {
    scale_part_and_launch(from, function, stream, value, 0);
}

static void late(void) { launch_both(0, 1); }

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "dlsym", *life = argc > 2 ? argv[2] : "one";
    if (argc > 3) launches = atoi(argv[3]);

    // A child with an empty environment, which must be ours all the same.
    if (!strcmp(life, "exec")) {
        char *words[] = {argv[0], argv[1], "one", argv[3], 0}, *none[] = {0};
        pid_t child = fork();
        if (!child) {
            execve("/proc/self/exe", words, none);
            _exit(9);
        }
        int status;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 8;
    }
    if (!strcmp(life, "spawn") || !strcmp(life, "execvp")) {
        char *words[] = {argv[0], argv[1], "one", argv[3], 0}, *none[] = {0};
        pid_t child = 0;
        int status = 0;
        if (!strcmp(life, "spawn")) {
            // A bare name, found in PATH.
            char *folder = strdup(argv[0]);
            char *name = strrchr(folder, '/');
            *name = 0;
            setenv("PATH", folder, 1);
            if (posix_spawnp(&child, name + 1, 0, 0, words, none)) return 7;
        } else if (!(child = vfork())) {
            unsetenv("NT_RUN");
            execvp(argv[0], words);
            _exit(9);
        }
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 8;
    }
    // Both of them start the driver for themselves.
    if (!strcmp(life, "fork-first")) {
        pid_t child = fork();
        find(way);
        start();
        launch_both(0, launches);
        CALL(cuCtxSynchronize);
        if (child) waitpid(child, 0, 0);
        if (child) printf(bad ? "bad\n" : "ok\n");
        return bad;
    }

    // Without a driver this says so and ends with 2 or 3.
    find(way);
    if (!strcmp(life, "static-destructor")) atexit(late);
    start();

    if (!strcmp(life, "threads")) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, thread, 0);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    } else if (!strcmp(life, "extended")) {
        U n = 1;
        void *params[] = {&out, &n};
        U attribute[16] = {0};
        Config config = {{4, 2, 1}, {128, 1, 1}, 0, 0, attribute, 1};
        for (int i = 0; i < launches; i++) CALL(cuLaunchKernelEx, &config, chosen, params, 0);
    } else if (!strcmp(life, "shapes")) {
        // By turns: all conditions, two rows of blocks, two rows of threads, a warp that is not whole, and none of these.
        U n = 1;
        void *params[] = {&out, &n};
        Config config = {{4, 1, 1}, {64, 2, 1}, 0, 0, 0, 0};
        for (int i = 0; i < launches; i++) {
            CALL(cuLaunchKernel, chosen, 4, 1, 1, 128, 1, 1, 0, 0, params, 0);
            CALL(cuLaunchKernel, chosen, 2, 2, 1, 128, 1, 1, 0, 0, params, 0);
            CALL(cuLaunchKernelEx, &config, chosen, params, 0);
            CALL(cuLaunchKernel, chosen, 4, 1, 1, 100, 1, 1, 0, 0, params, 0);
            CALL(cuLaunchCooperativeKernel, chosen, 2, 2, 1, 8, 8, 1, 0, 0, params);
        }
        CALL(cuCtxSynchronize);
    } else if (!strcmp(life, "packed")) {
        struct {
            Address out;
            U n;
        } buffer = {out, 7};
        size_t size = sizeof buffer;
        void *extra[] = {(void *)1, &buffer, (void *)2, &size, 0};
        for (int i = 0; i < launches; i++) CALL(cuLaunchKernel, chosen, 4, 2, 1, 128, 1, 1, 0, 0, 0, extra);
    } else if (!strcmp(life, "bare")) {
        for (int i = 0; i < launches; i++) CALL(cuLaunchKernel, bare, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
    } else if (!strcmp(life, "library")) {
        Handle library, kernel;
        U n = 1;
        void *params[] = {&out, &n};
        CALL(cuLibraryLoadData, &library, PTX, 0, 0, 0, 0, 0, 0);
        CALL(cuLibraryGetKernel, &kernel, library, "chosen");
        for (int i = 0; i < launches; i++) CALL(cuLaunchKernel, kernel, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
    } else if (!strcmp(life, "library-module")) {
        // The same kernel under two more handles: of the library's module, and of the kernel.
        Handle library, kernel, module, function;
        U n = 1;
        void *params[] = {&out, &n};
        CALL(cuLibraryLoadData, &library, PTX, 0, 0, 0, 0, 0, 0);
        CALL(cuLibraryGetKernel, &kernel, library, "chosen");
        CALL(cuLibraryGetModule, &module, library);
        CALL(cuModuleGetFunction, &function, module, "chosen");
        CALL(cuLaunchKernel, function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
        CALL(cuKernelGetFunction, &function, kernel);
        CALL(cuLaunchKernel, function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
    } else if (!strcmp(life, "options") || !strcmp(life, "options-library")) {
        // For the assembler: 32 registers, level 1, and a log and its size, which are the original's alone; then others.
        Handle loaded, function;
        static char log[64];
        U n = 1;
        void *params[] = {&out, &n};
        int options[] = {0, 7, 5, 6}, cached[] = {14};
        void *values[] = {(void *)32, (void *)1, log, (void *)sizeof log}, *mode[] = {(void *)1};
        CALL(cuModuleLoadDataEx, &loaded, PTX, 4, options, values);
        CALL(cuModuleGetFunction, &function, loaded, "chosen");
        CALL(cuLaunchKernel, function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
        if (!strcmp(life, "options-library")) {
            CALL(cuLibraryLoadData, &loaded, PTX, cached, mode, 1, 0, 0, 0);
            CALL(cuLibraryGetKernel, &function, loaded, "chosen");
            CALL(cuLaunchKernel, function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
        }
        CALL(cuLaunchKernel, chosen, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
    } else if (!strcmp(life, "enumerate")) {
        Handle module, all[3];
        U n = 1;
        void *params[] = {&out, &n};
        CALL(cuModuleLoadData, &module, PTX);
        CALL(cuModuleEnumerateFunctions, all, 3, module);
        for (int i = 0; i < 3; i++) CALL(cuLaunchKernel, all[i], 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
    } else if (!strcmp(life, "resident")) {
        // Eight blocks a multiprocessor, of which the device holds sixteen.
        U n = 1;
        void *params[] = {&out, &n};
        for (int i = 0; i < launches; i++) CALL(cuLaunchKernel, chosen, 8 * 132, 1, 1, 128, 1, 1, 0, 0, params, 0);
    } else if (!strcmp(life, "close-all")) {
        // As daemons do; then files of its own, which must stay its own.
        launch_both(0, launches);
        CALL(cuCtxSynchronize);
        usleep(50000);
        for (int fd = 3; fd < 1024; fd++) close(fd);
        int files[600];
        for (int i = 0; i < 600; i++) files[i] = open("/dev/shm", O_RDWR | O_TMPFILE, 0600);
        launch_both(0, launches);
        CALL(cuCtxSynchronize);
        usleep(50000);
        for (int i = 0; i < 600; i++) {
            struct stat stat;
            if (fstat(files[i], &stat) || stat.st_size) bad = 1;
        }
    } else if (!strcmp(life, "reload")) {
        // Handles come back under other meanings.
        for (int i = 0; i < 5; i++) {
            Handle module, function;
            CALL(cuModuleLoadData, &module, PTX);
            CALL(cuModuleGetFunction, &function, module, i % 2 ? "chosen" : "other");
            U n = 1;
            void *params[] = {&out, &n};
            CALL(cuLaunchKernel, function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
            CALL(cuCtxSynchronize);
            CALL(cuModuleUnload, module);
            // A handle that is dead is the driver's to refuse; a twin may not run in its place.
            if (p_cuLaunchKernel(function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0) != 400) bad = 1;
        }
    } else if (!strcmp(life, "shared")) {
        U n = 1;
        void *params[] = {&out, &n};
        CALL(cuFuncSetAttribute, chosen, 8, 100000);
        CALL(cuLaunchKernel, chosen, 4, 2, 1, 128, 1, 1, 90000, 0, params, 0);
        CALL(cuFuncSetAttribute, chosen, 8, 200000);
        CALL(cuLaunchKernel, chosen, 4, 2, 1, 128, 1, 1, 150000, 0, params, 0);
    } else if (!strcmp(life, "capture")) {
        Handle stream, graph, after;
        CALL(cuStreamCreate, &stream, 1);
        CALL(cuStreamCreate, &after, 1);
        CALL(cuStreamBeginCapture_v2, stream, 0);
        launch_both(stream, 3);
        // Another stream's first probed launch makes a pool, in the middle of a capture.
        launch_both(after, launches);
        usleep(20000);
        CALL(cuStreamEndCapture, stream, &graph);
        CALL(cuStreamSynchronize, after);
    } else if (!strcmp(life, "contexts")) {
        for (int i = 0; i < 3; i++) {
            Handle second;
            CALL(cuCtxCreate_v2, &second, 0, 0);
            load();
            launch_both(0, launches);
            CALL(cuCtxDestroy_v2, second);
        }
    } else if (!strcmp(life, "devices")) {
        // By turns on two devices, which may be of different architectures.
        Handle contexts[2] = {context}, functions[2] = {chosen}, loaded;
        U n = 1;
        void *params[] = {&out, &n};
        CALL(cuDevicePrimaryCtxRetain, &contexts[1], 1);
        CALL(cuCtxSetCurrent, contexts[1]);
        CALL(cuModuleLoadData, &loaded, PTX);
        CALL(cuModuleGetFunction, &functions[1], loaded, "chosen");
        for (int i = 0; i < 2 * launches; i++) {
            CALL(cuCtxSetCurrent, contexts[i % 2]);
            CALL(cuLaunchKernel, functions[i % 2], 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
        }
        CALL(cuCtxSynchronize);
        CALL(cuCtxSetCurrent, context);
    } else if (!strcmp(life, "nodes")) {
        // Kernels as nodes of a graph, in each form that there is; a node of another sort.
        Handle graph, node, library, kernel;
        U n = 1;
        void *params[] = {&out, &n};
        typedef struct {
            Handle function;
            U shape[7];
            void **params, **extra;
            Handle kernel, context;
        } Node;
        struct {
            int sort, reserved[3];
            Node node;
            long long rest[24];
        } typed = {0, {0}, {chosen, {4, 1, 1, 128, 1, 1, 0}, params, 0, 0, 0}, {0}};
        CALL(cuLibraryLoadData, &library, PTX, 0, 0, 0, 0, 0, 0);
        CALL(cuLibraryGetKernel, &kernel, library, "chosen");
        CALL(cuGraphCreate, &graph, 0);
        CALL(cuGraphAddKernelNode, &node, graph, 0, 0, &typed.node);
        CALL(cuGraphAddKernelNode_v2, &node, graph, 0, 0, &typed.node);
        typed.node.function = 0, typed.node.kernel = kernel;
        CALL(cuGraphAddKernelNode_v2, &node, graph, 0, 0, &typed.node);
        CALL(cuGraphAddNode_v2, &node, graph, 0, 0, 0, &typed);
        typed.node.function = other;
        CALL(cuGraphAddNode_v2, &node, graph, 0, 0, 0, &typed);
        typed.sort = 2;
        CALL(cuGraphAddNode_v2, &node, graph, 0, 0, 0, &typed);
        launch_both(0, launches);
    } else if (!strcmp(life, "constants")) {
        // Written anew before each launch, which nobody waits for.
        Handle stream;
        CALL(cuStreamCreate, &stream, 1);
        for (int i = 0; i < launches; i++) scale_and_launch(module, chosen, stream, 100 + i);
        CALL(cuStreamSynchronize, stream);
        CALL(cuModuleUnload, module);
    } else if (!strcmp(life, "parts")) {
        // Two streams, each with a word of the constant that it writes and that its launches read: a part of one may be
        // half written while the other runs.
        Handle streams[2];
        for (int i = 0; i < 2; i++) CALL(cuStreamCreate, &streams[i], 1);
        for (int i = 0; i < launches; i++) {
            scale_part_and_launch(module, chosen, streams[0], 1000 + i, 0);
            scale_part_and_launch(module, chosen, streams[1], 2000 + i, 2);
            if (i % 3 == 0) scale_part_and_launch(module, chosen, streams[1], 2500 + i, 2);
        }
        CALL(cuCtxSynchronize);
    } else if (!strcmp(life, "stream-after-stream")) {
        // Streams that come and go, of which each writes the constant.
        for (int i = 0; i < launches; i++) {
            Handle stream;
            CALL(cuStreamCreate, &stream, 1);
            scale_and_launch(module, chosen, stream, 100 + i);
            if (i % 4) CALL(cuStreamSynchronize, stream);
            CALL(cuStreamDestroy_v2, stream);
            if (i % 4 == 0) CALL(cuCtxSynchronize);
        }
    } else if (!strcmp(life, "many-streams")) {
        for (int i = 0; i < launches; i++) {
            Handle stream;
            CALL(cuStreamCreate, &stream, 1);
            scale_and_launch(module, chosen, stream, 100 + i);
            CALL(cuStreamSynchronize, stream);
        }
    } else if (!strcmp(life, "twice")) {
        // Two modules of one image, each with variables of its own.
        Handle second, function;
        CALL(cuModuleLoadData, &second, PTX);
        CALL(cuModuleGetFunction, &function, second, "chosen");
        for (int i = 0; i < launches; i++) {
            scale_and_launch(module, chosen, 0, 100 + i);
            scale_and_launch(second, function, 0, 200 + i);
        }
        CALL(cuModuleUnload, module);
        scale_and_launch(second, function, 0, 999);
        CALL(cuModuleUnload, second);
    } else if (!strcmp(life, "library-reload")) {
        for (int i = 0; i < launches; i++) {
            Handle library, kernel, function;
            U n = 1;
            void *params[] = {&out, &n};
            CALL(cuLibraryLoadData, &library, PTX, 0, 0, 0, 0, 0, 0);
            CALL(cuLibraryGetKernel, &kernel, library, "chosen");
            CALL(cuKernelGetFunction, &function, kernel);
            CALL(cuLaunchKernel, kernel, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
            CALL(cuLaunchKernel, function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
            CALL(cuLibraryUnload, library);
            // Dead handles are the driver's to refuse.
            if (p_cuLaunchKernel(kernel, 4, 2, 1, 128, 1, 1, 0, 0, params, 0) != 400) bad = 1;
            if (p_cuLaunchKernel(function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0) != 400) bad = 1;
        }
    } else if (!strcmp(life, "unload-captured")) {
        // A module ends while streams are captured in which its kernels ran, one of them ordered with the legacy stream.
        Handle blocking, apart, graphs[2];
        CALL(cuStreamCreate, &blocking, 0);
        CALL(cuStreamCreate, &apart, 1);
        launch_both(0, launches);
        launch_both(blocking, launches);
        launch_both(apart, launches);
        CALL(cuStreamBeginCapture_v2, blocking, 2);
        CALL(cuStreamBeginCapture_v2, apart, 2);
        CALL(cuModuleUnload, module);
        usleep(20000);
        CALL(cuStreamEndCapture, blocking, &graphs[0]);
        CALL(cuStreamEndCapture, apart, &graphs[1]);
    } else if (!strcmp(life, "fatbin")) {
        // A container, and the wrapper that nvcc puts before it.
        static unsigned char container[16 + 32] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 32};
        struct {
            U magic, version;
            void *data, *file;
        } wrapper = {0x466243b1, 1, container, 0};
        for (int i = 0; i < 2; i++) {
            Handle fat, function;
            U n = 1;
            void *params[] = {&out, &n};
            if (i) CALL(cuModuleLoadData, &fat, container);
            else CALL(cuModuleLoadFatBinary, &fat, &wrapper);
            CALL(cuModuleGetFunction, &function, fat, "chosen");
            CALL(cuLaunchKernel, function, 4, 2, 1, 128, 1, 1, 0, 0, params, 0);
        }
    } else if (!strcmp(life, "streams")) {
        for (int i = 0; i < launches; i++) {
            Handle stream;
            CALL(cuStreamCreate, &stream, 1);
            launch_both(stream, 1);
            CALL(cuStreamDestroy_v2, stream);
        }
    } else if (!strcmp(life, "large")) {
        // 2^20 blocks, of which a probe keeps 16 MiB.
        U n = 1;
        void *params[] = {&out, &n};
        for (int i = 0; i < launches; i++) CALL(cuLaunchKernel, chosen, 1 << 20, 1, 1, 32, 1, 1, 0, 0, params, 0);
        CALL(cuCtxSynchronize);
    } else if (!strcmp(life, "wait-for-line")) {
        launch_both(0, launches);
        CALL(cuCtxSynchronize);
        char line[16];
        printf("launched\n");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) return 4;
        load();
        launch_both(0, launches);
        CALL(cuCtxSynchronize);
    } else {
        launch_both(0, launches);
        if (strcmp(life, "no-wait")) CALL(cuCtxSynchronize);
    }

    if (!strcmp(life, "fork")) {
        pid_t child = fork();
        if (!child) {
            // CUDA does not work in a child of a process that used it: 3 is the driver's own answer.
            U n = 1;
            void *params[] = {&out, &n};
            for (int i = 0; i < 5; i++)
                if (p_cuLaunchKernel(chosen, 4, 2, 1, 128, 1, 1, 0, 0, params, 0) != 3) exit(1);
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status) bad = 1;
    }
    printf(bad ? "bad\n" : "ok\n");
    fflush(stdout);
    if (!strcmp(life, "_exit")) _exit(bad);
    if (!strcmp(life, "_Exit")) _Exit(bad);
    if (!strcmp(life, "quick_exit")) quick_exit(bad);
    if (!strcmp(life, "kill")) {
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    if (!strcmp(life, "abort")) abort();
    return bad;
}
