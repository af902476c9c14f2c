//! Kernels made by chance: integers, predicates, branches that part lanes, loops whose length differs by lane, guarded
//! exits, memory of all spaces, barriers.
//!
//! ```text
//! add.u32 %r3, %r1, 17;
//! @%p2 bra E1;  …  bra J1;  E1:  …  J1:
//! and.b32 %c0, %r5, 3;  L2:  …  sub.s32 %c0, %c0, 1; setp.ge.s32 %q0, %c0, 0; @%q0 bra L2;
//! @!%p1 ret;
//! ```
//!
//! They end, access what is theirs in any shape of launch, and leave a trace of all that they did in their output.
//! A kernel without `races` leaves the same whatever the schedule.

use crate::random::Random;
use std::fmt::Write;

/// A kernel as a tree of statements, so that it can be cut smaller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// `sm_80`
    pub target: &'static str,
    /// May what it leaves depend on the schedule?
    pub races: bool,
    /// What it does between its beginning and its end.
    pub body: Vec<Statement>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// Some instructions.
    Plain(String),
    /// Two arms.
    If {
        /// `@%p1`, for the lanes that go to the other arm.
        guard: String,
        /// The arm of those that do not jump.
        then: Vec<Statement>,
        /// The other.
        other: Vec<Statement>,
    },
    /// A loop of 1 to 4 rounds, as a register says in each lane.
    Loop {
        /// How deep it is nested, from 0 on.
        level: usize,
        /// `%r5`
        rounds: String,
        /// Its body. `break` in it leaves the loop.
        body: Vec<Statement>,
    },
    /// A guarded jump out of the innermost loop.
    Break(String),
}

/// Words of output that each thread has for itself.
pub const WORDS: u64 = 8;
/// Words of input.
pub const INPUT: usize = 256;
/// Loops in loops.
const DEEPEST: usize = 2;

impl Kernel {
    /// A kernel by chance.
    pub fn new(random: &mut Random) -> Kernel {
        let mut maker = Maker { races: random.once_in(2), random };
        let target = maker.random.of(&["sm_70", "sm_80", "sm_80", "sm_90"]);
        let length = 3 + maker.random.below(8);
        Kernel { target, races: maker.races, body: maker.block(length, 0, true) }
    }

