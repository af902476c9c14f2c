//! The eleven kernels of `bench/`, compiled by nvcc, give what an H200 gives (`bench/checksums.tsv`): bit by bit where
//! that file says so, else close to sums in f64. Inputs, sizes and launches are those of `bench/harness.cpp`.

use crate::common::{load, read};
use nt_vgpu::{Arena, Launch, Options, Outcome};

const SHRINK: u32 = 4;
const SMS: u32 = 4;

/// The harness's numbers.
struct Lcg(u32);

impl Lcg {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 8) as f32 * (1.0 / (1 << 24) as f32)
    }
}

fn bytes_of<const N: usize, T: Copy>(all: &[T], to: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    all.iter().flat_map(|&one| to(one)).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// What `checksums.tsv` hashes: the first MiB, byte by byte.
fn fnv(bytes: &[u8]) -> u64 {
    let first = &bytes[..bytes.len().min(1 << 20)];
    first.iter().fold(1_469_598_103_934_665_603, |h, &b| (h ^ u64::from(b)).wrapping_mul(1_099_511_628_211))
}

fn near(got: f32, want: f64, tolerance: f64) -> bool {
    (f64::from(got) - want).abs() <= tolerance * want.abs()
}

enum Expected {
    Checksum,
    Close(fn(&Inputs, &[f32]) -> bool),
}

struct Job {
    name: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    params: Vec<u8>,
    result: u64,
    expected: Expected,
}

struct Inputs {
    n: usize,
    m: u32,
    cols: usize,
    len: usize,
    queries: usize,
    fa: Vec<f32>,
    fb: Vec<f32>,
}

fn inputs(arena: &mut Arena) -> (Inputs, Vec<Job>) {
    let s = SHRINK;
    let (n, m, rows) = (1usize << (24 - 2 * s), 2048u32 >> s, 1u32 << (17 - 2 * s));
    let (cols, len, queries) = (4096usize >> s, 2048usize >> s, 16384usize >> s);
    let quads = 1usize << (21 - 2 * s);
    let mut lcg = Lcg(12345);
    let (mut fa, mut fb, mut ui) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        fa.push(lcg.unit());
        fb.push(lcg.unit());
        ui.push(lcg.next() >> 7);
    }
    let (mut ptr, mut idx) = (vec![0u32], Vec::new());
    for _ in 0..rows {
        let count = lcg.next() % 96;
        idx.extend((0..count).map(|_| lcg.next() % rows));
        ptr.push(idx.len() as u32);
    }
    let val: Vec<f32> = idx.iter().map(|_| lcg.unit()).collect();

    let a = arena.upload(&bytes_of(&fa, f32::to_le_bytes));
    let b = arena.upload(&bytes_of(&fb, f32::to_le_bytes));
    let u = arena.upload(&bytes_of(&ui, u32::to_le_bytes));
    let [dptr, didx] = [&ptr, &idx].map(|v| arena.upload(&bytes_of(v, u32::to_le_bytes)));
    let dval = arena.upload(&bytes_of(&val, f32::to_le_bytes));
    let mut room = |bytes: usize| arena.upload(&vec![0xff; bytes]);
    let mm = (m * m * 4) as usize;
    // A result of its own for each kernel.
    let [z, z2] = [room(quads * 16), room(quads * 16)];
    let [c, c2] = [room(n * 4), room(n * 4)];
    let [t, t2, img] = [room(mm), room(mm), room(mm)];
    let (y, o) = (room(rows as usize * 4), room(queries * 128));
    let [bins, total] = [1024, 4].map(|bytes| arena.allocate(bytes));

    let args = |list: &[(u64, usize)]| {
        let mut bytes = Vec::new();
        for &(value, size) in list {
            bytes.resize(bytes.len().next_multiple_of(size), 0);
            bytes.extend(&value.to_le_bytes()[..size]);
        }
        bytes
    };
    let p = |address: u64| (address, 8);
    let i = |value: usize| (value as u64, 4);
    let tiles = m / 32;
    let job = |name, grid, block, params: &[(u64, usize)], result, expected| Job {
        name,
        grid,
        block,
        params: args(params),
        result,
        expected,
    };
    let (q, mi, x) = (p(quads as u64), i(m as usize), |n: u32| [n, 1, 1]);
    let jobs = vec![
        job("fill_blocks", x(quads as u32 / 128), x(128), &[p(z), q], z, Expected::Checksum),
        job("fill_persistent", x(SMS * 4), x(512), &[p(z2), q], z2, Expected::Checksum),
        job("vector_add", x(n as u32 / 256), x(256), &[p(a), p(b), p(c), i(n)], c, Expected::Checksum),
        job("reduce_sum", x(SMS * 8), x(256), &[p(a), p(total), i(n)], total, Expected::Close(sum_close)),
        job("transpose", [tiles, tiles, 1], [32, 8, 1], &[p(a), p(t), mi], t, Expected::Checksum),
        job("matmul_tiled", [tiles, tiles, 1], [32, 32, 1], &[p(a), p(b), p(t2), mi], t2, Expected::Checksum),
        job(
            "softmax_rows",
            x((n / cols) as u32),
            x(256),
            &[p(a), p(c2), i(cols)],
            c2,
            Expected::Close(softmax_close),
        ),
        job(
            "attention_online",
            x(queries as u32 / 128),
            x(128),
            &[p(a), p(b), p(a + n as u64), p(o), i(len)],
            o,
            Expected::Close(attention_close),
        ),
        job(
            "mandelbrot",
            [m / 16, m / 16, 1],
            [16, 16, 1],
            &[p(img), mi, mi, i(1000)],
            img,
            Expected::Checksum,
        ),
        job("histogram", x(SMS * 8), x(256), &[p(u), p(bins), i(n)], bins, Expected::Checksum),
        job(
            "spmv_csr",
            x(rows * 32 / 256),
            x(256),
            &[p(dptr), p(didx), p(dval), p(b), p(y), i(rows as usize)],
            y,
            Expected::Checksum,
        ),
    ];
    (Inputs { n, m, cols, len, queries, fa, fb }, jobs)
}

