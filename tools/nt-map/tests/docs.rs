//! The reader in `docs/formats.md` reads what this program does.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod synthetic;

use std::process::Command;
use synthetic::{ABSENT, Trace, block_sched, by_block, by_op, record, values};

#[test]
fn the_documented_reader_reads_a_trace() {
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md")).unwrap();
    let code = docs.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let mut trace = Trace::new(1);
    let kernel = trace.kernel("fill", "block_sched", vec![block_sched()]);
    let launch = trace.launch(kernel, [2, 1, 1], [64, 1, 1]);
    trace.records(launch, 0, &[record(1000, 31, 5), ABSENT, record(1 << 40, 7, 131), record(3, 0, 0)]);
    let kernel = trace.kernel("show", "values", vec![values()]);
    let launch = trace.launch(kernel, [1, 1, 1], [2, 1, 1]);
    let mut data = vec![0u8; 16 * 16];
    data[8..16].copy_from_slice(&0x7f00u64.to_le_bytes());
    data[128 + 4..][..4].copy_from_slice(&0.5f32.to_le_bytes());
    data[192 + 2..][..2].copy_from_slice(&(-3i16).to_le_bytes());
    data[224 + 1] = 1;
    data[240 + 1] = 1;
    trace.data(launch, 0, 2, &data);
    let kernel = trace.counted("copy", "gmem_bytes", vec![by_block("sync"), by_op("bytes", &["ld", "st"])]);
    let launch = trace.launch(kernel, [2, 1, 1], [32, 1, 1]);
    trace.cells(launch, 0, 2, &[4096, 1 << 63]);
    trace.persistent(kernel, 1, 0, &[1, 2, 0, 0, 3, 4, 0, 5]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ntt");
    std::fs::write(&path, trace.end()).unwrap();
    let output = match Command::new("python3").arg("-c").arg(code).arg(&path).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: no python3 ({error})");
            return;
        }
    };
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "0\tfill\tblock_sched\t0\t1000\t31\t5\n\
         0\tfill\tblock_sched\t2\t1099511627776\t7\t131\n\
         0\tfill\tblock_sched\t3\t3\t0\t0\n\
         1\tshow\tvalues\t1\t32512\t0.5\t-3\tTrue\n\
         2\tcopy\t@sync\t0\t4096\n\
         2\tcopy\t@sync\t1\t9223372036854775808\n\
         -\tcopy\t@bytes\t0\tld\t1\n\
         -\tcopy\t@bytes\t0\tst\t2\n\
         -\tcopy\t@bytes\t1\tld\t0\n\
         -\tcopy\t@bytes\t1\tst\t0\n\
         -\tcopy\t@bytes\t2\tld\t3\n\
         -\tcopy\t@bytes\t2\tst\t4\n\
         -\tcopy\t@bytes\t3\tld\t0\n\
         -\tcopy\t@bytes\t3\tst\t5\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
