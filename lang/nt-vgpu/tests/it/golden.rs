//! Instructions on edge values give what an H200 gave: `tests/golden/`.

use crate::common::read;
use nt_vgpu::{Arena, Launch, Options, Program};
use std::fmt::Write as _;
use std::path::Path;

const CASES: &str = include_str!("../golden/cases.txt");
const H200: &str = include_str!("../golden/h200.tsv");

struct Case {
    inputs: Vec<char>,
    result: char,
    statements: &'static str,
}

fn cases() -> Vec<Case> {
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let letters =
        |text: &str| text.split_whitespace().map(|word| word.chars().next().unwrap()).collect::<Vec<_>>();
    lines
        .map(|line| {
            let (head, statements) = line.split_once('|').expect("a bar");
            let (inputs, result) = head.split_once("->").expect("an arrow");
            Case { inputs: letters(inputs), result: letters(result)[0], statements: statements.trim() }
        })
        .collect()
}

/// The values that a letter stands for, as the bits of a register; the most telling first.
fn values(letter: char) -> Vec<u64> {
    let f = |all: &[f64]| -> Vec<u64> { all.iter().map(|&v| u64::from((v as f32).to_bits())).collect() };
    match letter {
        'w' => vec![
            0,
            1,
            0xffff_ffff,
            0x8000_0000,
            0x7fff_ffff,
            0x1234_5678,
            0xdead_beef,
            2,
            7,
            0xffff_fff9,
            255,
            256,
            31,
            32,
            0x8000_0001,
            0xffff,
            0x1_0000,
            0x3c00_bc00,
            0x7e00_0001,
            0x00ff_ff00,
        ],
        'l' => vec![
            0,
            1,
            u64::MAX,
            1 << 63,
            i64::MAX as u64,
            0x0123_4567_89ab_cdef,
            0xdead_beef_0bad_f00d,
            2,
            0xffff_ffff,
            1 << 32,
            0xffff_ffff_8000_0000,
            7,
            (-7i64) as u64,
            0x0020_0000_0000_0001,
            0x7fff_ffbf_ffff_ffff,
            0x7fff_ff40_0000_0001,
        ],
        's' => vec![0, 1, 0xffff, 0x8000, 0x7fff, 0x1234, 0xdead, 2, 7, 255, 256, 0xff80],
        'n' => vec![0, 1, 31, 32, 5, 33, 63, 64, 8, 16, 65, 255, 256, 0xffff_ffff, 17, 3],
        'i' => (0..23u64)
            .map(|n| half((n * 5 % 7) as f64 - 3.0) | half((n * 3 % 5) as f64 - 2.0) << 16)
            .collect(),
        'j' => (0..23u64)
            .map(|n| {
                (f(&[(n * 5 % 7) as f64 - 3.0])[0] >> 16) | (f(&[(n * 3 % 5) as f64 - 2.0])[0] & 0xffff_0000)
            })
            .collect(),
        'k' => (0..13u64).map(|n| f(&[(n * 5 % 7) as f64 - 3.0])[0]).collect(),
        'f' => {
            let mut all = f(&[
                0.0,
                -0.0,
                1.0,
                -1.5,
                f64::from(f32::MAX),
                f64::INFINITY,
                1.0 / 3.0,
                -f64::INFINITY,
                1e-45,
                2.5,
                -1e-39,
                1.17549435e-38,
                3.5,
                -0.5,
                16777217.0,
                2147483648.0,
                -2147483648.0,
                4294967040.0,
                4294967296.0,
                9.223372e18,
                1.8446744e19,
                1e-30,
                -3.0e38,
                65504.0,
                65520.0,
                0.999,
                127.5,
                128.0,
                -129.0,
                6.1e-5,
                5.9e-8,
                2.9e-8,
                1.00048828125,
                3.0e38,
                8388609.0,
                0.25,
                -7.75,
                1.40625,
                100.0,
                1.1754942e-38,
            ]);
            // Products of these are next to the least normal number.
            all.splice(7..7, [0x3f7f_fffe, 0x0080_0001, 0x3f7f_ffff]);
            // NaNs: quiet, signalling, negative with something in it.
            all.splice(5..5, [0x7fc0_0000, 0x7f80_0001, 0xffc1_2345]);
            all
        }
        'd' => {
            let mut all: Vec<u64> = [
                0.0f64,
                -0.0,
                1.0,
                -1.5,
                f64::MAX,
                f64::INFINITY,
                1.0 / 3.0,
                f64::NEG_INFINITY,
                5e-324,
                2.5,
                3.5,
                -0.5,
                1e-310,
                2.2250738585072014e-308,
                9007199254740993.0,
                2147483647.5,
                -2147483648.5,
                4294967295.5,
                9.3e18,
                1.8446744073709552e19,
                3.4028235e38,
                3.4028236e38,
                1e39,
                1e-45,
                7.1e-46,
                1.1754943e-38,
                65519.99,
                65520.0,
                1.0 + 1.0 / 16_777_216.0,
                1.0 + 1.0 / 16_777_216.0,
                0.1,
                -1e300,
                1e300,
                2.9802322387695312e-8,
                -9.3e18,
            ]
            .iter()
            .map(|v| v.to_bits())
            .collect();
            all.splice(5..5, [0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0xfff8_1234_5678_9abc]);
            all
        }
        'h' => vec![
            0, 0x8000, 0x3c00, 0xbe00, 0x7bff, 0x7c00, 0x7e00, 0x7c01, 0xfe12, 0x0001, 0x3555, 0xfc00,
            0x83ff, 0x0400, 0x3800, 0x4100, 0x0401, 0x3bfe, 0x3bff, 0x6400, 0x1400, 0xc248,
        ],
        'b' => vec![
            0, 0x8000, 0x3f80, 0xbfc0, 0x7f7f, 0x7f80, 0x7fc0, 0x7f81, 0xffd2, 0x0001, 0x3eab, 0xff80,
            0x807f, 0x0080, 0x3f00, 0x4020,
        ],
        other => panic!("no values for `{other}`"),
    }
}