fn sum_close(inputs: &Inputs, got: &[f32]) -> bool {
    near(got[0], inputs.fa.iter().map(|&v| f64::from(v)).sum(), 1e-4)
}

fn softmax_close(inputs: &Inputs, got: &[f32]) -> bool {
    assert_eq!(got.len(), inputs.n);
    inputs.fa.chunks_exact(inputs.cols).zip(got.chunks_exact(inputs.cols)).all(|(row, got)| {
        let top = row.iter().fold(f32::MIN, |a, &b| a.max(b));
        let e: Vec<f64> = row.iter().map(|&v| f64::from(v - top).exp()).collect();
        let sum: f64 = e.iter().sum();
        e.iter().zip(got).all(|(e, &got)| near(got, e / sum, 1e-5))
    })
}

fn attention_close(inputs: &Inputs, got: &[f32]) -> bool {
    const D: usize = 32;
    assert_eq!((got.len(), inputs.m), (inputs.queries * D, 2048 >> SHRINK));
    let (keys, values) = (&inputs.fb, &inputs.fa[inputs.n / 4..]);
    (0..inputs.queries).all(|row| {
        let q = &inputs.fa[row * D..][..D];
        let dot = |j: usize| -> f64 { (0..D).map(|d| f64::from(q[d]) * f64::from(keys[j * D + d])).sum() };
        let scores: Vec<f64> = (0..inputs.len).map(dot).collect();
        let top = scores.iter().fold(f64::MIN, |a, &b| a.max(b));
        let p: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let sum: f64 = p.iter().sum();
        (0..D).all(|d| {
            let want: f64 = p.iter().enumerate().map(|(j, p)| p * f64::from(values[j * D + d])).sum();
            near(got[row * D + d], want / sum, 1e-4)
        })
    })
}

/// The checksum of a kernel's result, and whether it holds only with multiply-adds.
fn checksum(kernel: &str) -> (u64, bool) {
    let table = read("bench/checksums.tsv");
    let row =
        table.lines().find(|line| line.starts_with(&format!("{kernel}\t"))).expect("a row of the kernel");
    let column = row.split('\t').nth(1 + SHRINK as usize).expect("a column of the size");
    (u64::from_str_radix(column, 16).expect("a hexadecimal number"), row.contains("(fma"))
}

/// Runs all kernels of a text; gives their results.
fn run_all(path: &str, options: &Options) -> Vec<(&'static str, Vec<u8>, Outcome)> {
    let program = load(&read(path));
    let mut arena = Arena::new();
    let (inputs, jobs) = inputs(&mut arena);
    let mut all = Vec::new();
    for job in jobs {
        let launch = Launch { grid: job.grid, block: job.block, params: &job.params, ..Launch::default() };
        let outcome = nt_vgpu::run(&program, job.name, launch, &arena, options.clone())
            .unwrap_or_else(|failure| panic!("{path}: {failure}"));
        let result = arena.download(job.result);
        match job.expected {
            Expected::Checksum => {
                let (checksum, is_fused) = checksum(job.name);
                // Unoptimized code multiplies and adds in two steps.
                assert!(
                    fnv(&result) == checksum || (is_fused && path.contains("debug")),
                    "{path}: {}",
                    job.name
                );
            }
            Expected::Close(close) => assert!(close(&inputs, &floats(&result)), "{path}: {}", job.name),
        }
        all.push((job.name, result, outcome));
    }
    assert_eq!(all.len(), 11);
    all
}

#[test]
fn results_are_those_of_a_gpu() {
    let all = run_all("testdata/ptx/nvcc/kernels.sm_90.ptx", &Options::default());
    // A thread of vector_add loads twice and stores once.
    let n = 1u64 << (24 - 2 * SHRINK);
    let (_, _, outcome) = all.iter().find(|(name, ..)| *name == "vector_add").expect("it ran");
    assert_eq!(outcome.stats.bytes(nt_vgpu::Space::Global), n * 12);
    assert_eq!(outcome.stats.threads, n);
}

#[test]
fn other_targets_and_unoptimized_code_give_the_same() {
    for name in ["kernels.sm_80", "kernels.sm_100", "kernels.lineinfo.sm_90", "kernels.debug.sm_90"] {
        run_all(&format!("testdata/ptx/nvcc/{name}.ptx"), &Options::default());
    }
}

/// None of the kernels but reduce_sum has a race, so that no schedule changes a bit.
#[test]
fn schedules_make_no_difference() {
    let plain = run_all("testdata/ptx/nvcc/kernels.sm_90.ptx", &Options::default());
    for seed in 1..=2 {
        let options = Options { seed: Some(seed), ..Options::default() };
        let shuffled = run_all("testdata/ptx/nvcc/kernels.sm_90.ptx", &options);
        for ((name, a, _), (_, b, _)) in plain.iter().zip(&shuffled) {
            assert!(*name == "reduce_sum" || a == b, "{name} with seed {seed}");
        }
    }
}