    /// Its PTX.
    pub fn text(&self) -> String {
        let mut text = format!(
            "\
.version 8.0
.target {}
.address_size 64
.global .align 8 .b8 shared_by_all[64];
.const .align 4 .u32 table[4] = {{7, 5, 3, 1}};
.visible .entry k(
	.param .u64 k_out,
	.param .u64 k_in,
	.param .u32 k_n
)
{{
	.reg .pred %p<4>, %q<4>;
	.reg .b16 %h<2>;
	.reg .b32 %r<8>, %c<4>, %m<6>, %i, %s, %l;
	.reg .b64 %a<6>, %out, %in, %all, %where;
	.shared .align 16 .b8 here[16384];
	.local .align 16 .b8 own[32];
	ld.param.u64 %out, [k_out];
	ld.param.u64 %in, [k_in];
	ld.param.u32 %r2, [k_n];
	cvta.to.global.u64 %out, %out;
	cvta.to.global.u64 %in, %in;
	mov.u64 %all, shared_by_all;
	mov.u32 %m0, %ntid.x;
	mov.u32 %m1, %ntid.y;
	mov.u32 %i, %tid.z;
	mov.u32 %m2, %tid.y;
	mad.lo.u32 %i, %i, %m1, %m2;
	mov.u32 %m2, %tid.x;
	mad.lo.u32 %i, %i, %m0, %m2;
	mov.u32 %m2, %ntid.z;
	mul.lo.u32 %m0, %m0, %m1;
	mul.lo.u32 %m0, %m0, %m2;
	mov.u32 %m1, %ctaid.z;
	mov.u32 %m2, %nctaid.y;
	mov.u32 %m3, %ctaid.y;
	mad.lo.u32 %m1, %m1, %m2, %m3;
	mov.u32 %m2, %nctaid.x;
	mov.u32 %m3, %ctaid.x;
	mad.lo.u32 %m1, %m1, %m2, %m3;
	mad.lo.u32 %r1, %m1, %m0, %i;
	mul.wide.u32 %a0, %r1, {};
	add.s64 %out, %out, %a0;
	mov.u32 %s, here;
	shl.b32 %m0, %i, 4;
	add.u32 %s, %s, %m0;
	mov.u32 %l, own;
	mov.u32 %r0, %i;
	xor.b32 %r3, %r1, 21;
	mul.lo.u32 %r4, %r1, 40503;
	shr.u32 %r5, %r4, 3;
	mov.u32 %r6, %laneid;
	mov.u32 %r7, 1;
	setp.lt.u32 %p0, %r6, 13;
	setp.eq.u32 %p1, %r5, %r6;
	setp.ne.s32 %p2, %r7, 1;
	setp.ge.s32 %p3, %r3, 100;
	st.shared.v4.u32 [%s], {{%r0, %r1, %r3, %r4}};
	st.local.v4.u32 [%l], {{%r0, %r1, %r3, %r4}};
	st.local.v4.u32 [%l+16], {{%r5, %r6, %r7, %r2}};
",
            self.target,
            WORDS * 4
        );
        let mut labels = 0;
        write(&self.body, "", &mut labels, &mut text);
        for word in 0..4 {
            // Whatever was computed is seen.
            let _ = writeln!(text, "\txor.b32 %r{word}, %r{word}, %r{};", word + 4);
        }
        text.push_str("\tst.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};\n\tret;\n}\n");
        text
    }

    /// This kernel with one statement less, in every way.
    pub fn smaller(&self) -> Vec<Kernel> {
        cut(&self.body).into_iter().map(|body| Kernel { body, ..*self }).collect()
    }
}

fn write(statements: &[Statement], out_of_loop: &str, labels: &mut u32, text: &mut String) {
    for statement in statements {
        *labels += 1;
        let number = *labels;
        // Writing to a String cannot fail.
        let _ = match statement {
            Statement::Plain(lines) => writeln!(text, "\t{}", lines.replace("; ", ";\n\t")),
            Statement::If { guard, then, other } => {
                let _ = writeln!(text, "\t{guard} bra $E{number};");
                write(then, out_of_loop, labels, text);
                let _ = writeln!(text, "\tbra.uni $J{number};\n$E{number}:");
                write(other, out_of_loop, labels, text);
                writeln!(text, "$J{number}:")
            }
            Statement::Loop { level, rounds, body } => {
                let _ = writeln!(text, "\tand.b32 %c{level}, {rounds}, 3;\n$L{number}:");
                write(body, &format!("$O{number}"), labels, text);
                let _ = writeln!(
                    text,
                    "\tsub.s32 %c{level}, %c{level}, 1;\n\tsetp.ge.s32 %q{level}, %c{level}, 0;"
                );
                writeln!(text, "\t@%q{level} bra $L{number};\n$O{number}:")
            }
            Statement::Break(guard) if !out_of_loop.is_empty() => {
                writeln!(text, "\t{guard} bra {out_of_loop};")
            }
            Statement::Break(_) => Ok(()),
        };
    }
}

fn cut(body: &[Statement]) -> Vec<Vec<Statement>> {
    let mut all = Vec::new();
    for at in 0..body.len() {
        let with = |instead: Vec<Statement>| {
            let mut less = body.to_vec();
            less.splice(at..=at, instead);
            less
        };
        all.push(with(Vec::new()));
        match body.get(at) {
            Some(Statement::If { guard, then, other }) => {
                all.push(with(then.clone()));
                all.push(with(other.clone()));
                for then in cut(then) {
                    let (guard, other) = (guard.clone(), other.clone());
                    all.push(with(vec![Statement::If { guard, then, other }]));
                }
                for other in cut(other) {
                    let (guard, then) = (guard.clone(), then.clone());
                    all.push(with(vec![Statement::If { guard, then, other }]));
                }
            }
            Some(Statement::Loop { level, rounds, body }) => {
                for body in cut(body) {
                    all.push(with(vec![Statement::Loop { level: *level, rounds: rounds.clone(), body }]));
                }
            }
            _ => {}
        }
    }
    all
}

struct Maker<'r> {
    random: &'r mut Random,
    /// May its result depend on the schedule?
    races: bool,
}

impl Maker<'_> {
    /// Some statements. `uniform`: all lanes that have not ended come by.
    fn block(&mut self, length: u64, depth: usize, uniform: bool) -> Vec<Statement> {
        (0..length).map(|_| self.statement(depth, uniform)).collect()
    }

