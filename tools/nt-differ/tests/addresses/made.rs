//! Kernels by chance whose registers hold what lanes relate by: constants, lanes and their bits, sums and fields of them,
//! carried through branches, loops and guards of all kinds.
//!
//! An access goes to a byte that a register numbers, in those lanes whose number is small enough. So every address is
//! in memory, whatever is computed, and what is proved of it does not depend on that.

use nt_differ::random::Random;
use std::fmt::Write;

/// Bytes of memory.
pub(crate) const BYTES: u64 = 4096;

/// A kernel by chance.
pub(crate) fn kernel(random: &mut Random) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64
.visible .entry k(.param .u64 k_memory, .param .u32 k_n)
{
	.reg .pred %p<4>, %q<4>, %in;
	.reg .b32 %r<8>, %c<4>, %m<4>;
	.reg .b64 %memory, %at;
	.shared .align 4 .b8 tile[256];
	ld.param.u64 %memory, [k_memory];
	ld.param.u32 %r0, [k_n];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %laneid;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %tid.y;
	mov.u32 %r5, 3;
	mov.u32 %r6, 64;
	mad.lo.u32 %r7, %r3, 32, %r2;
	mov.u32 %m3, %ntid.x;
	setp.lt.u32 %p0, %r2, 13;
	setp.gt.u32 %p1, %r0, 5;
	and.b32 %m0, %r2, 4;
	setp.eq.u32 %p2, %m0, 0;
	setp.ge.u32 %p3, %r1, 32;
",
    );
    let mut maker = Maker { random, text: &mut text, labels: 0, ways_out: Vec::new() };
    let length = 4 + maker.random.below(8);
    maker.block(length, 0, true);
    (0..8).for_each(|register| maker.access(register));
    text.push_str("\tret;\n}\n");
    text
}

struct Maker<'m> {
    random: &'m mut Random,
    text: &'m mut String,
    labels: u32,
    /// Of the loops around: where they end, and where they go on.
    ways_out: Vec<(u32, u32)>,
}

