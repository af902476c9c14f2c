//! Kernels executed by way of the driver's calls: memory, variables, parameters, shapes, and what happens when a
//! kernel goes wrong. What instructions compute is tested in `nt-vgpu`.
#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]
#![allow(unsafe_code, reason = "the driver's interface is C")]

mod common;

use common::{Code, Device, Handle, logged, read, shape};
use std::ffi::{c_char, c_int, c_void};

const ADDRESS: Code = 700;
const TIMEOUT: Code = 702;
const ALIGNMENT: Code = 716;
const FAILED: Code = 719;

/// Stores `%i` where the thread's number says.
const IOTA: &str = "mul.wide.u32 %rd1, %i, 4; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], %i;";

#[test]
fn kernels_run_in_stream_order_and_results_come_home() {
    let device = Device::new();
    let iota = device.body(IOTA);
    let double = device.body(
        "mul.wide.u32 %rd1, %i, 4; add.u64 %rd1, %out, %rd1; ld.global.u32 %r3, [%rd1];\n\
         add.u32 %r3, %r3, %r3; st.global.u32 [%rd1], %r3;",
    );
    let out = device.upload(&[0xff; 4 * 1000]);
    for kernel in [iota, double, double] {
        device.launch(kernel, shape(25, 40), &[&out.to_le_bytes()]).unwrap();
    }
    assert_eq!(device.download(out, 1000).unwrap(), (0..1000).map(|i| 4 * i).collect::<Vec<u32>>());
}

#[test]
fn a_launch_does_not_wait_for_its_kernel() {
    let device = Device::new();
    let slow =
        device.body("mov.u32 %r3, 0;\nL: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 500000; @%p1 bra L;");
    let null: Handle = std::ptr::null_mut();
    device.launch(slow, shape(1, 1), &[&0u64.to_le_bytes()]).unwrap();
    device.launch(slow, shape(1, 1), &[&0u64.to_le_bytes()]).unwrap();
    assert_eq!(call!(cuStreamQuery(Handle) null), Err(600), "a million and a half instructions take a while");
    device.synchronize().unwrap();
    assert_eq!(call!(cuStreamQuery(Handle) null), Ok(()));
}

#[test]
fn variables_are_the_modules_and_the_contexts() {
    let text = read("testdata/ptx/nvcc/features.sm_90.ptx");
    let device = Device::new();
    let module = device.module(&text).unwrap();
    let (table, size) = device.global(module, "table").unwrap();
    assert_eq!(size, 256);
    // A polynomial of which one coefficient is left: 3·x².
    let mut coefficients = [0u8; 256];
    coefficients[8..12].copy_from_slice(&3f32.to_le_bytes());
    call!(cuMemcpyHtoD_v2(u64, *const u8, usize) table, coefficients.as_ptr(), size).unwrap();
    let x = device.upload(&[2f32, 5.0].map(f32::to_le_bytes).concat());
    let out = device.upload(&[0; 8]);
    let arguments: [&[u8]; 3] = [&x.to_le_bytes(), &out.to_le_bytes(), &2u32.to_le_bytes()];
    device.launch(device.kernel(module, "calls"), shape(1, 32), &arguments).unwrap();
    // The kernel adds the thread's Fibonacci number, 0 and 1.
    let floats: Vec<f32> = device.download(out, 2).unwrap().into_iter().map(f32::from_bits).collect();
    assert_eq!(floats, [12.0, 76.0]);
    assert_eq!(device.global(module, "no_such"), Err(500));

    // A library's variables are elsewhere in every context.
    let counting = b".version 8.5\n.target sm_90\n.address_size 64\n.global .u32 counter = 5;\n\
        .visible .entry k() { .reg .b32 %r<2>; atom.global.add.u32 %r1, [counter], 1; ret; }\n\0";
    let mut library: Handle = std::ptr::null_mut();
    let null: *mut c_void = std::ptr::null_mut();
    call!(cuLibraryLoadData(*mut Handle, *const u8, Handle, Handle, u32, Handle, Handle, u32)
        &mut library, counting.as_ptr(), null, null, 0, null, null, 0)
    .unwrap();
    let mut kernel: Handle = std::ptr::null_mut();
    call!(cuLibraryGetKernel(*mut Handle, Handle, *const c_char) &mut kernel, library, c"k".as_ptr())
        .unwrap();
    let counter = |device: &Device, times: u32| {
        device.launch(kernel, shape(times, 1), &[]).unwrap();
        let mut address = 0;
        call!(cuLibraryGetGlobal(*mut u64, *mut usize, Handle, *const c_char)
            &mut address, std::ptr::null_mut(), library, c"counter".as_ptr())
        .unwrap();
        device.download(address, 1).unwrap()
    };
    assert_eq!(counter(&device, 3), [8]);
    let other = Device::new();
    assert_eq!(counter(&other, 1), [6]);
    drop(other);
    call!(cuCtxSetCurrent(Handle) device.context).unwrap();
    assert_eq!(counter(&device, 1), [9]);
    call!(cuLibraryUnload(Handle) library).unwrap();
}

