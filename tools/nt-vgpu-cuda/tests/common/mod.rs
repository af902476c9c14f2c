//! A driver program in Rust: the library opened as programs open the real one, and calls of it by name.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong"
)]
#![allow(unsafe_code, reason = "the driver's interface is C")]

use std::ffi::{CString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub type Handle = *mut c_void;
/// What a call answers when it is not 0.
pub type Code = c_int;

/// Opens the library in this process, which executes kernels from now on.
fn library() -> usize {
    static OPENED: OnceLock<usize> = OnceLock::new();
    *OPENED.get_or_init(|| {
        // SAFETY: before the library is opened; no other thread of the tests reads or writes the environment.
        unsafe {
            std::env::set_var("NT_VGPU", "1");
            std::env::set_var("NT_VGPU_STEPS", "3000000");
            std::env::set_var("NT_VGPU_LOG", log_file());
        }
        let test = std::env::current_exe().unwrap();
        let deps = test.parent().unwrap();
        let name = "libnt_vgpu_cuda.so";
        let candidates = [deps.join(name), deps.parent().unwrap().join(name)];
        let found = candidates.into_iter().filter(|path| path.exists());
        let newest = found.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).unwrap();
        let path = CString::new(newest.to_str().unwrap()).unwrap();
        // SAFETY: a library of ours.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "{} cannot be opened", newest.display());
        library as usize
    })
}

fn log_file() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vgpu.{}.log", std::process::id()))
}

/// Lines of the log so far that hold a text.
pub fn logged(text: &str) -> Vec<String> {
    let log = std::fs::read_to_string(log_file()).unwrap_or_default();
    log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

/// A function of the driver, as `F`.
///
/// # Safety
/// It is one.
pub unsafe fn function<F: Copy>(name: &str) -> F {
    let symbol = CString::new(name).unwrap();
    // SAFETY: a library that stays open.
    let address = unsafe { libc::dlsym(library() as Handle, symbol.as_ptr()) };
    assert!(!address.is_null(), "no {name}");
    // SAFETY: the caller's word.
    unsafe { std::mem::transmute_copy(&address) }
}

/// `call!(cuMemFree_v2(u64) address)`
#[macro_export]
macro_rules! call {
    ($name:ident($($ty:ty),*) $($argument:expr),*) => {{
        // SAFETY: the function's arguments, as the driver documents them.
        let function = unsafe { common::function::<extern "C" fn($($ty),*) -> common::Code>(stringify!($name)) };
        let code = function($($argument),*);
        if code == 0 { Ok(()) } else { Err(code) }
    }};
}

/// A context of its own, current on this thread.
pub struct Device {
    pub context: Handle,
}

/// How a kernel is launched.
#[derive(Clone, Copy)]
pub struct Shape {
    pub grid: u32,
    pub block: u32,
    pub shared: u32,
}

/// `grid` blocks of `block` threads.
pub fn shape(grid: u32, block: u32) -> Shape {
    Shape { grid, block, shared: 0 }
}

use crate::common;

impl Device {
    pub fn new() -> Device {
        call!(cuInit(u32) 0).unwrap();
        let mut context = std::ptr::null_mut();
        call!(cuCtxCreate_v2(*mut Handle, u32, c_int) &mut context, 0, 0).unwrap();
        Device { context }
    }

    pub fn module(&self, image: &[u8]) -> Result<Handle, Code> {
        let image = [image, b"\0"].concat();
        let mut module = std::ptr::null_mut();
        call!(cuModuleLoadData(*mut Handle, *const u8) &mut module, image.as_ptr())?;
        Ok(module)
    }

    pub fn kernel(&self, module: Handle, name: &str) -> Handle {
        let name = CString::new(name).unwrap();
        let mut function = std::ptr::null_mut();
        call!(cuModuleGetFunction(*mut Handle, Handle, *const i8) &mut function, module, name.as_ptr().cast())
            .unwrap();
        function
    }

    /// The one kernel of a text with this body. It has a pointer `%out`, and `%i` is the number of the thread.
    pub fn body(&self, body: &str) -> Handle {
        let text = format!(
            ".version 8.5\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n\
             .global .u32 counter = 5;\n\
             .visible .entry k(.param .u64 p) {{\n.reg .pred %p<9>; .reg .b32 %r<9>, %i; .reg .b64 %rd<9>, %out;\n\
             ld.param.u64 %out, [p];\nmov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n\
             mad.lo.u32 %i, %r0, %r1, %r2;\n{body}\nret;\n}}\n"
        );
        self.kernel(self.module(text.as_bytes()).unwrap(), "k")
    }

    pub fn upload(&self, bytes: &[u8]) -> u64 {
        let mut address = 0;
        call!(cuMemAlloc_v2(*mut u64, usize) &mut address, bytes.len()).unwrap();
        call!(cuMemcpyHtoD_v2(u64, *const u8, usize) address, bytes.as_ptr(), bytes.len()).unwrap();
        address
    }

    pub fn download(&self, address: u64, words: usize) -> Result<Vec<u32>, Code> {
        let mut out = vec![0u32; words];
        call!(cuMemcpyDtoH_v2(*mut u32, u64, usize) out.as_mut_ptr(), address, words * 4)?;
        Ok(out)
    }

    pub fn launch(&self, kernel: Handle, shape: Shape, arguments: &[&[u8]]) -> Result<(), Code> {
        let mut pointers: Vec<*const u8> = arguments.iter().map(|argument| argument.as_ptr()).collect();
        call!(cuLaunchKernel(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *const u8, Handle)
            kernel, shape.grid, 1, 1, shape.block, 1, 1, shape.shared, std::ptr::null_mut(),
            pointers.as_mut_ptr(), std::ptr::null_mut())
    }

    /// A variable of a module, and its size.
    pub fn global(&self, module: Handle, name: &str) -> Result<(u64, usize), Code> {
        let name = CString::new(name).unwrap();
        let (mut address, mut size) = (0, 0);
        call!(cuModuleGetGlobal_v2(*mut u64, *mut usize, Handle, *const i8)
            &mut address, &mut size, module, name.as_ptr().cast())?;
        Ok((address, size))
    }

    pub fn synchronize(&self) -> Result<(), Code> {
        call!(cuCtxSynchronize())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = call!(cuCtxDestroy_v2(Handle) self.context);
    }
}

/// A file of the repository.
pub fn read(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
