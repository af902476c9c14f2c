//! Triton's kernels (`testdata/ptx/triton/kernels.py`) against their formulas: masks, `cp.async`, `ldmatrix`, `mma`.
//!
//! The two last parameters of each are scratch space that these kernels do not use.

use crate::common::{Device, params, read};
use nt_vgpu::Launch;

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// An f16 that is a small multiple of 1/8.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    match value {
        0.0 => 0,
        _ => (bits >> 16 & 0x8000 | ((bits >> 23 & 0xff) - 112) << 10 | bits >> 13 & 0x3ff) as u16,
    }
}

fn halves(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|&v| half(v).to_le_bytes()).collect()
}

/// Normal f16 numbers.
fn widened(bytes: &[u8]) -> Vec<f32> {
    let one = |b: &[u8]| {
        let bits = u32::from(u16::from_le_bytes([b[0], b[1]]));
        match bits & 0x7c00 {
            0 => (bits & 0x3ff) as f32 / (1 << 24) as f32 * if bits & 0x8000 == 0 { 1.0 } else { -1.0 },
            _ => f32::from_bits((bits & 0x8000) << 16 | (((bits & 0x7fff) << 13) + (112 << 23))),
        }
    };
    bytes.chunks_exact(2).map(one).collect()
}

/// Multiples of 1/8 from -1 to 1, without a pattern.
fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 16) % 17) as f32 / 8.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn launch<'a>(grid: [u32; 3], threads: u32, shared: u32, params: &'a [u8]) -> Launch<'a> {
    Launch { grid, block: [threads, 1, 1], shared, params, ..Launch::default() }
}

fn open(kernel: &str, arch: &str) -> Device {
    Device::new(&read(&format!("testdata/ptx/triton/{kernel}.{arch}.ptx")))
}

const ARCHES: [&str; 3] = ["sm_80", "sm_90a", "sm_100a"];

#[test]
fn vector_add() {
    for arch in ARCHES {
        let mut device = open("vector_add", arch);
        let n = 2500usize;
        let (x, y) = (noise(n, 1), noise(n, 2));
        let [a, b] = [&x, &y].map(|v| device.memory.upload(&f32s(v)));
        let out = device.memory.allocate(n * 4);
        let given = params(&[
            &a.to_le_bytes(),
            &b.to_le_bytes(),
            &out.to_le_bytes(),
            &(n as u32).to_le_bytes(),
            &[0; 8],
            &[0; 8],
        ]);
        device.run("vector_add", launch([3, 1, 1], 128, 0, &given)).expect(arch);
        let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        assert_eq!(floats(&device.memory.download(out)), want, "{arch}");
    }
}

#[test]
fn softmax() {
    for arch in ARCHES {
        let mut device = open("softmax", arch);
        let (rows, columns, stride) = (3usize, 4000usize, 4096usize);
        let x = noise(rows * stride, 3);
        let a = device.memory.upload(&f32s(&x));
        let out = device.memory.allocate(rows * stride * 4);
        let given = params(&[
            &a.to_le_bytes(),
            &out.to_le_bytes(),
            &(stride as u32).to_le_bytes(),
            &(columns as u32).to_le_bytes(),
            &[0; 8],
            &[0; 8],
        ]);
        device.run("softmax", launch([rows as u32, 1, 1], 256, 1024, &given)).expect(arch);
        let got = floats(&device.memory.download(out));
        for (row, got) in x.chunks_exact(stride).zip(got.chunks_exact(stride)) {
            let sum: f64 = row[..columns].iter().map(|&v| f64::from(v).exp()).sum();
            for (v, got) in row[..columns].iter().zip(got) {
                let want = f64::from(*v).exp() / sum;
                assert!((f64::from(*got) - want).abs() < 1e-5 * want, "{arch}: {got} {want}");
            }
            assert!(got[columns..].iter().all(|&v| v == 0.0));
        }
    }
}

#[test]
fn matmul() {
    let mut device = open("matmul", "sm_80");
    // Two blocks of 128×128, what the second stores cut by the mask; three steps of k, the last cut.
    let (m, n, k, pitch) = (200usize, 128usize, 160usize, 192usize);
    // Loads of A are not masked by row.
    let (a, b) = (noise(256 * pitch, 4), noise(k * n, 5));
    let [pa, pb] = [&a, &b].map(|v| device.memory.upload(&halves(v)));
    let out = device.memory.allocate(m * n * 2);
    let int = |value: usize| (value as u32).to_le_bytes();
    let given = params(&[
        &pa.to_le_bytes(),
        &pb.to_le_bytes(),
        &out.to_le_bytes(),
        &int(m),
        &int(n),
        &int(k),
        &int(pitch),
        &int(n),
        &int(n),
        &[0; 8],
        &[0; 8],
    ]);
    let outcome = device.run("matmul", launch([2, 1, 1], 256, 98304, &given)).expect("sm_80");
    let got = widened(&device.memory.download(out));
    for row in 0..m {
        for column in 0..n {
            let want: f32 = (0..k).map(|i| a[row * pitch + i] * b[i * n + column]).sum();
            let got = got[row * n + column];
            assert!((got - want).abs() <= 0.001 * want.abs(), "{row} {column}: {got} {want}");
        }
    }
    assert_eq!(outcome.stats.threads, 512);
}

#[test]
fn attention() {
    const D: usize = 64;
    let mut device = open("attention", "sm_80");
    let (rows, length, scale) = (64usize, 192usize, 0.25f32);
    let (q, k, v) = (noise(rows * D, 6), noise(length * D, 7), noise(length * D, 8));
    let [pq, pk, pv] = [&q, &k, &v].map(|v| device.memory.upload(&halves(v)));
    let out = device.memory.allocate(rows * D * 2);
    let given = params(&[
        &pq.to_le_bytes(),
        &pk.to_le_bytes(),
        &pv.to_le_bytes(),
        &out.to_le_bytes(),
        &(length as u32).to_le_bytes(),
        &scale.to_le_bytes(),
        &[0; 8],
        &[0; 8],
    ]);
    device.run("attention", launch([1, 1, 1], 128, 65536, &given)).expect("sm_80");
    let got = widened(&device.memory.download(out));
    for row in 0..rows {
        let dot = |j: usize| -> f32 { (0..D).map(|d| q[row * D + d] * k[j * D + d]).sum() };
        let p: Vec<f64> = (0..length).map(|j| f64::from(dot(j) * scale).exp()).collect();
        let sum: f64 = p.iter().sum();
        for d in 0..D {
            let want: f64 = p.iter().enumerate().map(|(j, p)| p * f64::from(v[j * D + d])).sum::<f64>() / sum;
            let got = f64::from(got[row * D + d]);
            // The weights are rounded to f16 before they are multiplied.
            assert!((got - want).abs() < 2e-3, "{row} {d}: {got} {want}");
        }
    }
}
