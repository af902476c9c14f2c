//! `--explain SLUG`: what a kind of diagnostic means, with the smallest program that has it and the way out.
//!
//! The examples are compiled by a test, which holds that each raises the slug it explains.

use std::fmt;

/// One kind of diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// As diagnostics carry it.
    pub slug: &'static str,
    /// What it means, and the way out.
    pub text: &'static str,
    /// The smallest program that has it.
    pub example: &'static str,
}

/// How long the lines of an explanation are, at most.
const WIDTH: usize = 80;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.slug)?;
        let mut column = 0;
        for word in self.text.split(' ') {
            let length = word.chars().count();
            match column {
                0 => {}
                _ if column + 1 + length > WIDTH => {
                    writeln!(f)?;
                    column = 0;
                }
                _ => {
                    f.write_str(" ")?;
                    column += 1;
                }
            }
            f.write_str(word)?;
            column += length;
        }
        writeln!(f, "\n\nFor example:\n")?;
        self.example.lines().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

/// Looks up `slug`.
pub fn explain(slug: &str) -> Option<&'static Explanation> {
    EXPLANATIONS.iter().find(|explanation| explanation.slug == slug)
}

const fn on(slug: &'static str, example: &'static str, text: &'static str) -> Explanation {
    Explanation { slug, text, example }
}

