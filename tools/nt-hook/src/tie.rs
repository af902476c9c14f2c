//! The ties between a twin and the variables of its original: they are the program's, and there must be one of each.
//!
//! A variable of `.global` space is pinned: the twin reaches it through a table of addresses in its own constant memory,
//! `nt_pin`, which is filled once, before the first launch. A constant cannot be reached by address; the twin has a copy,
//! which gets what the original's holds before each launch, in the launch's stream: the program has ordered its own
//! writes with its launches, so it has ordered them with the copy.
//!
//! `nt_` is the usual prefix of names that are woven in. Where a module has names that begin so itself, it is `nt1_`, and
//! so on: the first whose `pin` the twin has and the original has not.

use std::ffi::CString;

use nt_wire::message::{Constant, Pin};

use crate::driver::Driver;
use crate::kernel::code_text;
use crate::load::Owner;
use crate::prepare::Loaded;
use crate::twin::Twin;
use crate::{Code, Opaque};

/// A copy between constants, from the original's to the twin's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Copy {
    pub(crate) to: u64,
    pub(crate) from: u64,
    pub(crate) bytes: u64,
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

/// Fills a twin's pins in the current context, and finds what is to be copied before each launch.
pub(crate) fn tie(
    twin: &Twin,
    original: Owner,
    loaded: &Loaded,
    driver: &Driver,
) -> Result<Vec<Copy>, String> {
    let own = loaded.owner.ok_or("its twin has no module of its own")?;
    if !twin.pins.is_empty() {
        fill_pins(&twin.pins, original, own, driver)?;
    }
    let mut copies = Vec::new();
    for Constant { symbol, size } in &twin.constants {
        let (from, there) = find(driver, original, symbol).map_err(|code| missing("module", symbol, code))?;
        let (to, here) = find(driver, own, symbol).map_err(|code| missing("twin", symbol, code))?;
        if (there as u64, here as u64) != (*size, *size) {
            return Err(format!("`{symbol}` takes {there} bytes and {here} in its twin, not {size}"));
        }
        copies.push(Copy { to, from, bytes: *size });
    }
    Ok(joined(copies))
}

/// Copies that lie side by side on both ends are one.
fn joined(mut copies: Vec<Copy>) -> Vec<Copy> {
    copies.retain(|copy| copy.bytes != 0);
    copies.sort_by_key(|copy| copy.from);
    let mut out: Vec<Copy> = Vec::new();
    for copy in copies {
        match out.last_mut() {
            Some(last) if last.from + last.bytes == copy.from && last.to + last.bytes == copy.to => {
                last.bytes += copy.bytes;
            }
            _ => out.push(copy),
        }
    }
    out
}

fn fill_pins(pins: &[Pin], original: Owner, own: Owner, driver: &Driver) -> Result<(), String> {
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
    let mut stream = std::ptr::null_mut();
    const NON_BLOCKING: u32 = 1;
    // SAFETY: writes one handle; then copies as many bytes as both sides have, and waits for that.
    let code = unsafe {
        match (driver.cuStreamCreate)(&raw mut stream, NON_BLOCKING) {
            0 => {
                let copied =
                    (driver.cuMemcpyHtoDAsync_v2)(address, words.as_ptr().cast(), words.len() * 8, stream);
                let done = (driver.cuStreamSynchronize)(stream);
                (driver.cuStreamDestroy_v2)(stream);
                if copied == 0 { done } else { copied }
            }
            code => code,
        }
    };
    if code == 0 { Ok(()) } else { Err(format!("its pins could not be filled: {}", code_text(code))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_side_by_side_are_one() {
        let copy = |from, to, bytes| Copy { to, from, bytes };
        let found = joined(vec![copy(108, 208, 4), copy(100, 200, 8), copy(112, 300, 4), copy(400, 500, 0)]);
        assert_eq!(found, [copy(100, 200, 12), copy(112, 300, 4)]);
    }
}
