//! Contexts in which a kernel went wrong: as with the real driver, every later call in them answers with that error.

use crate::Code;
use crate::call::{Answer, lock};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// CUDA_ERROR_ILLEGAL_ADDRESS
pub(crate) const ILLEGAL_ADDRESS: Code = 700;
/// CUDA_ERROR_LAUNCH_TIMEOUT
pub(crate) const LAUNCH_TIMEOUT: Code = 702;
/// CUDA_ERROR_ILLEGAL_INSTRUCTION
pub(crate) const ILLEGAL_INSTRUCTION: Code = 715;
/// CUDA_ERROR_MISALIGNED_ADDRESS
pub(crate) const MISALIGNED_ADDRESS: Code = 716;
/// CUDA_ERROR_LAUNCH_FAILED
pub(crate) const LAUNCH_FAILED: Code = 719;

/// By context.
static SICK: Mutex<BTreeMap<usize, Code>> = Mutex::new(BTreeMap::new());
/// Whether there is any: the question that most calls ask.
static ANY: AtomicBool = AtomicBool::new(false);

/// A kernel in it went wrong. The first error stays.
pub(crate) fn fail(context: usize, code: Code) {
    lock(&SICK).entry(context).or_insert(code);
    ANY.store(true, Ordering::Release);
}

/// The error of a context in which a kernel went wrong.
pub(crate) fn check(context: usize) -> Answer {
    if !ANY.load(Ordering::Acquire) {
        return Ok(());
    }
    lock(&SICK).get(&context).map_or(Ok(()), |&code| Err(code))
}

/// It has ended; its handle may come anew.
pub(crate) fn forget(context: usize) {
    lock(&SICK).remove(&context);
}
