//! The kernels of `testdata/cu/features.cu`, optimized, not optimized and for linking, against what its C++ says:
//! calls, recursion, calls through pointers, printf, structs by value, switches, traps, local arrays, clusters.

use crate::common::{Device, bytes_of, fault, params, read, words_of};
use nt_vgpu::{FaultKind, Launch, Memory};

const TEXTS: [&str; 5] =
    ["features.sm_90", "features.debug.sm_90", "features.rdc.sm_90", "features.sm_80", "features.sm_100"];

fn each(test: impl Fn(&mut Device, &str)) {
    for name in TEXTS {
        test(&mut Device::new(&read(&format!("testdata/ptx/nvcc/{name}.ptx"))), name);
    }
}

fn floats(device: &Device, address: u64) -> Vec<f32> {
    words_of(&device.memory.download(address)).into_iter().map(f32::from_bits).collect()
}

fn launch(grid: u32, block: u32, params: &[u8]) -> Launch<'_> {
    Launch { grid: [grid, 1, 1], block: [block, 1, 1], params, ..Launch::default() }
}

#[test]
fn nothing_runs() {
    each(|device, name| {
        let outcome = device.run("no_parameters", launch(3, 48, &[])).expect(name);
        assert_eq!(outcome.stats.threads, 144);
    });
}