    fn statement(&mut self, depth: usize, uniform: bool) -> Statement {
        let length = 1 + self.random.below(4);
        match self.random.below(20) {
            0..=2 if depth < 3 => {
                let guard = self.guard();
                let then = self.block(length, depth + 1, false);
                let other =
                    if self.random.once_in(3) { Vec::new() } else { self.block(length, depth + 1, false) };
                Statement::If { guard, then, other }
            }
            3..=4 if depth < DEEPEST => {
                let rounds = self.register();
                Statement::Loop { level: depth, rounds, body: self.block(length, depth + 1, false) }
            }
            5 => Statement::Break(self.guard()),
            6 if self.random.once_in(2) => {
                let how = self.random.of(&["ret", "exit"]);
                Statement::Plain(format!("{} {how};", self.guard()))
            }
            7 if uniform => Statement::Plain(self.barrier()),
            8..=9 => Statement::Plain(self.compare()),
            10..=12 => Statement::Plain(self.access()),
            13 => Statement::Plain(self.add_for_all()),
            14 if self.races => Statement::Plain(self.lanes()),
            _ => Statement::Plain(self.arithmetic()),
        }
    }

    fn register(&mut self) -> String {
        format!("%r{}", self.random.below(8))
    }

    fn operand(&mut self) -> String {
        match self.random.below(3) {
            0 => {
                self.random.of(&["0", "1", "2", "3", "7", "31", "255", "4096", "-1", "2147483647"]).to_owned()
            }
            _ => self.register(),
        }
    }

    fn guard(&mut self) -> String {
        let not = self.random.of(&["", "!"]);
        format!("@{not}%p{}", self.random.below(4))
    }

    /// Mostly none.
    fn maybe_guard(&mut self) -> String {
        if self.random.once_in(4) { self.guard() + " " } else { String::new() }
    }

    fn arithmetic(&mut self) -> String {
        let (guard, to) = (self.maybe_guard(), self.register());
        let (a, b, c) = (self.register(), self.operand(), self.register());
        match self.random.below(6) {
            0 => format!("{guard}mad.lo.u32 {to}, {a}, {b}, {c};"),
            1 => format!("{guard}selp.b32 {to}, {a}, {b}, %p{};", self.random.below(4)),
            2 => {
                let op = self
                    .random
                    .of(&["not.b32", "popc.b32", "clz.b32", "brev.b32", "neg.s32", "abs.s32", "mov.u32"]);
                format!("{guard}{op} {to}, {a};")
            }
            3 => {
                let op = self.random.of(&["shl.b32", "shr.u32", "shr.s32"]);
                format!("{guard}{op} {to}, {a}, {};", self.random.below(33))
            }
            _ => {
                let op = self.random.of(&[
                    "add.u32",
                    "sub.s32",
                    "mul.lo.u32",
                    "mul.hi.s32",
                    "and.b32",
                    "or.b32",
                    "xor.b32",
                    "min.s32",
                    "max.u32",
                    "div.u32",
                    "rem.s32",
                ]);
                format!("{guard}{op} {to}, {a}, {b};")
            }
        }
    }

    fn compare(&mut self) -> String {
        let (to, a, b) = (self.random.below(4), self.register(), self.operand());
        match self.random.below(4) {
            0 => {
                let op = self.random.of(&["and.pred", "or.pred", "xor.pred"]);
                format!("{op} %p{to}, %p{}, %p{};", self.random.below(4), self.random.below(4))
            }
            1 => format!("and.b32 %m0, {a}, 1; setp.eq.u32 %p{to}, %m0, 0;"),
            _ => {
                let op = self.random.of(&["eq.u32", "ne.s32", "lt.s32", "lt.u32", "ge.u32", "gt.s32"]);
                format!("{}setp.{op} %p{to}, {a}, {b};", self.maybe_guard())
            }
        }
    }

