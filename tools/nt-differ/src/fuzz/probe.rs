//! Probe programs made by chance, of what compiles, with what each should come to.
//!
//! ```text
//! inst:load.global { @t0[block, op] = count(); }                   lanes that executed such a load, by block and opcode
//! state s1: u64; inst:store { s1 += bytes; } kernel:exit { @t1[warp] = sum(s1); }        bytes that they stored
//! inst:access /lane < 7/ { @t2 = count(); }  inst:access /!(lane < 7)/ { @t2x = count(); }        together, all lanes
//! ```
//!
//! A program is a list of such *measures*, each with names of its own. What each should come to is in `expected.rs`.

use crate::random::Random;
use nt_vgpu::Space;
use std::fmt::Write;

/// Something that a program measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Its number, by which its names are its own.
    pub(super) number: usize,
    pub(super) point: Point,
    /// `:reach`, for all lanes that come to the instruction, whatever its guard.
    pub(super) reach: bool,
    /// Once a group of lanes, or in every lane?
    pub(super) warp: bool,
    pub(super) keys: Vec<&'static str>,
    pub(super) form: Form,
}

/// Where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    Entry,
    Exit,
    /// Memory of some kinds, in one space or any.
    Access(&'static [&'static str], Option<Space>),
    /// By its spelling.
    Ptx(&'static str),
    /// `inst:branch`
    Branch,
    /// `inst:*`
    Any,
}

