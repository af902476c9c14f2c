//! The library as ld.so sees it.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use common::library;

/// What is exported shadows the program's own: exactly these.
const EXPORTS: &str = "
    dlsym dlvsym dlopen
    execv execve execvp execvpe fexecve execveat posix_spawn posix_spawnp
    _exit _Exit
    cuInit cuGetProcAddress cuGetProcAddress_v2
    cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuModuleUnload cuModuleGetFunction
    cuLibraryLoadData cuLibraryLoadFromFile cuLibraryUnload cuLibraryGetKernel cuLibraryGetModule cuKernelGetFunction
    cuModuleGetGlobal cuModuleGetGlobal_v2 cuLibraryGetGlobal cuFuncSetAttribute cuKernelSetAttribute
    cuLaunchKernel cuLaunchKernel_ptsz cuLaunchKernelEx cuLaunchKernelEx_ptsz
    cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz
    cuLaunch cuLaunchGrid cuLaunchGridAsync cuLaunchCooperativeKernelMultiDevice cuGraphLaunch cuGraphLaunch_ptsz
    cuGraphAddKernelNode cuGraphAddKernelNode_v2 cuGraphAddNode cuGraphAddNode_v2 cuGraphAddNode_v3
    cuCtxDestroy cuCtxDestroy_v2 cuStreamDestroy cuStreamDestroy_v2
    cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
";

fn lines(program: &str, words: &[&str]) -> Vec<String> {
    let output = Command::new(program).args(words).output().expect("binutils are needed");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn names() {
    let hook = library("libnt_hook.so");
    let found = lines("nm", &["-D", "--defined-only", "--format=posix", hook.to_str().unwrap()]);
    let found: BTreeSet<&str> = found.iter().filter_map(|line| line.split(' ').next()).collect();
    let expected: BTreeSet<&str> = EXPORTS.split_whitespace().collect();
    assert_eq!(found, expected);
}

/// A name that the driver lacks cannot be tested for what it does.
#[test]
fn needed_libraries() {
    let hook = library("libnt_hook.so");
    let found = lines("readelf", &["-d", hook.to_str().unwrap()]);
    let needed = found.iter().filter(|line| line.contains("(NEEDED)"));
    let mut needed: Vec<&str> = needed.filter_map(|line| line.split(['[', ']']).nth(1)).collect();
    needed.sort_unstable();
    assert_eq!(needed, ["ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1"]);
}

/// glibc 2.39 is what the machines with GPUs have that this is run on (Ubuntu 24.04); 2.34 is what Debian 12 and
/// everything since 2021 has. A newer symbol would be a fatal start-up error in the program under test.
#[test]
fn oldest_libc() {
    let hook = library("libnt_hook.so");
    let found = lines("nm", &["-D", hook.to_str().unwrap()]);
    let versions = found.iter().filter_map(|line| line.split_once("@GLIBC_2."));
    let newest = versions.filter_map(|(_, version)| version.split('.').next()?.parse::<u32>().ok()).max();
    assert!(newest.is_some_and(|newest| newest <= 34), "{newest:?}");
}