#[test]
fn functions_are_called_and_recurse() {
    each(|device, name| {
        let table: Vec<f32> = (0..64).map(|i| 1.0 / (i + 1) as f32).collect();
        let bits: Vec<u32> = table.iter().map(|f| f.to_bits()).collect();
        device.write_words(device.variable("table"), &bits);
        let xs: Vec<f32> = (0..100).map(|i| i as f32 / 100.0).collect();
        let input = device.upload_words(&xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        let out = device.memory.allocate(400);
        let given = params(&[&input.to_le_bytes(), &out.to_le_bytes(), &100u32.to_le_bytes()]);
        device.run("calls", launch(2, 64, &given)).expect(name);
        let fibonacci = [0.0, 1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0];
        for (i, (x, got)) in xs.iter().zip(floats(device, out)).enumerate() {
            let y = table.iter().rev().fold(0f64, |y, &c| y * f64::from(*x) + f64::from(c));
            let want = y + fibonacci[i & 7];
            assert!((f64::from(got) - want).abs() < 1e-4 * want.abs().max(1.0), "{name} {i}: {got} {want}");
        }
    });
}

#[test]
fn threads_end_inside_of_functions() {
    each(|device, name| {
        let out = device.memory.allocate(64 * 4);
        let outcome = device.run("exits_in_callee", launch(1, 64, &out.to_le_bytes())).expect(name);
        assert_eq!(words_of(&device.memory.download(out)), [1, 0].repeat(32), "{name}");
        assert_eq!(outcome.stats.threads, 64);
    });
}

#[test]
fn functions_are_reached_through_pointers() {
    each(|device, name| {
        for (which, want) in [(0u32, [0.0, 2.0, 4.0, 6.0]), (1, [0.0, 1.0, 4.0, 9.0])] {
            let data = device.upload_words(&[0f32, 1.0, 2.0, 3.0].map(f32::to_bits));
            let given = params(&[&data.to_le_bytes(), &which.to_le_bytes()]);
            device.run("through_pointers", launch(1, 4, &given)).expect(name);
            assert_eq!(floats(device, data), want, "{name}");
        }
    });
}

#[test]
fn a_pointer_to_another_modules_function_is_a_fault() {
    each(|device, name| {
        let table = device.variable("operations");
        device.memory.update(table, 8, &|address| address ^ 1 << 24).expect(name);
        let data = device.upload_words(&[0; 4]);
        let given = params(&[&data.to_le_bytes(), &0u32.to_le_bytes()]);
        let fault = fault(device.run("through_pointers", launch(1, 4, &given)));
        assert!(matches!(fault.kind, FaultKind::Undefined(_)), "{name}: {fault}");
        assert_eq!(fault.opcode, "call");
    });
}

#[test]
fn printf_hands_text_back() {
    each(|device, name| {
        let counter = device.variable("counter");
        device.write_words(counter, &[41]);
        let outcome = device.run("prints", launch(2, 32, &(-7i32).to_le_bytes())).expect(name);
        assert_eq!(
            String::from_utf8_lossy(&outcome.printed),
            "x = -7, counter = 41\nx = -7, counter = 42\n",
            "{name}"
        );
    });
}

#[test]
fn structs_are_passed_by_value() {
    each(|device, name| {
        let out = device.memory.allocate(128 * 4);
        let mut config = bytes_of(&[2.5f32.to_bits(), 7, 3, 9]);
        config.extend([250, 0, 0, 0]); // the tag, -6, and padding
        let mut given = config;
        given.resize(24, 0);
        given.extend(out.to_le_bytes());
        given.push(4);
        let launch = Launch { shared: 512, ..launch(1, 128, &given) };
        device.run("by_value", launch).expect(name);
        assert_eq!(floats(device, out), vec![2.5 * 4.0 - 6.0; 128], "{name}");
    });
}

#[test]
fn a_block_larger_than_the_bounds_is_not_launched() {
    each(|device, _| {
        let given = [0; 40];
        assert!(device.run("by_value", launch(1, 129, &given)).is_err());
        assert!(device.run("by_value", launch(1, 128, &given[..16])).is_err());
        assert!(device.run("nobody", launch(1, 1, &[])).is_err());
        assert!(device.run("no_parameters", launch(1, 1025, &[])).is_err());
        assert!(device.run("no_parameters", launch(0, 1, &[])).is_err());
    });
}

#[test]
fn switches_go_where_they_should_and_trap() {
    each(|device, name| {
        let start = 0xf000_0123u32;
        let op = device.upload_words(&[0, 1, 2, 3, 4, 5, 6, 7]);
        let out = device.upload_words(&[start; 8]);
        let given = params(&[&op.to_le_bytes(), &out.to_le_bytes(), &8u32.to_le_bytes()]);
        device.run("switches", launch(1, 32, &given)).expect(name);
        let want = [
            start.wrapping_add(1),
            start.wrapping_mul(3),
            start ^ 0x55,
            // `v >> 29` of a signed v.
            start << 3 | (start.cast_signed() >> 29).cast_unsigned(),
            start.count_ones(),
            start.leading_zeros(),
            start.wrapping_neg(),
            (start.cast_signed() / 8).cast_unsigned(),
        ];
        assert_eq!(words_of(&device.memory.download(out)), want, "{name}");

        device.write_words(op, &[0, 0, 99]);
        let fault = fault(device.run("switches", launch(1, 32, &given)));
        assert_eq!((fault.kind, fault.thread, fault.opcode.as_str()), (FaultKind::Trap, [2, 0, 0], "trap"));
    });
}

#[test]
fn local_arrays_are_a_threads_own() {
    each(|device, name| {
        let index: Vec<u32> = (0..32).map(|i| i * 7).collect();
        let values: Vec<f32> = (0..1024).map(|i| i as f32).collect();
        let idx = device.upload_words(&index);
        let out = device.upload_words(&values.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
        let given = params(&[&idx.to_le_bytes(), &out.to_le_bytes()]);
        device.run("local_array", launch(1, 32, &given)).expect(name);
        // i·7 mod 32 takes each value once.
        for (thread, got) in floats(device, out).into_iter().take(32).enumerate() {
            let want: f32 = (0..32).map(|i| (i * 32 + thread) as f32).sum();
            assert_eq!(got, want, "{name}");
        }
    });
}

#[test]
fn templates_of_two_types() {
    each(|device, name| {
        let x: Vec<u8> = (0..50).flat_map(|i| f64::from(i).to_le_bytes()).collect();
        let (x, y) = (device.memory.upload(&x), device.memory.upload(&[0; 400]));
        let given =
            params(&[&2.5f64.to_le_bytes(), &x.to_le_bytes(), &y.to_le_bytes(), &50u64.to_le_bytes()]);
        device.run("_Z4axpyIdEvT_PKS0_PS0_m", launch(1, 16, &given)).expect(name);
        let want: Vec<u8> = (0..50).flat_map(|i| (2.5 * f64::from(i)).to_le_bytes()).collect();
        assert_eq!(device.memory.download(y), want, "{name}");
    });
}

#[test]
fn blocks_of_a_cluster_know_their_rank() {
    each(|device, name| {
        if device.program.kernel("clustered").is_none() {
            assert_eq!(name, "features.sm_80");
            return;
        }
        let out = device.memory.allocate(24);
        device.run("clustered", launch(6, 4, &out.to_le_bytes())).expect(name);
        assert_eq!(words_of(&device.memory.download(out)), [0, 1, 0, 1, 0, 1], "{name}");
        assert!(device.run("clustered", launch(5, 4, &out.to_le_bytes())).is_err());
    });
}
