// CUDA C++ for clang alone: no header of NVIDIA's, so that clang's own wheel is enough.
//
// Shapes that nvcc prints otherwise: device functions that stay calls, variables of every space, indirect calls through a
// table, local arrays, switches, atomics with scopes, vectors, half and bfloat16, clusters, byte parameters.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define tid __nvvm_read_ptx_sreg_tid_x()
#define ctaid __nvvm_read_ptx_sreg_ctaid_x()
#define ntid __nvvm_read_ptx_sreg_ntid_x()

typedef float float4v __attribute__((ext_vector_type(4)));
typedef _Float16 half2v __attribute__((ext_vector_type(2)));

__constant__ float weights[16];
__device__ int counter;
__device__ unsigned char bytes[5] = {1, 2, 3, 4, 5};
__device__ const char *const names[] = {"one", "two"};

struct Shape {
    long rows;
    short columns;
    char tag;
};

__device__ __noinline__ float polynomial(float x, int n) {
    float y = 0;
    for (int i = n - 1; i >= 0; i--) y = y * x + weights[i];
    return y;
}

__device__ __noinline__ float4v scaled(float4v v, Shape shape) { return v * (float)shape.columns + (float)shape.tag; }

__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }

extern "C" __global__ void nothing() {}

extern "C" __global__ void add(const float4v *a, const float4v *b, float4v *c, int n) {
    int i = ctaid * ntid + tid;
    if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void calls(float *data, int n) {
    int i = ctaid * ntid + tid;
    if (i >= n) return;
    data[i] = polynomial(data[i], n & 15);
}

extern "C" __global__ void by_value(Shape shape, float4v *data) { data[tid] = scaled(data[tid], shape); }

extern "C" __global__ void through_pointer(float *data, int which) {
    float (*table[])(float) = {twice, square};
    data[tid] = table[which & 1](data[tid]);
}

extern "C" __global__ void __attribute__((launch_bounds(256, 2))) reduce(const float *in, float *out, int n) {
    __shared__ float partial[256];
    float sum = 0;
    for (int i = ctaid * ntid + tid; i < n; i += 4096) sum += in[i];
    partial[tid] = sum;
    __nvvm_bar_sync(0);
    for (unsigned d = 128; d > 0; d >>= 1) {
        if (tid < d) partial[tid] += partial[tid + d];
        __nvvm_bar_sync(0);
    }
    if (tid == 0) __nvvm_atom_add_gen_f(out, partial[0]);
}

extern "C" __global__ void atomics(int *p, long *q, unsigned *r) {
    __scoped_atomic_fetch_add(p, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    __scoped_atomic_store_n(p + 1, (int)tid, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
    q[tid] = __scoped_atomic_load_n(p + 2, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_WRKGRP);
    __scoped_atomic_fetch_max(r, tid, __ATOMIC_SEQ_CST, __MEMORY_SCOPE_DEVICE);
    long expected = 0;
    if (__scoped_atomic_compare_exchange_n(q, &expected, 1l, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE))
        counter = (int)expected;
    __nvvm_membar_gl();
}

extern "C" __global__ void switches(const int *op, int *out) {
    int v = out[tid];
    switch (op[tid]) {
        case 0: v += 1; break;
        case 1: v *= 3; break;
        case 2: v ^= 0x55; break;
        case 3: v = __builtin_rotateleft32(v, 3); break;
        case 4: v = __builtin_popcount(v); break;
        case 5: v = __builtin_clz(v | 1); break;
        case 6: v = __builtin_bitreverse32(v); break;
        case 7: v = v / (int)(tid + 1); break;
        case 8: v = bytes[v & 3] + names[v & 1][0]; break;
        default: __builtin_trap();
    }
    out[tid] = v;
}

extern "C" __global__ void local_array(const int *index, float *out) {
    float values[32];
    for (int i = 0; i < 32; i++) values[i] = out[i * 32 + tid];
    float sum = 0;
    for (int i = 0; i < 32; i++) sum += values[index[i] & 31];
    out[tid] = sum;
}

extern "C" __global__ void narrow(half2v *h, __bf16 *b, double *d, signed char *c) {
    h[tid] = h[tid] * h[tid] + (half2v)(_Float16)1.5f;
    b[tid] = (__bf16)((float)b[tid] * 2.0f);
    d[tid] = __builtin_sqrt(d[tid]) + __builtin_fma(d[tid], 2.0, (double)c[tid]);
    c[tid] = (signed char)(c[tid] >> 1);
}

extern "C" __global__ void warp(unsigned *out) {
    unsigned mask = __nvvm_vote_ballot_sync(~0u, tid & 1);
    out[tid] = mask + __nvvm_shfl_sync_down_i32(~0u, (int)tid, 1, 31) + __nvvm_activemask();
}

template <class T> __global__ void axpy(T a, const T *x, T *y) { y[tid] += a * x[tid]; }
template __global__ void axpy(float, const float *, float *);
template __global__ void axpy(double, const double *, double *);
