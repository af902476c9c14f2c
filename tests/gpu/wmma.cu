// Known numbers of matrix instructions: warp w of each block issues (w + 1) × STEPS of them.
//
//     wmma        prints the sum of what came out, which is known too, and ok or WRONG
//
// All elements of A are 1 and all of B are 2, so that the layout of fragments does not matter: each step adds 2k to
// every accumulator. A wmma of 16 × 16 × 16 is 4096 multiply-adds, an mma of 16 × 8 × 16 is 2048.
#include <cstdio>

const int BLOCKS = 33, WARPS = 5, STEPS = 6, CELLS = BLOCKS * WARPS * 32 * 8;

extern "C" __global__ void tiles(float *out, int steps) {
    unsigned a = 0x3c003c00, b = 0x40004000;
    float c[8] = {};
    int many = (threadIdx.x / 32 + 1) * steps;
#pragma unroll 1
    for (int step = 0; step < many; step++)
        asm volatile(
            "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%8,%8,%8,%8,%8,%8,%8},"
            " {%9,%9,%9,%9,%9,%9,%9,%9}, {%0,%1,%2,%3,%4,%5,%6,%7};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
            : "r"(a), "r"(b));
    for (int i = 0; i < 8; i++) out[(blockIdx.x * blockDim.x + threadIdx.x) * 8 + i] = c[i];
}

extern "C" __global__ void slices(float *out, int steps) {
    unsigned a = 0x3c003c00, b = 0x40004000;
    float c[4] = {};
    int many = (threadIdx.x / 32 + 1) * steps;
#pragma unroll 1
    for (int step = 0; step < many; step++)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a), "r"(b));
    for (int i = 0; i < 8; i++) out[(blockIdx.x * blockDim.x + threadIdx.x) * 8 + i] = c[i % 4];
}

static bool check(const char *name, const float *out) {
    static float host[CELLS];
    if (cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return false;
    double sum = 0;
    bool right = true;
    for (int i = 0; i < CELLS; i++) {
        sum += host[i];
        right &= host[i] == 32.0f * STEPS * (i / 256 % WARPS + 1);
    }
    printf("%s\t%.0f\t%s\n", name, sum, right ? "ok" : "WRONG");
    return right;
}

int main() {
    float *out;
    if (cudaMalloc(&out, CELLS * sizeof *out) != cudaSuccess) return 2;
    tiles<<<BLOCKS, WARPS * 32>>>(out, STEPS);
    bool right = check("tiles", out);
    slices<<<BLOCKS, WARPS * 32>>>(out, STEPS);
    right &= check("slices", out);
    return right ? 0 : 1;
}
