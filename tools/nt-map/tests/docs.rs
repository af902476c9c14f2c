//! The reader in `docs/formats.md` reads what this program does.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

#[path = "../../../lang/nt-trace/tests/arrays/mod.rs"]
mod arrays;
mod synthetic;

use arrays::Left;
use nt_trace::ntm::{
    Code, Column, Field, Form, Lanes, Linear, Map, Param, Policy, Presence, Source, Stream, Term, Type, Unit,
};
use nt_wire::frame::Launch;
use nt_wire::stream::Head;
use std::process::Command;
use synthetic::accesses::{ATOMIC, Device, GATHER, LOAD, STRIDED, Values, access, dmat, sites};
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
    streams(&mut trace);
    saves(&mut trace);
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
         -\tcopy\t@bytes\t3\tst\t5\n\
         3\tk\tdmat\t0\t0\t5\t7\t[16, 20, 24, 28]\t[4, 4, 4, 4]\n\
         3\tk\tdmat\t0\t0\t6\t12\t[18446744073709551600, 18446744073709551600]\t[4, 4]\n\
         3\tk\tdmat\t1\t0\t7\t9\t[4096, 4064]\t[16, 16]\n\
         3\tk\tdmat\t1\t2\t8\t9\t[4096, 4099, 4095]\t[16, 16, 16]\n\
         4\tp\tprogress\t0\t0\t70000000000\t-2\n\
         4\tp\tprogress\t0\t0\t70000000001\t-3\n\
         5\tl\tmixed\t0\t0\t[64, 28, 64, 28]\t[-1, 2, -3, 4]\t[1, 2, 3, 4]\n\
         6\tw\tlast\t0\t0\t2\t12\n\
         6\tw\tlast\t0\t0\t3\t13\n\
         6\tw\tlast\t0\t0\t4\t14\n\
         6\tw\tlast\t0\t0\t5\t15\n\
         6\tw\tlast\t0\tother\t0\t90\n\
         6\tw\tlast\t1\t0\t0\t7\n\
         7\tt\tlast\t0\t0\t0\t1\n\
         7\tt\tlast\t0\t0\t1\t2\n\
         7\tt\tlast\t2\t0\t0\t5\n\
         7\tt\tlast\t2\t0\t1\t6\n\
         7\tt\tlast\t2\t0\t2\t7\n\
         7\tt\tlast\t2\t0\t3\t8\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Two warps whose array goes round, the second of which left without a count; three threads whose array drops.
fn saves(trace: &mut Trace) {
    let kernel = trace.kernel("w", "last", vec![arrays::last(Unit::Warp, Policy::Wrap)]);
    let launch = trace.launch(kernel, [2, 1, 1], [32, 1, 1]);
    let (capacity, data) = arrays::warps(&[
        Left { own: 7, other: 1, records: arrays::some(&[14, 15, 12, 13, 90]) },
        Left { own: 0, other: 0, records: arrays::some(&[7]) },
    ]);
    trace.saves(launch, 0, 2, capacity, &data);
    let kernel = trace.kernel("t", "last", vec![arrays::last(Unit::Thread, Policy::Drop)]);
    let launch = trace.launch(kernel, [1, 1, 1], [3, 1, 1]);
    let (capacity, data) = arrays::threads(&[
        Left { own: 3, other: 0, records: arrays::some(&[1, 2]) },
        Left { own: 1, other: 0, records: vec![] },
        Left { own: 9, other: 0, records: arrays::some(&[5, 6, 7, 8]) },
    ]);
    trace.saves(launch, 0, 3, capacity, &data);
}

