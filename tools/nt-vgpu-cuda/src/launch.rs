//! Launches: checked, logged, and put into their stream.
//!
//! Without the executor nothing runs; effects can be planned instead ([`crate::effect`]).

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::call::{INVALID_VALUE, NOT_SUPPORTED, OUT_OF_RESOURCES, calls};
use crate::execute::{self, Execution};
use crate::image::Param;
use crate::plan::plan;
use crate::queue::Op;
use crate::settings::settings;
use crate::{Code, Opaque, effect, health, log, module, stream};

struct Shape {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Opaque,
    cluster: Option<[c_uint; 3]>,
    cooperative: bool,
}

impl Shape {
    fn new(grid: [c_uint; 3], block: [c_uint; 3], shared: c_uint, stream: Opaque) -> Self {
        Shape { grid, block, shared, stream, cluster: None, cooperative: false }
    }
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

/// Parameter space.
fn packed(params: &[Param], arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut space = Vec::new();
    for (param, argument) in params.iter().zip(arguments) {
        space.resize(param.offset, 0);
        space.extend_from_slice(argument);
    }
    space
}

fn launch(function: Opaque, shape: &Shape, pointers: *mut Opaque, extra: *mut Opaque) -> Result<(), Code> {
    if plan().idle {
        return Ok(());
    }
    stream::forbid_implicit(shape.stream)?;
    let stream = stream::get(shape.stream)?;
    health::check(stream.context)?;
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
    if let (Some(loaded), Some(settings)) = (&function.loaded, settings()) {
        let params = packed(&entry.params, &arguments);
        let &Shape { grid, block, cluster, shared, cooperative, .. } = shape;
        let shape = execute::Shape { grid, block, cluster, shared, cooperative };
        let execution =
            Execution::new(Arc::clone(loaded), &entry.name, shape, params, stream.context, settings)?;
        stream.push(Op::Run(plan().delay(), Box::new(move || execution.run())));
        return Ok(());
    }
    let block = arguments.last().filter(|_| woven).cloned();
    let (context, looks) = (stream.context, woven && plan().look);
    // What tells launches apart.
    let second =
        arguments.get(1).map_or(0, |bytes| bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word)));
    let effect = move || {
        if let Some(block) = block {
            effect::planned(&block);
        }
        if looks {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            for (name, bytes) in function.constants(context) {
                let (pid, kernel) = (std::process::id(), &function.entry.name);
                log::line(|| format!("sees {pid} {kernel} {name}={} {second}", hex(&bytes)));
            }
        }
    };
    stream.push(Op::Run(plan().delay(), Box::new(effect)));
    Ok(())
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

/// CUlaunchAttribute
#[repr(C, align(8))]
struct Attribute {
    id: c_uint,
    _pad: c_uint,
    value: [c_uint; 16],
}

/// CU_LAUNCH_ATTRIBUTE_COOPERATIVE
const COOPERATIVE: c_uint = 2;
/// CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
const CLUSTER: c_uint = 4;

fn launch_config(
    config: *const c_void,
    function: Opaque,
    params: *mut Opaque,
    extra: *mut Opaque,
) -> Result<(), Code> {
    // SAFETY: the program's own struct.
    let config = unsafe { config.cast::<Config>().as_ref() }.ok_or(INVALID_VALUE)?;
    let &Config { grid, block, shared, stream, attributes, count } = config;
    let mut shape = Shape::new(grid, block, shared, stream);
    // So that a test sees that attributes came through.
    if count != 0 && !attributes.is_null() {
        log::line(|| format!("attributes {} {count}", std::process::id()));
        // SAFETY: as many as the program says.
        for attribute in unsafe { std::slice::from_raw_parts(attributes.cast::<Attribute>(), count as usize) }
        {
            match (attribute.id, attribute.value) {
                (COOPERATIVE, [value, ..]) => shape.cooperative = value != 0,
                (CLUSTER, [x, y, z, ..]) => shape.cluster = Some([x, y, z]),
                _ => {}
            }
        }
    }
    launch(function, &shape, params, extra)
}

calls! {
    fn cuLaunchKernel(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Opaque, params: *mut Opaque, extra: *mut Opaque) {
        launch(function, &Shape::new([gx, gy, gz], [bx, by, bz], shared, stream), params, extra)
    }
    fn cuLaunchKernel_ptsz(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Opaque, params: *mut Opaque, extra: *mut Opaque) {
        launch(function, &Shape::new([gx, gy, gz], [bx, by, bz], shared, stream), params, extra)
    }
    fn cuLaunchCooperativeKernel(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint,
        bz: c_uint, shared: c_uint, stream: Opaque, params: *mut Opaque) {
        let shape = Shape { cooperative: true, ..Shape::new([gx, gy, gz], [bx, by, bz], shared, stream) };
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