/// How.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// `@t = count();`
    Count,
    /// `@t = sum(3);`
    Sum(u64),
    /// `@t = sum(bytes);`
    Bytes,
    /// `s += bytes;`, or a constant, and `@t = sum(s);` at the exit.
    State(State),
    /// `s++;`, and a record of it a thread at the exit.
    Record,
    /// Under a predicate, and under its contrary.
    Both(&'static str),
    /// `if c { a += 1; } else { b += 1; }`, and sums of both at the exit.
    Arms(&'static str),
    /// `if c { @t = count(); } else { @tx = count(); }`
    Choice(&'static str),
    /// What is made of addresses added up in cells of blocks, of threads, and in states.
    Addresses(&'static str),
    /// Masks of active lanes added up by one of them, and each lane's bit by itself.
    Masks(&'static str),
}

/// A register that is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    /// At the point: bytes, or `amount`?
    pub(super) bytes: bool,
    pub(super) amount: u64,
    /// At every store.
    pub(super) also: u64,
    /// Before all.
    pub(super) init: u64,
    /// Of 32 bits?
    pub(super) narrow: bool,
}

const LOAD: &[&str] = &["load"];
const STORE: &[&str] = &["store"];
const ATOMIC: &[&str] = &["atomic", "reduce"];
const ACCESS: &[&str] = &["load", "store", "atomic", "reduce"];

/// Predicates that may differ between lanes.
const VARYING: [&str; 6] = [
    "lane < 7",
    "tid.x % 2 == 0",
    "thread & 3 == 1",
    "lane % 5 == 2 || cu == 1",
    "tid.y > 0",
    "min(lane, 3) == lane",
];
/// Predicates that are the same for a group.
const UNIFORM: [&str; 6] =
    ["cu == 0", "ctaid.x % 2 == 0", "block & 1 == 0", "wid == 0", "nctaid.y > 1", "warp & 2 == 0 && true"];
/// Of accesses.
const OF_ACCESS: [&str; 4] = ["width == 32", "bytes > 4", "line % 2 == 0", "pred && elems * width > 32"];
/// Of accesses with an address, which those to parameters lack.
const OF_ADDRESS: [&str; 3] = ["addr & 16 == 0", "addr as u32 & 4 == 4", "bytes == 4 && addr & 8 == 0"];

/// What is made of addresses: some bits, and all 64.
const OF_ADDRESSES: [&str; 3] =
    ["addr & 0xfff", "(addr as u64) * 11400714819323198485", "((addr as u64) << 31) + 5"];

/// A program by chance.
pub fn program(random: &mut Random) -> Vec<Measure> {
    (0..1 + random.below(4) as usize).map(|number| measure(number, random)).collect()
}

fn measure(number: usize, random: &mut Random) -> Measure {
    let spaces =
        [None, None, Some(Space::Global), Some(Space::Global), Some(Space::Shared), Some(Space::Local)];
    let point = match random.below(10) {
        0 => Point::Entry,
        1 => Point::Exit,
        2..=6 => Point::Access(random.of(&[LOAD, STORE, ATOMIC, ACCESS]), random.of(&spaces)),
        7..=8 => Point::Ptx(random.of(&[
            "*.u32",
            "mad*",
            "ld.*",
            "set?.*",
            "st.*.v?.*",
            "and.b32",
            "bar.*",
            "xor.*",
        ])),
        _ => random.of(&[Point::Any, Point::Branch]),
    };
    let is_access = matches!(point, Point::Access(..));
    let has_address = matches!(point, Point::Access(_, Some(_)));
    // Sums of warps that leave are mostly refused yet.
    let mut warp = random.once_in(if point == Point::Exit { 8 } else { 2 });
    let form = match random.below(10) {
        0..=2 => Form::Count,
        3 => Form::Sum(random.of(&[0, 1, 3, 1 << 33])),
        4 if is_access => Form::Bytes,
        5..=6 => Form::State(state(is_access, random)),
        7 => Form::Record,
        8 if has_address && random.once_in(2) => Form::Addresses(random.of(&OF_ADDRESSES)),
        8 if random.once_in(2) => Form::Masks(random.of(&VARYING)),
        8 => Form::Arms(random.of(&VARYING)),
        9 if random.once_in(3) => Form::Choice(if warp { random.of(&UNIFORM) } else { random.of(&VARYING) }),
        _ if warp => Form::Both(random.of(&UNIFORM)),
        _ if has_address && random.once_in(2) => Form::Both(random.of(&OF_ADDRESS)),
        _ if is_access && random.once_in(2) => Form::Both(random.of(&OF_ACCESS)),
        _ => Form::Both(if random.once_in(2) { random.of(&VARYING) } else { random.of(&UNIFORM) }),
    };
    // What varies between lanes is no warp's, and what states hold is each lane's own.
    if !matches!(form, Form::Count | Form::Sum(_) | Form::Both(_) | Form::Choice(_)) {
        warp = false;
    }
    let by_site = is_access || matches!(point, Point::Ptx(_) | Point::Any | Point::Branch);
    let has_keys =
        !matches!(form, Form::State(_) | Form::Record | Form::Arms(_) | Form::Addresses(_) | Form::Masks(_));
    let by_site = by_site && has_keys;
    let mut keys = Vec::new();
    if random.once_in(2) {
        keys.extend(match warp {
            true => [random.of(&["block", "warp", "cu"])],
            false => [random.of(&["block", "warp", "thread", "cu"])],
        });
    }
    for key in ["op", "line", "kernel"] {
        if by_site && random.once_in(3) {
            keys.push(key);
        }
    }
    let of_bytes = matches!(form, Form::Bytes | Form::State(State { bytes: true, .. }));
    // Whose address leads where, and how many bytes are moved, is known of lanes whose guard holds.
    let reach =
        !of_bytes && !has_address && !matches!(point, Point::Entry | Point::Exit) && random.once_in(8);
    Measure { number, point, reach, warp, keys, form }
}

fn state(is_access: bool, random: &mut Random) -> State {
    let narrow = random.once_in(2);
    // Not more than 2^32 in a thread where 32 bits are all there are.
    let large: &[u64] = if narrow { &[1, 4, 12] } else { &[1, 4, 12, 3 << 25, 0xffff_fff1, 1 << 41] };
    State {
        bytes: is_access && random.once_in(2),
        amount: random.of(large),
        also: random.of(&[0, 0, 8]),
        init: random.of(&[0, 0, 2, 40]),
        narrow,
    }
}

/// The text of a program.
pub fn text(measures: &[Measure]) -> String {
    let mut text = String::new();
    for measure in measures {
        measure.write(&mut text);
    }
    text
}

impl Measure {
    fn write(&self, text: &mut String) {
        let n = self.number;
        let point = match &self.point {
            Point::Entry => "kernel:entry".to_owned(),
            Point::Exit => "kernel:exit".to_owned(),
            Point::Access(classes, space) => {
                let space = space.map_or(String::new(), |space| format!(".{}", space.word()));
                format!("inst:{}{space}", classes.join("|"))
            }
            Point::Ptx(glob) => format!("ptx:\"{glob}\""),
            Point::Branch => "inst:branch".to_owned(),
            Point::Any => "inst:*".to_owned(),
        };
        let point = if self.reach { point + ":reach" } else { point };
        let unit = if self.warp { "warp " } else { "" };
        let keys = if self.keys.is_empty() { String::new() } else { format!("[{}]", self.keys.join(", ")) };
        // Writing to a String cannot fail.
        let _ = match &self.form {
            Form::Count => writeln!(text, "{unit}{point} {{ @t{n}{keys} = count(); }}"),
            Form::Sum(amount) => writeln!(text, "{unit}{point} {{ @t{n}{keys} = sum({amount}); }}"),
            Form::Bytes => writeln!(text, "{unit}{point} {{ @t{n}{keys} = sum(bytes); }}"),
            Form::State(State { bytes, amount, also, init, narrow }) => {
                let ty = if *narrow { "u32" } else { "u64" };
                let amount = if *bytes { "bytes".to_owned() } else { amount.to_string() };
                let _ = writeln!(text, "state s{n}: {ty} = {init};\n{point} {{ s{n} += {amount}; }}");
                if *also != 0 {
                    let _ = writeln!(text, "inst:store {{ s{n} += {also}; }}");
                }
                writeln!(text, "kernel:exit {{ @t{n}{keys} = sum(s{n}); }}")
            }
            Form::Record => writeln!(
                text,
                "map m{n}: array<thread> {{ n: u32, lane: u32 }}\nstate s{n}: u32;\n{point} {{ s{n}++; }}\n\
                 kernel:exit {{ m{n}.save(s{n}, lane); }}"
            ),
            Form::Both(predicate) => writeln!(
                text,
                "{unit}{point} /{predicate}/ {{ @t{n}{keys} = count(); }}\n\
                 {unit}{point} /!({predicate})/ {{ @t{n}x{keys} = count(); }}"
            ),
            Form::Arms(condition) => writeln!(
                text,
                "state s{n}: u32;\nstate s{n}x: u32;\n\
                 {point} {{ if {condition} {{ s{n} += 1; }} else {{ s{n}x += 1; }} }}\n\
                 kernel:exit {{ @t{n}{keys} = sum(s{n}); @t{n}x{keys} = sum(s{n}x); }}"
            ),
            Form::Choice(condition) => writeln!(
                text,
                "{unit}{point} {{ if {condition} {{ @t{n}{keys} = count(); }} else {{ @t{n}x{keys} = count(); }} }}"
            ),
            Form::Addresses(made) => writeln!(
                text,
                "state s{n}: u64;\n{point} {{ @t{n}a[block] = sum({made}); @t{n}b[thread] = sum({made}); \
                 s{n} += {made}; }}\nkernel:exit {{ @t{n}c[block] = sum(s{n}); }}"
            ),
            Form::Masks(predicate) => writeln!(
                text,
                "warp {point} /{predicate}/ {{ @t{n}a[block] = sum(active()); }}\n\
                 {point} /{predicate}/ {{ @t{n}b[block] = sum((1 as u64) << lane); }}"
            ),
        };
    }
}
