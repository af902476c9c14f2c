//! Assembles a kernel with probes and without, and holds one against the other.
//!
//! Three things are asked of the assembler beside machine code. What did it take before and after, which the manifest
//! states. Did it say something new (rule V18): a notice that code is serialised, a warning; probes may not bring one.
//! And can a block of the size that the kernel names still be launched.

use crate::assemble::{
    Arch, Assembled, Assembler, Failure, Options, Remark, SOURCE, Usage, Verbose, Weight, place, read,
};
use crate::cache::{Cache, Kept, Key};
use crate::prepare::Refusal;
use nt_ptx::syntax::{Function, Module};
use nt_trace::ntm::Resources;

/// A kernel's module without probes and with them, and what to assemble them with.
pub(crate) struct Both<'t> {
    pub(crate) original: &'t str,
    pub(crate) woven: &'t str,
    pub(crate) arch: Arch,
    pub(crate) options: &'t Options,
    pub(crate) assembler: &'t Assembler,
    pub(crate) cache: &'t Cache,
}

/// What the assembler made of both.
pub(crate) struct Compared {
    /// Machine code of the woven one.
    pub(crate) cubin: Vec<u8>,
    before: Verbose,
    after: Verbose,
    /// How often the assembler ran; the cache had the rest.
    pub(crate) runs: u32,
}

impl Both<'_> {
    /// Assembles both side by side: of the original, only what it takes is wanted.
    pub(crate) fn assemble(&self) -> Result<Compared, Failure> {
        let (before, after) = std::thread::scope(|scope| {
            let before = scope.spawn(|| self.one(self.original, Kept::Words));
            let after = self.one(self.woven, Kept::All);
            // A panic there is one here: whoever guards this thread sees it.
            (before.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), after)
        });
        let ((after, ran_after), (before, ran_before)) = (after?, before?);
        Ok(Compared {
            before: read(&before.output, SOURCE),
            after: read(&after.output, SOURCE),
            cubin: after.cubin,
            runs: ran_before + ran_after,
        })
    }

    /// One of the two, from the cache or the assembler, and how often the latter ran.
    fn one(&self, text: &str, kept: Kept) -> Result<(Assembled, u32), Failure> {
        let key = Key::of(text, self.arch, self.options, self.assembler, kept);
        if let Some(hit) = self.cache.get(key) {
            return Ok((hit, 0));
        }
        let mut assembled = self.assembler.run_with(text, self.arch, self.options)?;
        if kept == Kept::Words {
            assembled.cubin = Vec::new();
        }
        self.cache.put(key, &assembled);
        Ok((assembled, 1))
    }

    /// Why nothing was assembled: a text that is refused with probes and taken without is our own fault.
    pub(crate) fn refused(&self, failure: &Failure) -> Refusal {
        let Failure::Refused(remarks) = failure else { return Refusal::input(failure.to_string()) };
        if self.one(self.original, Kept::Words).is_ok() {
            return self.bug(&format!("ptxas refuses what was woven: {}", placed(remarks, self.woven)));
        }
        Refusal::input(format!("{failure}, with probes and without"))
    }

    fn bug(&self, what: &str) -> Refusal {
        let files = vec![("original.ptx", self.original.to_owned()), ("woven.ptx", self.woven.to_owned())];
        Refusal::bug("weave", what, files)
    }

    /// Rule V18: probes bring no new notice that code is serialised, and no new warning.
    pub(crate) fn nothing_new(&self, compared: &Compared) -> Result<(), Refusal> {
        match first_new(&compared.before, &compared.after) {
            Some(remark) => {
                let code = remark.code.as_ref().map_or_else(String::new, |code| format!("({code}) "));
                Err(self.bug(&format!("new from ptxas: {code}{}", remark.text)))
            }
            None => Ok(()),
        }
    }
}

/// The first remark that the other text did not have as often. Lines and counts in the words change with what was put
/// in, so a notice is known by its code, a warning by its words without numbers.
fn first_new<'v>(before: &Verbose, after: &'v Verbose) -> Option<&'v Remark> {
    let kind = |remark: &Remark| match &remark.code {
        Some(code) => code.clone(),
        None => remark.text.chars().filter(|c| !c.is_ascii_digit()).collect(),
    };
    let mut left: Vec<String> = before.remarks.iter().map(kind).collect();
    after.remarks.iter().find(|remark| match left.iter().position(|known| *known == kind(remark)) {
        Some(known) => {
            left.swap_remove(known);
            false
        }
        None => true,
    })
}

