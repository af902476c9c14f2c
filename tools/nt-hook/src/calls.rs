//! The launching calls, as a program makes them: the first instructions of every launch.
//!
//! A launch of a kernel that is not selected is counted and goes on to the driver in one jump, with its arguments where
//! they are: no frame, nothing spilled. All else ([`crate::launch`]) is behind a second jump.

use std::ffi::{c_int, c_uint, c_void};

use crate::driver::{LEGACY, PER_THREAD};
use crate::launch::{Shape, is_just_counted, launch};
use crate::load::hook;
use crate::table::{Name, bound, real};
use crate::{Code, Opaque, notes};

/// Declares one: its arguments, of which one is the function, and what becomes of a launch that is not just counted.
macro_rules! launching {
    ($name:ident($($arg:ident: $ty:ty),*), $function:ident, $real:ident => $rest:block) => {
        hook!($name($($arg: $ty),*), _unused => {
            type Real = unsafe extern "C" fn($($ty),*) -> Code;
            #[allow(clippy::too_many_arguments, reason = "the driver's own")]
            #[inline(never)]
            extern "C" fn rest($($arg: $ty),*) -> Code {
                // SAFETY: the driver's function of that name has this type.
                let $real: Real = unsafe { std::mem::transmute(real(Name::$name)) };
                $rest
            }
            if let Some(bound) = bound(Name::$name) && is_just_counted($function) {
                // SAFETY: as above; the program's own arguments.
                return unsafe { std::mem::transmute::<*const (), Real>(bound)($($arg),*) };
            }
            rest($($arg),*)
        });
    };
}

macro_rules! plain_launch {
    ($name:ident, $null:expr) => {
        launching!($name(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
            shared: c_uint, stream: Opaque, params: *mut Opaque, extra: *mut Opaque), function, real => {
            // SAFETY: the program's own arguments, or a twin's function with its parameters.
            let call = move |function, params, extra| unsafe {
                real(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra)
            };
            let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, stream, null_stream: $null };
            launch(function, params, extra, &shape, &call)
        });
    };
}

plain_launch!(cuLaunchKernel, LEGACY);
plain_launch!(cuLaunchKernel_ptsz, PER_THREAD);

/// CUlaunchConfig.
#[repr(C)]
struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Opaque,
    attributes: *mut c_void,
    count: c_uint,
}

macro_rules! extended_launch {
    ($name:ident, $null:expr) => {
        launching!($name(config: *const c_void, function: Opaque, params: *mut Opaque, extra: *mut Opaque), function, real => {
            // SAFETY: the program's own arguments, or a twin's function with its parameters. The config goes on
            // untouched: clusters, dependent launches and whatever is added to it one day.
            let call = move |function, params, extra| unsafe { real(config, function, params, extra) };
            // SAFETY: null, or the program's own struct.
            let known = unsafe { config.cast::<Config>().as_ref() };
            let Some(&Config { grid, block, shared, stream, .. }) = known else {
                return call(function, params, extra);
            };
            launch(function, params, extra, &Shape { grid, block, shared, stream, null_stream: $null }, &call)
        });
    };
}

extended_launch!(cuLaunchKernelEx, LEGACY);
extended_launch!(cuLaunchKernelEx_ptsz, PER_THREAD);

macro_rules! cooperative_launch {
    ($name:ident, $null:expr) => {
        launching!($name(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
            shared: c_uint, stream: Opaque, params: *mut Opaque), function, real => {
            // SAFETY: the program's own arguments, or a twin's function with its parameters.
            let call = move |function, params, _: *mut Opaque| unsafe {
                real(function, gx, gy, gz, bx, by, bz, shared, stream, params)
            };
            let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, stream, null_stream: $null };
            launch(function, params, std::ptr::null_mut(), &shape, &call)
        });
    };
}

cooperative_launch!(cuLaunchCooperativeKernel, LEGACY);
cooperative_launch!(cuLaunchCooperativeKernel_ptsz, PER_THREAD);

// Counted, so that nothing is missing in silence.
hook!(cuGraphLaunch(graph: Opaque, stream: Opaque), real => { notes::GRAPHS.count(); real() });
hook!(cuGraphLaunch_ptsz(graph: Opaque, stream: Opaque), real => { notes::GRAPHS.count(); real() });
hook!(cuLaunch(function: Opaque), real => { notes::OTHER_LAUNCHES.count(); real() });
hook!(cuLaunchGrid(function: Opaque, w: c_int, h: c_int), real => { notes::OTHER_LAUNCHES.count(); real() });
hook!(cuLaunchGridAsync(function: Opaque, w: c_int, h: c_int, stream: Opaque), real => {
    notes::OTHER_LAUNCHES.count();
    real()
});
hook!(cuLaunchCooperativeKernelMultiDevice(list: *mut c_void, n: c_uint, flags: c_uint), real => {
    notes::OTHER_LAUNCHES.count();
    real()
});
