//! `make fuzz TARGET=verify`: [`nt_fuzz::verify`] on what libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nt_fuzz::verify(bytes));