#[test]
fn registered_host_memory_is_memory() {
    let device = Device::new();
    let add = device.body("mov.u32 %r3, 1; red.global.add.u32 [%out], %r3;");
    let mut word = Box::new([0u32; 16]);
    let address = word.as_mut_ptr();
    call!(cuMemHostRegister_v2(*mut u32, usize, u32) address, 64, 0).unwrap();
    device.launch(add, shape(10, 32), &[&(address as u64).to_le_bytes()]).unwrap();
    device.synchronize().unwrap();
    // SAFETY: the box is still there.
    assert_eq!(unsafe { address.read_volatile() }, 320);
    call!(cuMemHostUnregister(*mut u32) address).unwrap();
    device.launch(add, shape(1, 1), &[&(address as u64).to_le_bytes()]).unwrap();
    assert_eq!(device.synchronize(), Err(ADDRESS));
}

#[test]
fn dynamic_shared_memory_is_as_large_as_was_asked() {
    let device = Device::new();
    let size = device.body("mov.u32 %r3, %dynamic_smem_size; st.global.u32 [%out], %r3;");
    let out = device.upload(&[0; 4]);
    let sized = |bytes: u32| {
        let shape = common::Shape { shared: bytes, ..shape(1, 1) };
        device.launch(size, shape, &[&out.to_le_bytes()])?;
        device.download(out, 1)
    };
    assert_eq!(sized(1000), Ok(vec![1000]));
    // More must be asked for, as everywhere.
    assert_eq!(sized(100_000), Err(1));
    call!(cuFuncSetAttribute(Handle, c_int, c_int) size, 8, 100_000).unwrap();
    assert_eq!(sized(100_000), Ok(vec![100_000]));
}

#[test]
fn clusters_come_with_the_launch() {
    #[repr(C)]
    struct Config {
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        stream: Handle,
        attributes: *const Attribute,
        count: u32,
    }
    #[repr(C)]
    struct Attribute {
        id: u32,
        pad: u32,
        value: [u32; 16],
    }
    let device = Device::new();
    let rank = device.body(
        "mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank; mad.lo.u32 %r3, %r4, 10, %r3;\n\
         mul.wide.u32 %rd1, %i, 4; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], %r3;",
    );
    let out = device.upload(&[0; 24]);
    let ranks = |cluster: u32| {
        let mut value = [0; 16];
        value[..3].copy_from_slice(&[cluster, 1, 1]);
        let attribute = Attribute { id: 4, pad: 0, value };
        let config = Config {
            grid: [6, 1, 1],
            block: [1; 3],
            shared: 0,
            stream: std::ptr::null_mut(),
            attributes: &raw const attribute,
            count: 1,
        };
        let mut pointer = (&raw const out).cast::<u8>();
        call!(cuLaunchKernelEx(*const Config, Handle, *mut *const u8, Handle)
            &config, rank, &mut pointer, std::ptr::null_mut())?;
        device.download(out, 6)
    };
    assert_eq!(ranks(1), Ok(vec![10; 6]));
    assert_eq!(ranks(3), Ok(vec![30, 31, 32, 30, 31, 32]));
    assert_eq!(ranks(4), Err(1), "six blocks are no clusters of four");
}

/// A kernel with this body goes wrong; the answers afterwards, and what is said.
fn goes_wrong(body: &str, shape: common::Shape, code: Code, said: &str) {
    let device = Device::new();
    let (bad, good) = (device.body(body), device.body(IOTA));
    let out = device.upload(&[0; 64]);
    device.launch(bad, shape, &[&out.to_le_bytes()]).unwrap();
    assert_eq!(device.synchronize(), Err(code), "{body}");
    let lines = logged(said);
    assert_eq!(lines.len(), 1, "{body}: {said}: {:?}", logged("said "));

    // The context is lost, another is not.
    assert_eq!(device.launch(good, common::shape(1, 1), &[&out.to_le_bytes()]), Err(code));
    assert_eq!(device.download(out, 1), Err(code));
    let other = Device::new();
    let out = other.upload(&[0xff; 8]);
    other.launch(other.body(IOTA), common::shape(1, 2), &[&out.to_le_bytes()]).unwrap();
    assert_eq!(other.download(out, 2), Ok(vec![0, 1]));
}

#[test]
fn accesses_out_of_bounds_have_a_place() {
    goes_wrong(
        &format!("add.u32 %i, %i, 10;\n{IOTA}"),
        shape(4, 2),
        ADDRESS,
        // 64 bytes are 16 words; of 10 + i the first that is none of them is that of thread 6: block 3, thread 0.
        "kernel `k`, line 12, `st.global.u32`: block (3,0,0), thread (0,0,0): no memory at global address 0x",
    );
}

