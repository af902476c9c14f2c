//! Writes a trace of about so many MB to stdout, of block_sched or of dmat, to measure nt-map with:
//!
//!     cargo run --release -p nt-map --example synthetic -- 500 > /tmp/large.ntt
//!     time nt-map dump /tmp/large.ntt -o /dev/null
//!     cargo run --release -p nt-map --example synthetic -- 500 dmat > /tmp/stream.ntt

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::io::Write;
use synthetic::accesses::{Device, GATHER, LOAD, STORE, Values, access, dmat, sites};
use synthetic::{Trace, block_sched, record};

/// Warps a launch, 16 bytes each.
const WARPS: u64 = 1 << 16;

fn main() -> std::io::Result<()> {
    let megabytes: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(500);
    let mut out = std::io::stdout().lock();
    let mut trace = Trace::new(1);
    if std::env::args().nth(2).is_some_and(|word| word == "dmat") {
        streams(&mut trace, megabytes, &mut out)?;
    } else {
        records(&mut trace, megabytes, &mut out)?;
    }
    let rest = trace.end();
    out.write_all(&rest)
}

fn records(trace: &mut Trace, megabytes: u64, out: &mut impl Write) -> std::io::Result<()> {
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
    Ok(())
}

/// A product of matrices in tiles: each block walks along a row of A and down a column of B, gathers a little through an
/// index, and stores its tile of C at the end.
fn streams(trace: &mut Trace, megabytes: u64, out: &mut impl Write) -> std::io::Result<()> {
    const SIDE: u64 = 1024;
    const TILE: u64 = 32;
    let (a, b, c, x) = (0x7f20_0000_0000, 0x7f20_0080_0000, 0x7f20_0100_0000, 0x7f21_4000_0000u64);
    let kernel = trace.traced("_Z4gemmPKfS0_Pfi", "dmat", vec![dmat(16)], &sites());
    let tiles = SIDE / TILE;
    // 8 warps a block, each with 4 rows of the tile.
    let units = tiles * tiles * 8;
    let mut written = 0;
    while written < megabytes * 1_000_000 {
        let launch = trace.launch(kernel, [tiles as u32, tiles as u32, 1], [32, 8, 1]);
        let mut device = Device::new(16, units, units * 16 * 24);
        for warp in 0..units {
            let (block, row) = (warp / 8, warp % 8 * 4);
            let (y, x0) = (block / tiles * TILE, block % tiles * TILE);
            let mut at = 40 + (warp * 7 % 30) as u32;
            let mut save =
                |code, at, base, values| device.save(&access(warp, u32::MAX, code, at, base, values));
            for k in (0..SIDE).step_by(TILE as usize) {
                for i in 0..4 {
                    save(LOAD, at, a + ((y + row + i) * SIDE + k) * 4, Values::Nothing);
                    save(LOAD, at + 9, b + ((k + row + i) * SIDE + x0) * 4, Values::Nothing);
                    at += 18;
                }
                if k % 256 == 0 {
                    let words =
                        std::array::from_fn(|lane| (lane as u32).wrapping_mul(2_654_435_761) >> 16 << 2);
                    save(GATHER, at, x + k * 64, Values::Words(words));
                }
                at += 410 + (k * warp % 37) as u32;
            }
            for i in 0..4 {
                save(STORE, at + 4 * i as u32, c + ((y + row + i) * SIDE + x0) * 4, Values::Nothing);
            }
        }
        trace.stream(launch, 0, &device.parts(8));
        written += trace.bytes.len() as u64;
        out.write_all(&std::mem::take(&mut trace.bytes))?;
    }
    Ok(())
}