/// Every slug that the front end can raise, in the order of its stages.
pub const EXPLANATIONS: &[Explanation] = &[
    // Text.
    on(
        "syntax",
        "state start u64;",
        "The text does not follow the grammar. The message says what could stand there and what does. Within a body \
         reading goes on behind the next `;`, else with the next item, so one run shows the errors of several places.",
    ),
    on(
        "bad-number",
        "const PAGE = 017;",
        "A number that is none: letters in it that are no suffix, a leading zero (octal is written 0o17), or a value \
         beyond 64 bits. Suffixes are KiB MiB GiB, and ns us ms s for times in nanoseconds.",
    ),
    on("open-comment", "state a: u32; /* and more", "A `/*` without a `*/`. Comments do not nest."),
    on(
        "open-string",
        "kernel:\"gemm:entry { }",
        "A string without its closing quote on the same line. Strings in three quotes may span lines; they stand in `asm` only.",
    ),
    on(
        "predicate-open",
        "kernel:entry /lane < 16 { }",
        "A `/` after the tracepoints opens a predicate, and the `/` directly before `{` closes it. There is none here. A usual \
         cause is `//`, which begins a comment wherever it stands.",
    ),
    on(
        "reserved",
        "state map: u64;",
        "The words config include const arg state map let if else asm as bits true false thread warp block belong to the \
         language. The last three may name fields and arguments; none may name anything else.",
    ),
    on(
        "version",
        "// nt 2\nstate a: u64;",
        "A comment `// nt N` before the first item names the version of the language that a program is written in. This \
         compiler knows version 1.",
    ),
    on(
        "too-deep",
        // Not shown whole: the test makes the text.
        "const A = ((((((…))))));",
        "Brackets or operators are nested or chained more than a few hundred times, which no person writes. Give names \
         to parts with `let` or `const`.",
    ),
    // Names.
    on(
        "unknown-name",
        "kernel:entry { let t = clcok(); }",
        "Nothing has this name. States and maps are declared outside of probes, lets in a body above their uses; all \
         other names are given by the language (`nt-probec --list`).",
    ),
    on(
        "duplicate-name",
        "state clock: u64;",
        "Constants, arguments, states, lets, maps and the names that the language gives share one space, and nothing may \
         be shadowed: else `let bytes = …` would silently change what `bytes` means further down.",
    ),
    on(
        "not-assignable",
        "const N = 3; kernel:entry { N = 4; }",
        "Only states and lets can be assigned. Constants keep their value, maps are saved to, and what the language gives \
         belongs to the program under test, which a probe cannot change.",
    ),
    on(
        "not-constant",
        "const T = clock();",
        "Constants and initial values are known when the program is compiled: literals, other constants, and operators \
         between them. A constant that is defined by itself, or by a state, is none.",
    ),
    on(
        "not-yet",
        "warp inst:load { @bytes = hist(bytes); }",
        "The program is right, but this version does not compile the construct that is named. `nt-probec --list` tells which \
         shipped probes compile and what the others wait for.",
    ),
    // Types.
    on(
        "type-mismatch",
        "kernel:entry { let x = cu + (lane == 0); }",
        "A value has a type that cannot stand here. Numbers and conditions do not convert into each other silently (write \
         `c as u32`, or `x != 0`), u64 and s64 have no common type, and a literal must fit the type that it takes from its \
         surroundings.",
    ),
    on(
        "lossy-conversion",
        "state n: u32; kernel:entry { n = clock(); }",
        "Widening is silent, but a conversion that could change a value is written out: `clock() as u32`.",
    ),
    on(
        "not-bool",
        "kernel:entry /lane/ { }",
        "Predicates, `if`, `?:`, `&&`, `||` and `!` take conditions. A number is none: write `lane != 0`.",
    ),
    on(
        "divisor",
        "kernel:entry { let x = clock() / thread; }",
        "No GPU divides 64 bits by a variable in one piece of straight code, and a probe calls nothing. Divide in 32 bits, by a \
         constant, or when reading the results.",
    ),
    // Units.
    on(
        "unit-mismatch",
        "map m: array<warp> { cu: u32 } thread kernel:exit { m.save(cu); }",
        "A probe and the map it saves to run by different units: thread probes save to `array<thread>`, warp probes to \
         `array<warp>` and `stream<warp>`. Reducers such as `lane_sum` are over the lanes of a warp, so they stand in warp \
         probes only.",
    ),
    on(
        "varying-value",
        "map m: array<warp> { t: u64 } warp kernel:exit { m.save(thread); }",
        "In a warp probe one elected lane saves for the warp. A value that differs between the lanes would be that lane's, \
         recorded as the warp's, without a sign. Reduce it, save it for every lane (`lanes<T>`, or a thread probe), or keep \
         lanes out by the predicate.",
    ),
    on(
        "block-probe",
        "block inst:load { }",
        "A block probe runs once a block: when its first thread comes and when its last leaves. So it stands at \
         kernel:entry and kernel:exit only.",
    ),
    // Tracepoints.
    on(
        "unknown-class",
        "inst:lod.global { }",
        "A word of a tracepoint that is none: a kind (kernel: func: bb: inst: ptx: gcn: line: mark:), a class or qualifier of \
         `inst:`, or a point of kernels, which are `entry` and `exit`. Opcodes are selected by their text: ptx:\"ld.global.*\".",
    ),
    on(
        "bad-placement",
        "inst:branch:after { }",
        "Placements are `before` (as if it stood there), `after` and `reach`. Nothing runs directly after an instruction that \
         jumps or ends; `kernel:` points have no placement.",
    ),
    on(
        "operand-absent",
        "kernel:entry { let a = addr; }",
        "Operands such as `addr` or `macs` belong to an instruction, and the tracepoint has none, or one of a class without that \
         operand, or stands where it is not there: `out` and `done` behind the instruction, `old` before it. Ask first where only some of its instructions have it: `if has(macs) { … }`, or `/has(macs)/` for the whole \
         probe. What a condition on the site keeps from being computed need not be there.",
    ),
    on(
        "site-type",
        "inst:store { let a = in1; }",
        "`out`, `in1` … and `old` have the type of the instruction, which is known when a kernel is woven: f32 at one site, u64 \
         at another. So say what you want of them: `in1 as u64` converts, `in1 as bits u32` takes the bits; two of them \
         may be compared, and `clock(out)` waits for one.",
    ),
    // Maps.
    on(
        "map-shape",
        "map m: array<warp> { a: u64, b: u64 } warp kernel:exit { m.save(clock()); }",
        "A map, or a save into it, has the wrong shape: kinds are array<thread|warp|block> and stream<warp>; a record has \
         fields; a save gives each of them once, in order or by name; `lanes<T>` fields stand in streams. An aggregation has \
         one function and one list of keys wherever it is named.",
    ),
    on(
        "map-bound",
        "map m: array<warp>[0] { a: u64 }",
        "A map is smaller or larger than it can be: an array has room for 1 to 65536 records a unit; an event of a stream \
         takes at most 1008 bytes, of which a `lanes<T>` field may need 256 (128 if T has 32 bits or less); a stream is \
         64KiB to 16GiB long.",
    ),
    on(
        "map-read",
        "map m: array<thread> { a: u64 } kernel:exit { let x = m.a; }",
        "Devices write maps and never read them: there is no order to reason about, and no probe can change what another \
         does. Keep what is needed again in a `state`.",
    ),
    // Size.
    on(
        "budget",
        // Not shown whole: the test makes the text.
        "state a0: u64; state a1: u64; …",
        "A program, a probe or a record is larger than any kernel could bear: a state is a register of every thread for as \
         long as the kernel runs, and a probe's code stands at each of its sites.",
    ),
];
