//! The light scan of PTX against `nt-ptx`, which reads it whole, on what nvcc and Triton wrote.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use std::path::Path;

#[test]
fn the_scan_and_the_reader_find_the_same_kernels() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx");
    let (mut files, mut kernels) = (0, 0);
    for folder in ["nvcc", "triton"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "ptx") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let (module, _) = nt_ptx::parse(&text);
            let read: Vec<&str> = module
                .functions
                .iter()
                .filter(|function| function.is_entry && function.body.is_some())
                .map(|function| &text[function.name.range()])
                .collect();
            assert_eq!(nt_object::ptx::kernels(text.as_bytes()), read, "{}", path.display());

            // nvcc's and Triton's first lines, by their file names: `kernels.sm_90.ptx`.
            let head = nt_object::ptx::head(text.as_bytes());
            let name = path.file_stem().unwrap().to_str().unwrap();
            let arch = name.rsplit('.').next().unwrap().parse().unwrap();
            assert_eq!(head.target, Some(arch), "{name}");
            assert!(head.version >= Some((8, 0)), "{name}");
            files += 1;
            kernels += read.len();
        }
    }
    assert!(files >= 20 && kernels > files, "{files} files, {kernels} kernels");
}
