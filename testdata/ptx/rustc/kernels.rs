//! What rustc makes of kernels, without `core`: the little of it that is needed stands here.
#![feature(no_core, lang_items, abi_ptx, auto_traits, link_llvm_intrinsics)]
#![no_core]
#![crate_type = "lib"]
#![allow(internal_features)]

#[lang = "pointee_sized"]
trait PointeeSized {}
#[lang = "meta_sized"]
trait MetaSized: PointeeSized {}
#[lang = "sized"]
trait Sized: MetaSized {}
#[lang = "copy"]
trait Copy {}
impl Copy for u32 {}
impl Copy for u64 {}
impl Copy for f32 {}
impl Copy for bool {}
impl<T> Copy for *mut T {}
#[lang = "freeze"]
unsafe auto trait Freeze {}
#[lang = "sync"]
unsafe auto trait Sync {}
#[lang = "drop_in_place"]
unsafe fn drop_in_place<T: PointeeSized>(_: *mut T) {}

unsafe extern "C" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.tid.x"]
    fn thread() -> u32;
    #[link_name = "llvm.nvvm.barrier0"]
    fn barrier();
}

static mut COUNTER: u32 = 7;

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn chosen(which: bool, a: u32, b: u32) -> u32 {
    if which { a } else { b }
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn store(out: *mut u32) {
    *out = thread();
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn counted(out: *mut u32, which: bool) {
    barrier();
    *out = chosen(which, COUNTER, thread());
    COUNTER = *out;
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn wide(out: *mut u64, value: f32, other: *mut f32) {
    *other = value;
    *out = 1;
}
