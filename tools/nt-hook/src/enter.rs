//! The three functions through which programs find a driver: `dlsym`, `dlvsym`, `dlopen`.
//!
//! All three depend on who calls them (RTLD_NEXT, RUNPATH, the namespace), so ours may not stand in between as a
//! caller. They are naked functions that look at the name's first letters and *jump* to the next one; the program's
//! return address is still on top of the stack. Only names that begin with `cu` take a detour through [`decide`]. Cost
//! of the jump: 2 ns of 34.
//!
//! A name of ours is answered with our function only after the real lookup, with the program's own handle, has found
//! something: without a driver the program sees the NULL and the `dlerror` that it would see without us.
//!
//! `dlopen` loses its RTLD_DEEPBIND flag for the libraries of the CUDA and ROCm families: a library bound that way finds
//! libc's `dlsym` before ours and would not be seen at all.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int};

use crate::boot::{self, NEXT_DLOPEN, NEXT_DLSYM, NEXT_DLVSYM, RTLD_NEXT};
use crate::{Opaque, env, notes, table};

/// [`decide`]'s word for "let the real one answer".
const PASS: usize = 0;
/// [`decide`]'s word for NULL; the real lookup has set `dlerror`.
const NULL: usize = 1;

macro_rules! entry {
    ($name:ident, $next:ident, $decide:path) => {
        // Arguments rdi, rsi, rdx stay untouched on the way through; three pushes keep the stack aligned for calls.
        #[cfg(target_arch = "x86_64")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "endbr64",
                "test rsi, rsi",                    // no name: the real one's to judge
                "jz 2f",
                "cmp byte ptr [rsi], 0x63",         // 'c'
                "jne 2f",
                "cmp byte ptr [rsi + 1], 0x75",     // 'u'
                "je 3f",
                "2:",
                "mov rax, [rip + {next}]",
                "test rax, rax",
                "jz 4f",
                "jmp rax",
                "3:",
                "push rdi",
                "push rsi",
                "push rdx",
                "mov rcx, [rsp + 24]",              // the return address names the caller
                "call {decide}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "test rax, rax",
                "jz 2b",
                "cmp rax, 1",
                "jne 5f",
                "xor eax, eax",
                "5:",
                "ret",
                "4:",
                "push rdi",
                "push rsi",
                "push rdx",
                "call {boot}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp 2b",
                next = sym $next,
                decide = sym $decide,
                boot = sym boot::boot,
            )
        }

        #[cfg(target_arch = "aarch64")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "hint #34",                         // bti c
                "cbz x1, 2f",
                "ldrb w9, [x1]",
                "cmp w9, #0x63",
                "b.ne 2f",
                "ldrb w9, [x1, #1]",
                "cmp w9, #0x75",
                "b.eq 3f",
                "2:",
                "adrp x16, {next}",
                "ldr x16, [x16, #:lo12:{next}]",
                "cbz x16, 4f",
                "br x16",
                "3:",
                "stp x29, x30, [sp, #-48]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "mov x3, x30",
                "bl {decide}",
                "mov x9, x0",
                "ldr x2, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #48",
                "cbz x9, 2b",
                "cmp x9, #1",
                "csel x0, xzr, x9, eq",
                "ret",
                "4:",
                "stp x29, x30, [sp, #-48]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "bl {boot}",
                "ldr x2, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #48",
                "b 2b",
                next = sym $next,
                decide = sym $decide,
                boot = sym boot::boot,
            )
        }
    };
}

entry!(dlsym, NEXT_DLSYM, decide_dlsym);
entry!(dlvsym, NEXT_DLVSYM, decide_dlvsym);

#[cfg(target_arch = "x86_64")]
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
unsafe extern "C" fn dlopen() {
    naked_asm!(
        "endbr64",
        "test sil, 8",                      // RTLD_DEEPBIND
        "jz 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {flags}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "mov esi, eax",
        "2:",
        "mov rax, [rip + {next}]",
        "test rax, rax",
        "jz 4f",
        "jmp rax",
        "4:",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {boot}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp 2b",
        next = sym NEXT_DLOPEN,
        flags = sym flags,
        boot = sym boot::boot,
    )
}

#[cfg(target_arch = "aarch64")]
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
unsafe extern "C" fn dlopen() {
    naked_asm!(
        "hint #34",                         // bti c
        "tbz w1, #3, 2f",                   // RTLD_DEEPBIND
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "str x0, [sp, #16]",
        "bl {flags}",
        "mov w1, w0",
        "ldr x0, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "2:",
        "adrp x16, {next}",
        "ldr x16, [x16, #:lo12:{next}]",
        "cbz x16, 4f",
        "br x16",
        "4:",
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {boot}",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "b 2b",
        next = sym NEXT_DLOPEN,
        flags = sym flags,
        boot = sym boot::boot,
    )
}

extern "C" fn decide_dlsym(handle: Opaque, name: *const c_char, _: usize, caller: usize) -> usize {
    decide(handle, name, caller, boot::dlsym)
}

extern "C" fn decide_dlvsym(
    handle: Opaque,
    name: *const c_char,
    version: *const c_char,
    caller: usize,
) -> usize {
    decide(handle, name, caller, |handle, name| boot::dlvsym(handle, name, version))
}

/// Whether a name is ours to answer: [`PASS`], [`NULL`], or the answer. No allocation, no lock.
fn decide(
    handle: Opaque,
    name: *const c_char,
    caller: usize,
    look: impl Fn(Opaque, &CStr) -> Opaque,
) -> usize {
    // SAFETY: the naked entry saw that it is not null; a name ends in a NUL.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(index) = table::find(name) else { return PASS };
    // The driver looks its own names up, and must find its own functions.
    if !env::wanted() || handle == RTLD_NEXT || table::in_driver(caller) {
        return PASS;
    }
    // RTLD_DEFAULT (null) and `dlopen(NULL)` would find our own export: is there a driver behind it?
    let mut found = look(if handle.is_null() { RTLD_NEXT } else { handle }, name);
    if found == table::ours(index) {
        found = look(RTLD_NEXT, name);
    }
    if found.is_null() {
        return NULL;
    }
    let answer = table::bind(index, found);
    // Where this very look-up has shown which object the driver is.
    if table::in_driver(caller) { PASS } else { answer as usize }
}

/// What `dlopen` may keep of its flags.
extern "C" fn flags(name: *const c_char, flags: c_int) -> c_int {
    const FAMILIES: [&[u8]; 6] = [b"libcu", b"libnv", b"libnccl", b"libhip", b"libroc", b"libamd"];
    let file = boot::file_name(name);
    if !env::wanted() || !FAMILIES.iter().any(|family| file.starts_with(family)) {
        return flags;
    }
    notes::DEEPBIND.count();
    flags & !libc::RTLD_DEEPBIND
}
