//! What Zig makes of kernels: its own assembly syntax for special registers, and code without optimisation.
const std = @import("std");

fn thread() u32 {
    return @workItemId(0) + @workGroupId(0) * @workGroupSize(0);
}

export fn add(a: [*]const f32, b: [*]const f32, c: [*]f32, n: u32) callconv(.kernel) void {
    const i = thread();
    if (i < n) c[i] = a[i] + b[i];
}

export fn collatz(out: [*]u32, n: u32) callconv(.kernel) void {
    const i = thread();
    if (i >= n) return;
    var x: u64 = i + 1;
    var steps: u32 = 0;
    while (x != 1) : (steps += 1) x = if (x & 1 == 1) 3 * x + 1 else x / 2;
    out[i] = steps;
}
