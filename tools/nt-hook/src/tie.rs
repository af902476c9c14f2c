//! The ties between a twin and the variables of its original: they are the program's, and there must be one of each.
//!
//! A variable of `.global` space is pinned: the twin reaches it through a table of addresses in its own constant memory,
//! `nt_pin`, which is filled once, before the first launch. A constant cannot be reached by address; the twin has a copy,
//! which gets what the original's holds: once for all, and, if the program may write it ([`crate::symbols`]), again before
//! each launch, in the launch's stream. The program has ordered its own writes with its launches, so it has ordered them
//! with the copy; but only as far as the kernel reads them. Of a constant that two streams use in parts, one may be in
//! the middle of writing its own when the other's launch copies all of it. Therefore each stream has a twin of its own
//! ([`crate::home`]): what it copies too early there is what its own kernels do not read.
//!
//! `nt_` is the usual prefix of names that are woven in. Where a module has names that begin so itself, it is `nt1_`, and
//! so on: the first whose `pin` the twin has and the original has not.

use std::ffi::CString;
use std::sync::atomic::AtomicBool;

use nt_wire::message::{Constant, Pin};

use crate::driver::Driver;
use crate::kernel::code_text;
use crate::load::Owner;
use crate::prepare::Loaded;
use crate::twin::Twin;
use crate::{Code, Opaque, symbols};

/// A copy between constants, from the original's to the twin's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) to: u64,
    pub(crate) from: u64,
    pub(crate) bytes: u64,
    /// See [`crate::symbols`].
    written: &'static AtomicBool,
}

impl Copy {
    /// Whether it is to be made before each launch.
    #[inline]
    pub(crate) fn is_needed(&self) -> bool {
        symbols::may_be_written(self.written)
    }

    /// Both as one, if they lie side by side on both ends.
    #[inline]
    fn joined(self, next: Copy) -> Option<Copy> {
        let beside = self.from + self.bytes == next.from && self.to + self.bytes == next.to;
        beside.then_some(Copy { bytes: self.bytes + next.bytes, ..self })
    }
}

/// Makes copies in a stream; those side by side, at once.
pub(crate) fn copy(copies: impl Iterator<Item = Copy>, stream: Opaque, driver: &Driver) -> Code {
    let make = |copy: Option<Copy>| match copy {
        // SAFETY: variables of both modules, of that size.
        Some(copy) => unsafe {
            (driver.cuMemcpyDtoDAsync_v2)(copy.to, copy.from, copy.bytes as usize, stream)
        },
        None => 0,
    };
    let mut run: Option<Copy> = None;
    for copy in copies {
        match run.and_then(|run| run.joined(copy)) {
            Some(joined) => run = Some(joined),
            None => {
                let code = make(run.replace(copy));
                if code != 0 {
                    return code;
                }
            }
        }
    }
    make(run)
}

/// CUDA_ERROR_NOT_FOUND
const NOT_FOUND: Code = 500;

/// A variable's address and size in the current context.
fn find(driver: &Driver, owner: Owner, name: &str) -> Result<(u64, usize), Code> {
    let (mut address, mut bytes) = (0, 0);
    let name = CString::new(name).map_err(|_| NOT_FOUND)?;
    // SAFETY: each writes an address and a size; the name ends in a NUL.
    let code = unsafe {
        match owner {
            Owner::Module(module) => (driver.cuModuleGetGlobal_v2)(
                &raw mut address,
                &raw mut bytes,
                module as Opaque,
                name.as_ptr(),
            ),
            Owner::Library(library) => {
                let get = driver.library_get_global.ok_or(NOT_FOUND)?;
                get(&raw mut address, &raw mut bytes, library as Opaque, name.as_ptr())
            }
        }
    };
    if code == 0 { Ok((address, bytes)) } else { Err(code) }
}

fn missing(whose: &str, name: &str, code: Code) -> String {
    match code {
        NOT_FOUND => format!("its {whose} has no variable `{name}`"),
        code => format!("`{name}` of its {whose} could not be found: {}", code_text(code)),
    }
}