/// Each form, in parts; a packed stream; and strides of parameters.
fn streams(trace: &mut Trace) {
    let kernel = trace.traced("k", "dmat", vec![dmat(16)], &sites());
    let launch = trace.launch(kernel, [1, 1, 1], [64, 1, 1]);
    let mut device = Device::new(16, 2, 64);
    device.save(&access(0, 0b1111, LOAD, 5, 16, Values::Nothing));
    device.save(&access(0, 0b11, ATOMIC, 6, u64::MAX - 15, Values::Nothing));
    device.save(&access(1, 0b11, STRIDED, 7, 4096, Values::Stride(-32)));
    let words = std::array::from_fn(|lane| [0, 0, 0, 3, u32::MAX].get(lane).copied().unwrap_or(7));
    device.save(&access(1, 0b11100, GATHER, 8, 4096, Values::Words(words)));
    trace.stream(launch, 0, &device.parts(3));

    let field = |name: &str, ty: Type, offset| Field { name: name.to_owned(), ty, offset, size: ty.size() };
    let column = |name: &str, ty, field| Column { name: name.to_owned(), ty, source: Source::Field(field) };
    let packed = Map {
        name: "progress".to_owned(),
        unit: Unit::Warp,
        columnar: false,
        stride: 16,
        fields: vec![field("at", Type::U64, 0), field("x", Type::S16, 8)],
        presence: Presence::Byte { offset: 10 },
        columns: vec![column("at", Type::U64, 0), column("x", Type::S64, 1)],
        stream: Some(Stream { chunk: 4, header: 1, bytes: 64, lanes: vec![], told: vec![], codes: vec![] }),
        slots: None,
    };
    let kernel = trace.traced("p", "progress", vec![packed], &[]);
    let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
    let head = Head { units: 1, cap: 4, slots: 4, chunk: 4, parts: 1, ..Head::default() };
    let mut part = [&head.encode()[..], &[0; 64]].concat();
    for (slot, x) in [(1usize, -2i16), (2, -3)] {
        part[64 + slot * 16..][..8].copy_from_slice(&(69_999_999_999 + slot as u64).to_le_bytes());
        part[64 + slot * 16 + 8..][..2].copy_from_slice(&x.to_le_bytes());
        part[64 + slot * 16 + 10] = 1;
    }
    trace.stream(launch, 0, &[part]);

    let lanes = |field, form| Lanes { field, form };
    let number = |constant, terms| Linear { constant, terms };
    let term = Term { param_offset: 4, size: 4, signed: true, factor: 4 };
    let none = || number(0, vec![]);
    let strides = [number(0, vec![term]), none(), none(), none(), none()];
    let map = Map {
        name: "mixed".to_owned(),
        unit: Unit::Warp,
        columnar: false,
        stride: 16,
        fields: vec![field("a", Type::Ptr, 0), field("b", Type::S16, 0), field("c", Type::U64, 0)],
        presence: Presence::Mask,
        columns: vec![column("a", Type::Ptr, 0), column("b", Type::S16, 1), column("c", Type::U64, 2)],
        slots: None,
        stream: Some(Stream {
            chunk: 8,
            header: 1,
            bytes: 64,
            lanes: vec![0, 1, 2],
            told: vec![],
            codes: vec![Code {
                site: 7,
                told: vec![],
                lanes: vec![lanes(0, Form::Bits(strides)), lanes(1, Form::List32), lanes(2, Form::List64)],
                assumes: vec![],
            }],
        }),
    };
    // A chunk of 8 has no room for 32 lanes: the manifest says 32, this test four.
    let map = Map { stream: map.stream.map(|stream| Stream { chunk: 32, ..stream }), ..map };
    let mut manifest = synthetic::manifest("l", "mixed", vec![map], vec![]);
    manifest.kernels[0].params = vec![Param { offset: 4, size: 4 }];
    manifest.kernels[0].sites = sites();
    let kernel = trace.kernel_of("l", &manifest);
    let number = trace.launches;
    trace.launch_as(&Launch {
        number,
        kernel,
        grid: [1, 1, 1],
        block: [32, 1, 1],
        params: [&[0; 4][..], &(-9i32).to_le_bytes()].concat(),
        ..Launch::default()
    });
    let mut device = Device::new(32, 1, 32);
    let mut saved = access(0, 0b1111, 0, 0, 64, Values::Nothing);
    saved.sections = vec![
        Values::Nothing,
        Values::Words(std::array::from_fn(|lane| [-1i32, 2, -3, 4][lane % 4] as u32)),
        Values::Longs(std::array::from_fn(|lane| lane as u64 + 1)),
    ];
    device.save(&saved);
    trace.stream(number, 0, &device.parts(1));
}
