//! What the device has to say to whoever runs the program, on stderr: the real driver is silent and leaves one guessing.

use crate::call::lock;
use crate::log;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;

/// More different texts than this are not said.
const MOST: usize = 64;

/// Says something, once a process.
pub(crate) fn once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = lock(&SAID);
    if said.len() < MOST && said.insert(text.to_owned()) {
        log::line(|| format!("said {} {text}", std::process::id()));
        // Nowhere to say it is no reason to fail a program.
        let _ = std::io::stderr().write_all(format!("nt-vgpu: {text}\n").as_bytes());
    }
}