/// Fills a twin's pins and its constants in the current context, and finds what may have to be copied before each launch.
pub(crate) fn tie(
    twin: &Twin,
    original: Owner,
    loaded: &Loaded,
    driver: &Driver,
) -> Result<Vec<Copy>, String> {
    let own = loaded.owner.ok_or("its twin has no module of its own")?;
    let mut copies = Vec::new();
    for Constant { symbol, size } in &twin.constants {
        let (from, there) = find(driver, original, symbol).map_err(|code| missing("module", symbol, code))?;
        let (to, here) = find(driver, own, symbol).map_err(|code| missing("twin", symbol, code))?;
        if (there as u64, here as u64) != (*size, *size) {
            return Err(format!("`{symbol}` takes {there} bytes and {here} in its twin, not {size}"));
        }
        let (Owner::Module(handle) | Owner::Library(handle)) = original;
        copies.push(Copy { to, from, bytes: *size, written: symbols::flag(handle, symbol) });
    }
    copies.retain(|copy| copy.bytes != 0);
    copies.sort_by_key(|copy| copy.from);
    let pins = if twin.pins.is_empty() { None } else { Some(pins(&twin.pins, original, own, driver)?) };
    let code = fill(pins.as_ref(), &copies, driver);
    if code == 0 {
        Ok(copies)
    } else {
        Err(format!("its variables could not be filled: {}", code_text(code)))
    }
}

/// The table of pins: its address, and what belongs there.
fn pins(pins: &[Pin], original: Owner, own: Owner, driver: &Driver) -> Result<(u64, Vec<u64>), String> {
    let mut names = std::iter::once("nt_pin".to_owned()).chain((1..10).map(|n| format!("nt{n}_pin")));
    let table = names.find_map(|name| {
        let found = find(driver, own, &name).ok()?;
        find(driver, original, &name).is_err().then_some(found)
    });
    let (address, bytes) = table.ok_or("its twin has no table of pins")?;
    let mut words = vec![0u64; bytes / 8];
    for Pin { symbol, index } in pins {
        let (address, _) = find(driver, original, symbol).map_err(|code| missing("module", symbol, code))?;
        *words
            .get_mut(*index as usize)
            .ok_or_else(|| format!("its twin's table of pins ends before `{symbol}`"))? = address;
    }
    Ok((address, words))
}

/// Fills both in a stream of ours, and waits for that.
fn fill(pins: Option<&(u64, Vec<u64>)>, copies: &[Copy], driver: &Driver) -> Code {
    const NON_BLOCKING: u32 = 1;
    let mut stream = std::ptr::null_mut();
    // SAFETY: writes one handle; then copies as many bytes as both sides have, from memory that stays until it is done.
    unsafe {
        let code = (driver.cuStreamCreate)(&raw mut stream, NON_BLOCKING);
        if code != 0 {
            return code;
        }
        let pinned = match pins {
            Some((address, words)) => {
                (driver.cuMemcpyHtoDAsync_v2)(*address, words.as_ptr().cast(), words.len() * 8, stream)
            }
            None => 0,
        };
        let copied = copy(copies.iter().copied(), stream, driver);
        let done = (driver.cuStreamSynchronize)(stream);
        (driver.cuStreamDestroy_v2)(stream);
        [pinned, copied, done].into_iter().find(|&code| code != 0).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_side_by_side_are_one() {
        static WRITTEN: AtomicBool = AtomicBool::new(true);
        let copy = |from, to, bytes| Copy { to, from, bytes, written: &WRITTEN };
        let [first, second, third] = [copy(100, 200, 8), copy(108, 208, 4), copy(112, 300, 4)];
        let joined = first.joined(second).unwrap();
        assert_eq!((joined.from, joined.to, joined.bytes), (100, 200, 12));
        assert!(joined.joined(third).is_none() && second.joined(first).is_none());
    }
}
