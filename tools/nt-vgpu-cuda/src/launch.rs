//! Launches: checked, logged, and put into their stream.
//!
//! There is no executor. One effect can be planned (`NT_VGPU_FAULT=scribble`): a kernel whose last parameter has a name
//! that ends in `ctx`, a block of 8-byte words, takes its second word as an address and its third as a count of 16-byte
//! records there. It looks whether all of them are zero (`dirty` in the log if not) and writes `0x6e74`, the launch's
//! own number, into each. So a test sees that a probe's memory is its own, clean, and brought home whole.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::call::{INVALID_VALUE, NOT_SUPPORTED, OUT_OF_RESOURCES, calls};
use crate::image::Param;
use crate::plan::plan;
use crate::queue::Op;
use crate::{Code, Opaque, log, memory, module, stream};

struct Shape {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Opaque,
}

/// Argument bytes by parameter, wherever the program has put them.
fn arguments(params: &[Param], pointers: *mut Opaque, extra: *mut Opaque) -> Result<Vec<Vec<u8>>, Code> {
    let read = |address: *const u8, size: usize| {
        // SAFETY: the program's argument, of the parameter's size.
        unsafe { std::slice::from_raw_parts(address, size) }.to_vec()
    };
    if params.is_empty() {
        return Ok(Vec::new());
    }
    if !pointers.is_null() {
        return params
            .iter()
            .enumerate()
            .map(|(i, param)| {
                // SAFETY: a pointer a parameter.
                let pointer = unsafe { *pointers.add(i) };
                if pointer.is_null() { Err(INVALID_VALUE) } else { Ok(read(pointer.cast(), param.size)) }
            })
            .collect();
    }
    if extra.is_null() {
        return Err(INVALID_VALUE);
    }
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), 0);
    for pair in 0.. {
        // SAFETY: pairs of name and value, ended by 0.
        let (name, value) = unsafe {
            match *extra.add(2 * pair) as usize {
                0 => break,
                name => (name, *extra.add(2 * pair + 1)),
            }
        };
        match name {
            1 => buffer = value.cast(),
            // SAFETY: the address of the size.
            2 => size = unsafe { *value.cast::<usize>() },
            _ => return Err(INVALID_VALUE),
        }
    }
    params
        .iter()
        .map(|param| {
            if param.offset + param.size <= size {
                Ok(read(buffer.wrapping_add(param.offset), param.size))
            } else {
                Err(INVALID_VALUE)
            }
        })
        .collect()
}

fn launch(function: Opaque, shape: &Shape, pointers: *mut Opaque, extra: *mut Opaque) -> Result<(), Code> {
    if plan().idle {
        return Ok(());
    }
    let stream = stream::get(shape.stream)?;
    let function = module::function(function, stream.context)?;
    let threads: u64 = shape.block.iter().map(|&n| u64::from(n)).product();
    if shape.grid.contains(&0) || threads == 0 || threads > 1024 {
        return Err(INVALID_VALUE);
    }
    if i64::from(shape.shared) > i64::from(function.most_shared()) {
        return Err(INVALID_VALUE);
    }
    let entry = &function.entry;
    let woven = entry.is_woven();
    if let Some(code) = plan().twin_launch.filter(|_| woven) {
        log::line(|| format!("refused {} {}", std::process::id(), entry.name));
        return Err(code);
    }
    if threads > 1024 {
        return Err(OUT_OF_RESOURCES);
    }
    let arguments = arguments(&entry.params, pointers, extra)?;
    log::line(|| {
        let three = |v: [c_uint; 3]| format!("{},{},{}", v[0], v[1], v[2]);
        let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!(
            "launch {} {} grid={} block={} shared={} stream={:#x} captured={} params={}",
            std::process::id(),
            entry.name,
            three(shape.grid),
            three(shape.block),
            shape.shared,
            shape.stream as usize,
            u8::from(stream.captured()),
            arguments.iter().map(hex).collect::<Vec<_>>().join(",")
        )
    });
    let context = arguments.last().filter(|_| woven && plan().scribble).cloned();
    let effect = move || {
        if let Some(context) = context {
            scribble(&context);
        }
    };
    stream.push(Op::Run(plan().delay(), Box::new(effect)));
    Ok(())
}

/// See the module.
fn scribble(context: &[u8]) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let word = |index: usize| {
        let bytes = context.get(8 * index..8 * index + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let (address, count) = (word(1), word(2) as usize);
    if !memory::holds(address, count * 16) {
        log::line(|| format!("wild {} {address:#x} {count}", std::process::id()));
        return;
    }
    // SAFETY: inside an allocation, as was just seen, and aligned to 256.
    let records = unsafe { std::slice::from_raw_parts_mut(address as *mut [u64; 2], count) };
    if records.iter().any(|record| *record != [0, 0]) {
        log::line(|| format!("dirty {} {address:#x}", std::process::id()));
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    records.fill([0x6e74, number]);
}

/// CUlaunchConfig
#[repr(C)]
struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Opaque,
    attributes: *mut c_void,
    count: c_uint,
}

fn launch_config(
    config: *const c_void,
    function: Opaque,
    params: *mut Opaque,
    extra: *mut Opaque,
) -> Result<(), Code> {
    // SAFETY: the program's own struct.
    let config = unsafe { config.cast::<Config>().as_ref() }.ok_or(INVALID_VALUE)?;
    let &Config { grid, block, shared, stream, attributes, count } = config;
    // So that a test sees that attributes came through.
    if count != 0 && !attributes.is_null() {
        log::line(|| format!("attributes {} {count}", std::process::id()));
    }
    launch(function, &Shape { grid, block, shared, stream }, params, extra)
}

calls! {
    fn cuLaunchKernel(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Opaque, params: *mut Opaque, extra: *mut Opaque) {
        launch(function, &Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, stream }, params, extra)
    }
    fn cuLaunchKernel_ptsz(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Opaque, params: *mut Opaque, extra: *mut Opaque) {
        launch(function, &Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, stream }, params, extra)
    }
    fn cuLaunchCooperativeKernel(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint,
        bz: c_uint, shared: c_uint, stream: Opaque, params: *mut Opaque) {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, stream };
        launch(function, &shape, params, std::ptr::null_mut())
    }
    fn cuLaunchKernelEx(config: *const c_void, function: Opaque, params: *mut Opaque, extra: *mut Opaque) {
        launch_config(config, function, params, extra)
    }
    fn cuLaunchKernelEx_ptsz(config: *const c_void, function: Opaque, params: *mut Opaque, extra: *mut Opaque) {
        launch_config(config, function, params, extra)
    }
    fn cuLaunchGrid(_function: Opaque, _width: c_int, _height: c_int) { Err(NOT_SUPPORTED) }
    /// Stands for a variant that a later driver may have: see `lookup`.
    fn cuLaunchKernel_v9(_function: Opaque) { Err(NOT_SUPPORTED) }
}
