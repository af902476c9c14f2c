//! Writes a trace of block_sched of about so many MB to stdout, to measure nt-map with:
//!
//!     cargo run --release -p nt-map --example synthetic -- 500 > /tmp/large.ntt
//!     time nt-map dump /tmp/large.ntt -o /dev/null

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::io::Write;
use synthetic::{Trace, block_sched, record};

/// Warps a launch, 16 bytes each.
const WARPS: u64 = 1 << 16;

fn main() -> std::io::Result<()> {
    let megabytes: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(500);
    let mut out = std::io::stdout().lock();
    let mut trace = Trace::new(1);
    let kernel = trace.kernel("fill_blocks", "block_sched", vec![block_sched()]);
    for _ in 0..(megabytes * 1_000_000).div_ceil(WARPS * 16) {
        let launch = trace.launch(kernel, [(WARPS / 8) as u32, 1, 1], [256, 1, 1]);
        let of_warp = |warp: u64| {
            let block = warp / 8;
            record(81_234_567_890 + block / 132 * 2_000 + warp % 8 * 3, 1_900, (block % 132) as u32)
        };
        let records: Vec<[u8; 16]> = (0..WARPS).map(of_warp).collect();
        trace.records(launch, 0, &records);
        out.write_all(&std::mem::take(&mut trace.bytes))?;
    }
    let rest = trace.end();
    out.write_all(&rest)
}