    /// An access to what is the thread's own, or is only read.
    fn access(&mut self) -> String {
        let (guard, a, b) = (self.maybe_guard(), self.register(), self.register());
        let (c, d) = (self.register(), self.register());
        let word = 4 * self.random.below(4);
        match self.random.below(12) {
            0..=2 => {
                let op = self.random.of(&[
                    "ld.global.u32",
                    "ld.global.nc.u32",
                    "ld.volatile.global.u32",
                    "ld.u32",
                    "ld.global.u16",
                    "ld.global.s8",
                ]);
                format!(
                    "and.b32 %m0, {a}, 255; mul.wide.u32 %a1, %m0, 4; add.s64 %a1, %in, %a1; {guard}{op} {b}, [%a1];"
                )
            }
            3 => format!(
                "and.b32 %m0, {a}, 252; mul.wide.u32 %a1, %m0, 4; add.s64 %a1, %in, %a1; \
                 {guard}ld.global.v4.u32 {{{b}, {c}, %m1, %m2}}, [%a1]; add.u32 {d}, %m1, %m2;"
            ),
            4 => format!("{guard}st.global.u32 [%out+{}], {a};", 16 + word),
            5 => format!("{guard}st.global.v2.u32 [%out+{}], {{{a}, {b}}};", self.random.of(&[16, 24])),
            6 => format!("{guard}st.shared.u32 [%s+{word}], {a};"),
            7 => {
                let op = self.random.of(&["ld.shared.u32", "ld.shared.u16", "ld.shared.s8"]);
                format!("{guard}{op} {a}, [%s+{word}];")
            }
            8 => format!("{guard}st.local.u32 [%l+{word}], {a}; ld.local.u32 {b}, [%l+{}];", 16 + word),
            9 => format!(
                "and.b32 %m0, {a}, 3; mul.wide.u32 %a1, %m0, 4; mov.u64 %a2, table; add.s64 %a1, %a2, %a1; {guard}ld.const.u32 {b}, [%a1];"
            ),
            // Where a generic address goes is seen when it is used, in each lane.
            10 => format!(
                "cvt.u64.u32 %a1, %s; cvta.shared.u64 %a1, %a1; cvta.global.u64 %a2, %out; \
                 selp.b64 %where, %a1, %a2, %p{}; {guard}st.u32 [%where+{}], {a}; ld.u32 {b}, [%where+{}];",
                self.random.below(4),
                self.random.of(&[0, 4]),
                self.random.of(&[0, 4]),
            ),
            _ => format!(
                "cvt.u64.u32 %a1, %l; cvta.local.u64 %a1, %a1; cvt.u64.u32 %a2, %s; cvta.shared.u64 %a2, %a2; \
                 selp.b64 %where, %a1, %a2, %p{}; {guard}ld.v2.u32 {{{a}, {b}}}, [%where+8];",
                self.random.below(4),
            ),
        }
    }

    /// Sums that all threads share, whose order does not matter if nobody looks.
    fn add_for_all(&mut self) -> String {
        let (guard, a, to) = (self.maybe_guard(), self.register(), self.register());
        let word = 4 * self.random.below(8);
        match self.random.below(if self.races { 5 } else { 2 }) {
            0 => {
                let op = self.random.of(&["add.u32", "max.u32", "xor.b32", "or.b32"]);
                // One function a word, or the order would matter.
                let word = match op {
                    "add.u32" => 0,
                    "max.u32" => 4,
                    "xor.b32" => 8,
                    _ => 12,
                };
                format!("{guard}red.global.{op} [%all+{word}], {a};")
            }
            1 => format!("{guard}red.global.add.u64 [%all+56], 3;"),
            2 => format!("{guard}atom.global.add.u32 {to}, [%all+{word}], {a};"),
            3 => format!("{guard}atom.shared.exch.b32 {to}, [here+{word}], {a};"),
            _ => format!("{guard}atom.cas.b32 {to}, [%all+{word}], {a}, 5;"),
        }
    }

    fn lanes(&mut self) -> String {
        let (a, b, c) = (self.register(), self.register(), self.operand());
        match self.random.below(3) {
            0 => format!("activemask.b32 {a};"),
            1 => format!("activemask.b32 %m0; shfl.sync.idx.b32 {a}, {b}, {c}, 31, %m0;"),
            _ => format!("activemask.b32 %m0; vote.sync.ballot.b32 {a}, %p{}, %m0;", self.random.below(4)),
        }
    }

    fn barrier(&mut self) -> String {
        let (a, b) = (self.register(), self.register());
        if !self.races {
            return "bar.sync 0;".to_owned();
        }
        // A word of any thread, written before and read after.
        format!(
            "st.shared.u32 [%s], {a}; bar.sync 0; and.b32 %m0, {b}, 1023; shl.b32 %m0, %m0, 4; mov.u32 %m1, here; \
             add.u32 %m1, %m1, %m0; ld.shared.u32 {b}, [%m1]; bar.sync 0;"
        )
    }
}
