//! What a program tells the driver's assembler when it loads PTX: `cuModuleLoadDataEx`, `cuLibraryLoadData`.
//!
//! ```text
//! { CU_JIT_MAX_REGISTERS: 32, CU_JIT_OPTIMIZATION_LEVEL: 1 }  ->  -maxrregcount=32 -O1
//! ```
//!
//! Twins are assembled by nt-run, which gets the options as words of ptxas' with the image; the same image with other
//! options is another image to it. Where nt-run has no assembler, the twin is PTX, and the driver gets the options that bear
//! on code again when the hook loads it. Options of messages, of the target (a twin is made for the device that it is
//! launched on) and of the linker are the original's alone; one that bears on code and has no word is told as left out.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Mutex;

use crate::process::lock;

/// The options of one load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// As ptxas has them, with a space between.
    pub(crate) words: String,
    /// As the driver has them.
    pub(crate) list: List,
}

/// Options, and what stands beside each.
pub(crate) type List = Vec<(c_int, usize)>;

const MAX_REGISTERS: c_int = 0;
const THREADS_PER_BLOCK: c_int = 1;
const OPTIMIZATION_LEVEL: c_int = 7;
const GENERATE_DEBUG_INFO: c_int = 11;
const CACHE_MODE: c_int = 14;
const MIN_CTA_PER_SM: c_int = 31;
const MAX_THREADS_PER_BLOCK: c_int = 32;
const OVERRIDE_DIRECTIVE_VALUES: c_int = 33;
/// The newest that is known (CU_JIT_SPLIT_COMPILE, CUDA 13.0).
const NEWEST: c_int = 34;

/// There are fewer.
const MOST: usize = 64;

/// Reads the two arrays of a load that has succeeded.
///
/// # Safety
/// They are null or hold `n` elements.
pub(crate) unsafe fn read(options: *const c_void, values: *const c_void, n: c_uint) -> Options {
    let n = n as usize;
    if options.is_null() || values.is_null() || n > MOST {
        return Options::default();
    }
    let (options, values) = (options.cast::<c_int>(), values.cast::<usize>());
    // SAFETY: as promised; values are read as they stand, and none is followed.
    of((0..n).map(|i| unsafe { (options.add(i).read_unaligned(), values.add(i).read_unaligned()) }))
}

fn of(given: impl Iterator<Item = (c_int, usize)>) -> Options {
    let (mut words, mut list) = (Vec::new(), Vec::new());
    for (option, value) in given {
        // An `unsigned int` in a pointer's place.
        let number = value as u32;
        let word = match option {
            MAX_REGISTERS => format!("-maxrregcount={number}"),
            // 4 is the driver's usual one, 3 ptxas'.
            OPTIMIZATION_LEVEL if number < 3 => format!("-O{number}"),
            CACHE_MODE if number == 1 => "-dlcm=cg".to_owned(),
            CACHE_MODE if number == 2 => "-dlcm=ca".to_owned(),
            MIN_CTA_PER_SM => format!("-minnctapersm={number}"),
            MAX_THREADS_PER_BLOCK => format!("-maxntid={number}"),
            OVERRIDE_DIRECTIVE_VALUES if number != 0 => "-override-directive-values".to_owned(),
            THREADS_PER_BLOCK => format!("CU_JIT_THREADS_PER_BLOCK={number}"),
            GENERATE_DEBUG_INFO if number != 0 => "CU_JIT_GENERATE_DEBUG_INFO=1".to_owned(),
            NEWEST.. if option > NEWEST => format!("CUjit_option({option})={number}"),
            _ => continue,
        };
        if word.starts_with('-') {
            list.push((option, value));
        }
        words.push(word);
    }
    Options { words: words.join(" "), list }
}

/// By the parent's numbers of images, where there are any.
static OF_IMAGES: Mutex<BTreeMap<u32, List>> = Mutex::new(BTreeMap::new());

/// Remembers what an image was loaded with.
pub(crate) fn remember(image: u32, list: List) {
    if !list.is_empty() {
        lock(&OF_IMAGES).insert(image, list);
    }
}

/// What twins of an image's kernels are to be loaded with.
pub(crate) fn of_image(image: u32) -> List {
    lock(&OF_IMAGES).get(&image).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_as_ptxas_has_them() {
        let check = |given: &[(c_int, usize)], words: &str, list: &[(c_int, usize)]| {
            let found = of(given.iter().copied());
            assert_eq!((found.words.as_str(), found.list.as_slice()), (words, list));
        };
        check(&[], "", &[]);
        check(&[(0, 32), (7, 1)], "-maxrregcount=32 -O1", &[(0, 32), (7, 1)]);
        // A log and its size, the target, line info, the usual level.
        check(&[(5, 0x7fff_0000), (6, 4096), (9, 90), (13, 1), (7, 4), (14, 0)], "", &[]);
        check(
            &[(31, 2), (32, 256), (33, 1), (14, 2)],
            "-minnctapersm=2 -maxntid=256 -override-directive-values -dlcm=ca",
            &[(31, 2), (32, 256), (33, 1), (14, 2)],
        );
        // What is told, and not passed on.
        check(
            &[(1, 512), (11, 1), (40, 7)],
            "CU_JIT_THREADS_PER_BLOCK=512 CU_JIT_GENERATE_DEBUG_INFO=1 CUjit_option(40)=7",
            &[],
        );
    }

    #[test]
    fn arrays_are_read_as_programs_pass_them() {
        let (options, values) = ([0, 7], [24usize, 0]);
        // SAFETY: two elements each, or null.
        let [both, none, nulls] = unsafe {
            [
                read(options.as_ptr().cast(), values.as_ptr().cast(), 2),
                read(options.as_ptr().cast(), values.as_ptr().cast(), 0),
                read(std::ptr::null(), std::ptr::null(), 9),
            ]
        };
        assert_eq!(both.words, "-maxrregcount=24 -O0");
        assert_eq!((none, nulls), (Options::default(), Options::default()));
    }
}
