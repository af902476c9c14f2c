// Opens LIBRARY with RTLD_DEEPBIND and lets it work: outer LIBRARY LAUNCHES.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : 0;
    if (!library) return printf("%s\n", dlerror()), 2;
    int bad = ((int (*)(int))dlsym(library, "go"))(atoi(argv[2]));
    printf(bad ? "bad %d\n" : "ok\n", bad);
    return bad != 0;
}