impl Maker<'_> {
    fn line(&mut self, line: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "\t{line}");
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// Some statements. `is_whole`: all lanes that have not ended come by together.
    fn block(&mut self, length: u64, depth: usize, is_whole: bool) {
        for _ in 0..length {
            self.statement(depth, is_whole);
        }
    }

    fn statement(&mut self, depth: usize, is_whole: bool) {
        let length = 1 + self.random.below(4);
        match self.random.below(22) {
            0..=2 if depth < 4 => {
                let (other, join) = (self.label(), self.label());
                let guard = self.guard();
                self.line(&format!("{guard} bra A{other};"));
                self.block(length, depth + 1, false);
                let has_other = self.random.once_in(2);
                if has_other {
                    self.line(&format!("bra.uni A{join};"));
                }
                self.line(&format!("A{other}:"));
                if has_other {
                    self.block(length, depth + 1, false);
                    self.line(&format!("A{join}:"));
                }
            }
            3..=5 if depth < 3 => {
                let (head, on, out) = (self.label(), self.label(), self.label());
                let rounds = self.register();
                self.line(&format!("and.b32 %c{depth}, {rounds}, 7;"));
                self.line(&format!("A{head}:"));
                self.ways_out.push((out, on));
                self.block(length, depth + 1, false);
                self.ways_out.pop();
                self.line(&format!("A{on}:"));
                // With a barrier in every round, where all lanes make as many.
                if is_whole && rounds == "%r0" {
                    self.line("bar.sync 0;");
                }
                self.line(&format!("sub.s32 %c{depth}, %c{depth}, 1;"));
                self.line(&format!("setp.ge.s32 %q{depth}, %c{depth}, 0;"));
                self.line(&format!("@%q{depth} bra A{head};"));
                self.line(&format!("A{out}:"));
            }
            6 => {
                if let Some(&(out, on)) = self.ways_out.last() {
                    let guard = self.guard();
                    let way = if self.random.once_in(2) { out } else { on };
                    self.line(&format!("{guard} bra A{way};"));
                }
            }
            7 if self.random.once_in(4) => {
                let guard = self.guard();
                self.line(&format!("{guard} ret;"));
            }
            8 if is_whole => self.line("bar.sync 0;"),
            9..=10 => self.compare(),
            11 => self.memory(),
            12..=14 => {
                let register = self.random.below(8);
                self.access(register);
            }
            _ => self.arithmetic(),
        }
    }

    fn register(&mut self) -> String {
        format!("%r{}", self.random.below(8))
    }

    fn guard(&mut self) -> String {
        let not = self.random.of(&["", "!"]);
        format!("@{not}%p{}", self.random.below(4))
    }

    fn maybe_guard(&mut self) -> String {
        if self.random.once_in(6) { self.guard() + " " } else { String::new() }
    }

    fn arithmetic(&mut self) {
        let (guard, to, a, b) = (self.maybe_guard(), self.register(), self.register(), self.register());
        let small = self.random.of(&["1", "2", "3", "4", "8", "32", "64", "96"]);
        let mask = self.random.of(&["1", "3", "7", "12", "24", "28", "31", "992", "1023", "-32"]);
        let line = match self.random.below(16) {
            0 => format!("mov.u32 {to}, {small};"),
            1 => format!("mov.u32 {to}, {a};"),
            2 => {
                let special = self.random.of(&["%tid.x", "%laneid", "%ctaid.x", "%ntid.x", "%tid.y"]);
                format!("mov.u32 {to}, {special};")
            }
            3 => format!("add.u32 {to}, {a}, {small};"),
            4 => format!("add.u32 {to}, {a}, {b};"),
            5 => format!("sub.u32 {to}, {a}, {b};"),
            6 => format!("shl.b32 {to}, {a}, {};", self.random.below(4)),
            7 => format!("shr.u32 {to}, {a}, {};", self.random.of(&[1, 3, 5, 5, 5])),
            8 => format!("and.b32 {to}, {a}, {mask};"),
            9 => format!("{} {to}, {a}, {mask};", self.random.of(&["xor.b32", "or.b32"])),
            10 => format!("mad.lo.u32 {to}, {a}, {small}, {b};"),
            11 => format!("selp.b32 {to}, {a}, {b}, %p{};", self.random.below(4)),
            12 => format!("bfe.u32 {to}, {a}, {}, {};", self.random.below(5), 1 + self.random.below(5)),
            // As loops do.
            13..=14 => format!("add.u32 {to}, {to}, {small};"),
            _ => format!(
                "{} {to}, {a}, {};",
                self.random.of(&["div.u32", "rem.u32"]),
                self.random.of(&["8", "32", "%m3"])
            ),
        };
        self.line(&format!("{guard}{line}"));
    }

    fn compare(&mut self) {
        let (to, a, b) = (self.random.below(4), self.register(), self.register());
        let how =
            self.random.of(&["eq.u32", "ne.s32", "lt.u32", "lt.s32", "ge.u32", "gt.s32", "gt.u32", "le.u32"]);
        match self.random.below(6) {
            0 => self.line(&format!("setp.{how} %p{to}, {a}, {b};")),
            1 => {
                let bit = self.random.of(&["1", "4", "16", "32"]);
                self.line(&format!("and.b32 %m0, {a}, {bit};"));
                let how = self.random.of(&["eq", "ne"]);
                self.line(&format!("setp.{how}.u32 %p{to}, %m0, 0;"));
            }
            2 => {
                let (how, a, b) =
                    (self.random.of(&["and", "or", "xor"]), self.random.below(4), self.random.below(4));
                self.line(&format!("{how}.pred %p{to}, %p{a}, %p{b};"));
            }
            _ => {
                let limit = self.random.of(&["0", "5", "31", "32", "64"]);
                self.line(&format!("setp.{how} %p{to}, {a}, {limit};"));
            }
        }
    }

    /// Words that all lanes read, and some change.
    fn memory(&mut self) {
        let (guard, a, word) = (self.maybe_guard(), self.register(), 4 * self.random.below(4));
        let line = match self.random.below(6) {
            0 => format!("st.global.u32 [%memory+{word}], {a};"),
            1 => format!("st.shared.u32 [tile+{word}], {a};"),
            2 => format!("ld.shared.u32 {a}, [tile+{word}];"),
            3 => format!("atom.global.add.u32 {a}, [%memory+{word}], 1;"),
            _ => format!("ld.global.u32 {a}, [%memory+{word}];"),
        };
        self.line(&format!("{guard}{line}"));
    }

    fn access(&mut self, register: u64) {
        self.line(&format!("setp.lt.u32 %in, %r{register}, {BYTES};"));
        self.line(&format!("cvt.u64.u32 %at, %r{register};"));
        self.line("add.u64 %at, %memory, %at;");
        self.line("@%in ld.global.u8 %m1, [%at];");
    }
}
