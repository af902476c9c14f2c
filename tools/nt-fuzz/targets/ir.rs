//! `make fuzz TARGET=ir`: [`nt_fuzz::ir`] on what libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nt_fuzz::ir(bytes));