/// A small integer as an f16.
fn half(value: f64) -> u64 {
    let bits = (value as f32).to_bits();
    if value == 0.0 {
        0
    } else {
        u64::from(bits >> 16 & 0x8000 | ((bits >> 23 & 0xff) - 112) << 10 | bits >> 13 & 0x3ff)
    }
}

impl Case {
    /// Three words a thread, whole warps of them.
    fn given(&self) -> Vec<[u64; 3]> {
        let most = [64, 24, 11][self.inputs.len() - 1];
        let mut all = vec![[0; 3]];
        for (at, &letter) in self.inputs.iter().enumerate() {
            let of = values(letter);
            let extend = |row: &[u64; 3]| -> Vec<[u64; 3]> {
                of.iter()
                    .take(most)
                    .map(|&v| {
                        let mut row = *row;
                        row[at] = v;
                        row
                    })
                    .collect()
            };
            all = all.iter().flat_map(extend).collect();
        }
        let count = all.len();
        (0..count.next_multiple_of(32)).map(|i| all[i % count]).collect()
    }

    fn ptx(&self) -> String {
        let ty = |letter| match letter {
            'w' | 'n' | 'i' | 'j' => ".b32",
            'l' => ".b64",
            's' | 'h' | 'b' => ".b16",
            'f' | 'k' | 'e' => ".f32",
            'd' => ".f64",
            'p' => ".pred",
            other => panic!("no type for `{other}`"),
        };
        let mut text = String::from(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n\
             .reg .pred %p, %q; .reg .b32 %t, %u, %v, %i, %y; .reg .b64 %x, %in, %out, %w; .reg .f32 %e, %f, %g, %h; .reg .b16 %z;\n\
             ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n\
             mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mov.u32 %u, %tid.x; mad.lo.u32 %i, %i, %t, %u;\n\
             mad.wide.u32 %in, %i, 24, %in; mad.wide.u32 %out, %i, 8, %out;\n",
        );
        for ((at, letter), name) in self.inputs.iter().enumerate().zip(["%a", "%b", "%c"]) {
            let ty = ty(*letter);
            // The loads have the registers' own types.
            writeln!(text, ".reg {ty} {name}; ld.global{ty} {name}, [%in+{}];", at * 8).unwrap();
        }
        if self.result != 'p' {
            writeln!(text, ".reg {} %d;", ty(self.result)).unwrap();
        }
        writeln!(text, "{}", self.statements).unwrap();
        let widen = match self.result {
            'p' => "selp.b64 %w, 1, 0, %p;",
            'l' | 'd' => "mov.b64 %w, %d;",
            's' | 'h' | 'b' => "cvt.u64.u16 %w, %d;",
            'f' | 'e' => "mov.b32 %y, %d; cvt.u64.u32 %w, %y;",
            _ => "cvt.u64.u32 %w, %d;",
        };
        writeln!(text, "{widen}\nst.global.b64 [%out], %w;\nret;\n}}").unwrap();
        text
    }

    /// The results of the software GPU.
    fn run(&self) -> Result<Vec<u64>, String> {
        let text = self.ptx();
        let (module, mut found) = nt_ptx::parse(&text);
        let info = nt_ptx::resolve(&module, &mut found);
        assert!(!found.has_errors(), "{found:?}\n{text}");
        let program = Program::load(&module, &info).expect("it has no variables");
        let given = self.given();
        let mut memory = Arena::new();
        let bytes: Vec<u8> = given.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let (input, out) = (memory.upload(&bytes), memory.allocate(given.len() * 8));
        let params: Vec<u8> = [input, out].iter().flat_map(|p| p.to_le_bytes()).collect();
        let launch = Launch {
            grid: [(given.len() / 32) as u32, 1, 1],
            block: [32, 1, 1],
            params: &params,
            ..Launch::default()
        };
        nt_vgpu::run(&program, "k", launch, &memory, Options::default())
            .map_err(|failure| failure.to_string())?;
        let bytes = memory.download(out);
        Ok(bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect())
    }
}