/// The first error of the assembler, with the place in the text that it speaks of.
fn placed(remarks: &[Remark], woven: &str) -> String {
    let Some(first) = remarks.iter().find(|r| r.weight == Weight::Error) else {
        return "no reason given".to_owned();
    };
    let Some(line) = first.line else { return first.text.clone() };
    let at = place(woven, line);
    let whose = at.span.map_or_else(String::new, |span| format!(", in the code of span {span}"));
    let text = woven.lines().nth(line.saturating_sub(1) as usize).unwrap_or("").trim();
    format!("line {line} (line {} before weaving{whose}): {}: `{text}`", at.line, first.text)
}

impl Compared {
    /// Refuses a kernel that could not be launched with as many threads as it says that it will be.
    pub(crate) fn launchable(&self, module: &Module<'_>, entry: &Function) -> Result<(), Refusal> {
        let name = module.at(entry.name);
        let registers = |verbose: &Verbose| verbose.kernels.get(name).and_then(|usage| usage.registers);
        let (Some(threads), Some(now)) = (threads(module, entry), registers(&self.after)) else {
            return Ok(());
        };
        if taken(now, threads) <= REGISTERS {
            return Ok(());
        }
        let was = registers(&self.before).map_or_else(|| "?".to_owned(), |was| was.to_string());
        Err(Refusal::input(format!(
            "{now} registers with probes ({was} without) are too many for its {threads} threads"
        )))
    }

    /// What the kernel takes without probes and with them, for the manifest.
    pub(crate) fn resources(&self, kernel: &str) -> [Option<Resources>; 2] {
        [&self.before, &self.after].map(|verbose| resources(verbose.kernels.get(kernel)?))
    }
}

/// Registers of a block, on every device of compute capability 5.0 and later but the embedded 5.3 and 6.2.
const REGISTERS: u64 = 65536;

/// Registers that a block takes: warps get multiples of 256, and blocks a multiple of four warps.
fn taken(registers: u32, threads: u64) -> u64 {
    let a_warp = (u64::from(registers) * 32).next_multiple_of(256);
    threads.div_ceil(32).next_multiple_of(4).saturating_mul(a_warp)
}

/// The threads of a block, by `.reqntid` or `.maxntid`.
fn threads(module: &Module<'_>, entry: &Function) -> Option<u64> {
    let directive = entry.directives.iter().find(|d| matches!(module.at(d.name), ".reqntid" | ".maxntid"))?;
    let mut numbers =
        module.at(directive.arguments).split(',').map(|number| number.trim().parse::<u64>().ok());
    numbers.try_fold(1u64, |product, number| product.checked_mul(number?))
}

/// As a manifest has it; `None` where the assembler did not speak of registers.
fn resources(usage: &Usage) -> Option<Resources> {
    Some(Resources {
        registers: usage.registers?,
        spill_stores: usage.spill_stores.unwrap_or(0),
        spill_loads: usage.spill_loads.unwrap_or(0),
        shared: usage.shared.unwrap_or(0),
        stack: usage.stack.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_a_block() {
        // CUDA's occupancy calculator: 1024 threads fit with 64 registers and not with 65.
        assert_eq!(taken(64, 1024), 65536);
        assert!(taken(65, 1024) > REGISTERS);
        assert!(taken(255, 256) <= REGISTERS);
        assert!(taken(128, 513) > REGISTERS);
    }

    #[test]
    fn what_is_new_and_what_only_moved() {
        let check = |before: &str, after: &str, expected: Option<&str>| {
            let (before, after) = (read(before, SOURCE), read(after, SOURCE));
            assert_eq!(
                first_new(&before, &after).map(|remark| remark.text.split(' ').next().unwrap()),
                expected
            );
        };
        let notice = "ptxas info    : (C7517) warpgroup.wait is injected in around line 11 by compiler\n";
        let moved = "ptxas info    : (C7517) warpgroup.wait is injected in around line 31 by compiler\n";
        check(notice, moved, None);
        check(notice, "", None);
        check("", moved, Some("warpgroup.wait"));
        check(notice, &moved.repeat(2), Some("warpgroup.wait"));
        let warning = "ptxas warning : Stack size for entry function 'k' cannot be statically determined\n";
        check(warning, warning, None);
        check(notice, warning, Some("Stack"));
    }

    #[test]
    fn an_error_of_the_assembler_has_a_place() {
        let said = "ptxas module.ptx, line 3; error   : Unknown symbol '%x'\n";
        let woven = "a\n/*nt:4{*/\n mov %x;\n/*}nt:4*/b\n";
        assert_eq!(
            placed(&read(said, SOURCE).remarks, woven),
            "line 3 (line 2 before weaving, in the code of span 4): Unknown symbol '%x': `mov %x;`"
        );
    }
}
