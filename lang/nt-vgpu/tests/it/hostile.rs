//! Whatever the text, the interpreter ends: with results, a fault or a refusal, never with a panic or without end.

use crate::common::read;
use nt_vgpu::{Arena, Launch, Memory as _, Options, Program};

/// A small generator of our own, so that a failure can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }
}

/// Runs all kernels of a text, if it can be read, in a little memory and not for long.
fn run(text: &str, seed: u64) -> usize {
    let (module, mut found) = nt_ptx::parse(text);
    let info = nt_ptx::resolve(&module, &mut found);
    let Ok(program) = Program::load(&module, &info) else {
        return 0;
    };
    let mut memory = Arena::new();
    let [globals, constants] =
        [program.globals(), program.constants()].map(|s| memory.allocate(s.size.min(1 << 16) as usize));
    // The variables may be larger than what they were given.
    let _ = program.initialise(&memory, globals, constants);
    let buffer = memory.allocate(1 << 14);
    memory.write(buffer, &[0x3c; 64]).expect("it has room");
    let mut ran = 0;
    for kernel in program.kernels() {
        let params: Vec<u8> =
            buffer.to_le_bytes().into_iter().cycle().take(kernel.param_bytes.min(4096) as usize).collect();
        let launch = Launch {
            grid: [2, 1, 1],
            block: kernel.required_block.unwrap_or([33, 1, 1]),
            shared: 4096,
            params: &params,
            globals,
            constants,
            ..Launch::default()
        };
        let options =
            Options { seed: (seed % 2 == 1).then_some(seed), max_steps: 3_000, ..Options::default() };
        let _ = nt_vgpu::run(&program, &kernel.name, launch, &memory, options);
        ran += 1;
    }
    ran
}

/// Statements, each with another's opcode, operands, or both; or gone.
fn mutated(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let body: Vec<usize> =
        (0..lines.len()).filter(|&at| lines[at].starts_with('\t') && lines[at].ends_with(';')).collect();
    let mut made: Vec<String> = Vec::new();
    for _ in 0..1 + random.below(6) {
        let (a, b) = (body[random.below(body.len())], body[random.below(body.len())]);
        let words = |line: &str| -> Vec<String> { line.split(['\t', ' ']).map(str::to_owned).collect() };
        let (mut to, from) = (words(lines[a]), words(lines[b]));
        match random.below(4) {
            0 => lines.swap(a, b),
            1 => lines[a] = "",
            _ => {
                let (at, of) = (random.below(to.len()), random.below(from.len()));
                to[at].clone_from(&from[of]);
                made.push(format!("{a} {}", to.join(" ")));
            }
        }
    }
    let mut all: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    for line in made {
        let (at, text) = line.split_once(' ').expect("as written above");
        all[at.parse::<usize>().expect("a number")] = text.to_owned();
    }
    all.join("\n")
}

#[test]
fn mutants_of_the_corpora_end() {
    let mut random = Random(1);
    for path in [
        "nvcc/features.sm_90",
        "nvcc/features.debug.sm_90",
        "nvcc/kernels.sm_90",
        "triton/matmul.sm_80",
        "triton/attention.sm_100a",
    ] {
        let text = read(&format!("testdata/ptx/{path}.ptx"));
        let mut ran = 0;
        for round in 0..12 {
            ran += run(&mutated(&text, &mut random), round);
        }
        assert!(ran > 0, "{path}: no mutant was run");
    }
}

#[test]
fn instructions_with_strange_operands_end() {
    let cases: Vec<&str> = include_str!("../golden/cases.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('|'))
        .map(|(_, statements)| statements)
        .collect();
    let names = [
        "%a",
        "%b",
        "%c",
        "%d",
        "%t",
        "%x",
        "%p",
        "%e",
        "%out",
        "0",
        "-1",
        "0x7fffffff",
        "0f7FC00000",
        "sm",
        "lm",
        "%clock64",
        "_",
    ];
    let mut random = Random(2);
    for round in 0..400 {
        let mut body = String::new();
        for _ in 0..6 {
            let case = cases[random.below(cases.len())];
            let mut text = case.to_owned();
            for _ in 0..random.below(3) {
                text = text.replacen(names[random.below(8)], names[random.below(names.len())], 1);
            }
            // Declarations and labels once each are enough.
            let fine = text
                .split_inclusive(';')
                .filter(|s| !s.contains(':') && !s.contains(".shared .") && !s.contains(".local ."));
            body.extend(fine);
        }
        let types = [".b16", ".b32", ".b64", ".f32", ".f64", ".pred"];
        let mut ty = || types[random.below(types.len())];
        let text = format!(
            ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 p) {{ .shared .align 16 .b8 sm[512]; \
             .local .align 8 .b8 lm[16]; .reg {} %a; .reg {} %b; .reg {} %c; .reg {} %d; .reg .b32 %t, %u, %v, %y; .reg .b64 %x, %out; \
             .reg .b16 %z; .reg .f32 %e, %f, %g, %h; .reg .pred %p, %q; ld.param.u64 %out, [p]; mov.u64 %x, -8; {body} }}",
            ty(),
            ty(),
            ty(),
            ty()
        );
        assert_eq!(run(&text, round), 1, "{text}");
    }
}

#[test]
fn addresses_at_the_ends_of_everything() {
    let addresses = [
        "0",
        "-1",
        "-16",
        "0x7fffffffffffffff",
        "0x8000ffffffff",
        "0x800001000000",
        "0x90000000fff8",
        "0xa0000000",
        "0xb00000000000",
        "0xfffffffffffffff0",
    ];
    for address in addresses {
        for (round, access) in [
            "ld.b64 %r, [%x];", "st.v4.b32 [%x], {%t,%t,%t,%t};", "atom.add.u64 %r, [%x], 1;", "ld.shared.b64 %r, [%x];",
            "ld.local.b64 %r, [%x+8];", "ld.const.b64 %r, [%x];", "mbarrier.arrive.b64 %r, [%x];",
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x], [%x], 64, [%x];",
            "cp.async.bulk.global.shared::cta.bulk_group [%x], [%t], -16;", "cp.async.ca.shared.global [%t], [%x], 16, 3;",
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%t}, [%t];", "call %x, P; P: .callprototype _ ();",
            "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %x; st.param.b64 [b], %x; call (c), vprintf, (a, b); }",
            "brx.idx %t, T; T: .branchtargets A; A:", "bar.sync %t, %t;", "shfl.sync.idx.b32 %t, %t, %t, %t, %t;",
        ]
        .iter()
        .enumerate()
        {
            let text = format!(
                ".version 9.0 .target sm_90 .address_size 64 .extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);
                 .visible .entry k(.param .u64 p) {{ .reg .b64 %x, %r; .reg .b32 %t; mov.u64 %x, {address}; cvt.u32.u64 %t, %x; {access} }}"
            );
            assert_eq!(run(&text, round as u64), 1, "{text}");
        }
    }
}
