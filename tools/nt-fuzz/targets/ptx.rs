//! `make fuzz TARGET=ptx`: [`nt_fuzz::ptx`] on what libFuzzer makes up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nt_fuzz::ptx(bytes));