#[test]
fn null_is_no_address() {
    let body = "mov.u64 %rd1, 0; ld.global.u32 %r3, [%rd1+16];";
    let said = "`ld.global.u32`: block (0,0,0), thread (0,0,0): no memory at global address 0x10 (4 bytes)";
    goes_wrong(body, shape(1, 32), ADDRESS, said);
}

#[test]
fn misaligned_accesses_are_told_apart() {
    let body = "@%p1 bra L;\nld.global.u64 %rd2, [%out+4];\nL:";
    let said = "line 12, `ld.global.u64`: block (0,0,0), thread (0,0,0): misaligned global address";
    goes_wrong(body, shape(1, 3), ALIGNMENT, said);
}

#[test]
fn traps_fail_the_launch() {
    let said = "block (1,0,0), thread (1,0,0): the kernel trapped";
    goes_wrong("setp.eq.u32 %p1, %i, 4; @%p1 trap;", shape(2, 3), FAILED, said);
}

#[test]
fn a_kernel_without_end_is_given_up() {
    goes_wrong("L: bra L;", shape(1, 1), TIMEOUT, "not done after 3000000 steps");
}

#[test]
fn waiting_for_ever_is_seen() {
    let body = "setp.eq.u32 %p1, %r2, 0; @%p1 bra L;\nbar.sync 0;\nL: @!%p1 bra M;\nK: bar.sync 1, 64;\nM:";
    goes_wrong(body, shape(1, 64), TIMEOUT, "deadlock: ");
}

#[test]
fn images_of_every_form() {
    let device = Device::new();
    for packed in ["raw", "lz4", "zstd", "group"] {
        let module = device.module(&read(&format!("testdata/fatbin/tiny.{packed}.fatbin"))).unwrap();
        let out = device.upload(&[0; 4]);
        device.launch(device.kernel(module, "tiny"), shape(2, 2), &[&out.to_le_bytes()]).unwrap();
        assert_eq!(device.download(out, 1), Ok(vec![1]), "{packed}");
    }
    let mut cubin = b"\x7fELF\x02\x01\x01".to_vec();
    cubin.resize(64, 0);
    assert_eq!(device.module(&cubin), Err(209));
    assert_eq!(logged("a cubin was refused").len(), 1);
    assert_eq!(device.module(b"no image at all"), Err(200));
    let wrong = b".version 8.5\n.target sm_90\n.address_size 64\n.entry k() { bra NOWHERE; ret; }\n";
    assert_eq!(device.module(wrong), Err(218));
    assert_eq!(logged("PTX was refused: line 4: ").len(), 1);
}

#[test]
fn attributes_are_the_kernels() {
    let device = Device::new();
    let module = device.module(&read("testdata/ptx/nvcc/features.sm_90.ptx")).unwrap();
    let attribute = |kernel: &str, number: c_int| {
        let mut value = -1;
        call!(cuFuncGetAttribute(*mut c_int, c_int, Handle) &mut value, number, device.kernel(module, kernel)).unwrap();
        value
    };
    // `__launch_bounds__(128)`, a local array of 32 floats, `__cluster_dims__(2)`; see testdata/cu/features.cu.
    assert_eq!(attribute("by_value", 0), 128);
    assert_eq!(attribute("no_parameters", 0), 1024);
    assert_eq!(attribute("local_array", 3), 128);
    assert_eq!(attribute("clustered", 11), 2);
    assert_eq!(attribute("no_parameters", 8), 49_152);
}

#[test]
fn host_memory_of_the_drivers_is_memory_too() {
    let device = Device::new();
    let (mut host, mut back) = (0u64, [0u32; 3]);
    call!(cuMemHostAlloc(*mut u64, usize, u32) &mut host, 12, 0).unwrap();
    let null: Handle = std::ptr::null_mut();
    call!(cuMemsetD8Async(u64, u8, usize, Handle) host, 1, 12, null).unwrap();
    let add = device.body("mov.u32 %r3, 1; red.global.add.u32 [%out+4], %r3;");
    device.launch(add, shape(2, 32), &[&host.to_le_bytes()]).unwrap();
    call!(cuMemcpy(*mut u32, u64, usize) back.as_mut_ptr(), host, 12).unwrap();
    assert_eq!(back, [0x0101_0101, 0x0101_0101 + 64, 0x0101_0101]);
    call!(cuMemFreeHost(u64) host).unwrap();
    assert_eq!(call!(cuMemFreeHost(u64) host), Err(1));
}

#[test]
fn what_is_not_supported_says_so_once() {
    let _device = Device::new();
    for _ in 0..2 {
        assert_eq!(call!(cuTexObjectCreate(u64, u64, u64, u64) 1, 2, 3, 4), Err(801));
    }
    assert_eq!(logged("cuTexObjectCreate is not supported").len(), 1);
}

/// It is a device for tests and demonstrations, and no product of its own: see docs/vgpu.md.
#[test]
fn the_front_stays_small() {
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap();
    let lines = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap().lines().count();
    let lines: usize = sources.map(|entry| lines(entry.unwrap().path())).sum();
    assert!(lines <= 4000, "{lines} lines");
}