impl Case {
    /// What the golden file holds of a case: a hash, or all values where they need not be the same.
    fn told(&self, results: &[u64]) -> String {
        match self.result {
            'e' => results.iter().map(|value| format!("{value:x}")).collect::<Vec<_>>().join(","),
            _ => format!("{:016x}", hash(results)),
        }
    }

    fn agrees(&self, told: &str, own: &[u64]) -> bool {
        match self.result {
            'e' => {
                let gpu = told.split(',').map(|value| u64::from_str_radix(value, 16).unwrap());
                gpu.zip(self.given()).zip(own).all(|((gpu, given), own)| is_near(self, given, gpu, *own))
            }
            _ => told == self.told(own),
        }
    }
}

/// Is an approximation as near to the GPU's as the manual lets both be to the truth?
fn is_near(case: &Case, given: [u64; 3], gpu: u64, own: u64) -> bool {
    let [gpu, own] = [gpu, own].map(|bits| f32::from_bits(bits as u32));
    let opcode = case.statements.split('.').next().unwrap();
    let ulp = |units: f32| (gpu - own).abs() <= units * f32::EPSILON * gpu.abs().max(own.abs());
    match opcode {
        // Nothing is promised of an angle beyond a turn.
        "sin" | "cos" if f32::from_bits(given[0] as u32).abs() > 6.3 => true,
        "sin" | "cos" if gpu.is_finite() && own.is_finite() => (gpu - own).abs() <= 2f32.powi(-20),
        _ if gpu.is_nan() || own.is_nan() => gpu.is_nan() && own.is_nan(),
        _ if gpu.is_infinite() || own.is_infinite() || gpu == 0.0 => gpu.to_bits() == own.to_bits(),
        "lg2" => (gpu - own).abs() <= 2f32.powi(-21) || ulp(2.0),
        "tanh" => (gpu - own).abs() <= 2f32.powi(-10) * own.abs(),
        _ => ulp(4.0),
    }
}

fn hash(results: &[u64]) -> u64 {
    results
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// With `NT_VGPU_EMIT` set, what `run.py` needs is written there; with `NT_VGPU_TAKE`, its results become the golden file.
fn exchange(cases: &[Case]) {
    if let Ok(folder) = std::env::var("NT_VGPU_EMIT") {
        let folder = Path::new(&folder);
        let (mut index, mut inputs) = (String::new(), Vec::new());
        for (number, case) in cases.iter().enumerate() {
            std::fs::write(folder.join(format!("{number}.ptx")), case.ptx()).unwrap();
            let given = case.given();
            writeln!(index, "{number} {}", given.len()).unwrap();
            inputs.extend(given.iter().flatten().flat_map(|word| word.to_le_bytes()));
        }
        std::fs::write(folder.join("index.txt"), index).unwrap();
        std::fs::write(folder.join("inputs.bin"), inputs).unwrap();
    }
    if let Ok(file) = std::env::var("NT_VGPU_TAKE") {
        let bytes = std::fs::read(file).unwrap();
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
        let mut rest = words.as_slice();
        let mut golden = String::from("# Hash of the results of each case, as an H200 gave them.\n");
        for case in cases {
            let given = case.given();
            let (of_case, later) = rest.split_at(given.len());
            rest = later;
            writeln!(golden, "{}\t{}", case.told(of_case), case.statements).unwrap();
            match case.run() {
                Err(why) => println!("{}: {why}", case.statements),
                Ok(own) => {
                    let same = |given: [u64; 3], gpu: u64, own: u64| {
                        gpu == own || case.result == 'e' && is_near(case, given, gpu, own)
                    };
                    let differ = given.iter().zip(of_case.iter().zip(&own));
                    let differ = differ.filter(|(given, (gpu, own))| !same(**given, **gpu, **own));
                    for (given, (gpu, own)) in differ.take(6) {
                        println!("{}: {given:x?}: GPU {gpu:x}, here {own:x}", case.statements);
                    }
                }
            }
        }
        assert!(rest.is_empty());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/h200.tsv");
        std::fs::write(path, golden).unwrap();
    }
}

#[test]
fn golden_results_of_instructions() {
    let cases = cases();
    exchange(&cases);
    let golden: Vec<(&str, &str)> =
        H200.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t')).collect();
    assert_eq!(golden.len(), cases.len(), "cases without a result of the GPU");
    let mut wrong = Vec::new();
    for (case, (want, statements)) in cases.iter().zip(golden) {
        assert_eq!(case.statements, statements);
        match case.run() {
            Ok(results) if case.agrees(want, &results) => (),
            Ok(_) => wrong.push(format!("{statements}: other results")),
            Err(why) => wrong.push(format!("{statements}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(read("lang/nt-vgpu/tests/golden/README.md").contains("h200.tsv"));
}
