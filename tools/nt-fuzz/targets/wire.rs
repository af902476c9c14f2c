//! `make fuzz TARGET=wire`: [`nt_fuzz::wire`] on what libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nt_fuzz::wire(bytes));
