//! Images of each form. Sizes and fields of headers are those that `fatbinary` and ptxas write.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use super::*;
use std::path::Path;

/// The head of a cubin, with fields as in files that ptxas 11.8 and 13.5 wrote.
fn cubin(abi: u8, flags: u32) -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0x33, abi]);
    head[18] = 190;
    head[48..52].copy_from_slice(&flags.to_le_bytes());
    head
}

fn ptx_for(target: &str, kernels: &[&str]) -> String {
    let kernels: String =
        kernels.iter().map(|name| format!(".visible .entry {name}() {{ ret; }}\n")).collect();
    format!(".version 8.0\n.target {target}\n.address_size 64\n{kernels}")
}

/// A fatbin of raw images: kind, architecture, bytes.
fn fatbin(images: &[(u16, u32, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for &(kind, sm, image) in images {
        let size = image.len().next_multiple_of(8);
        body.extend(kind.to_le_bytes());
        body.extend([1, 1]);
        body.extend(64_u32.to_le_bytes()); // header's size
        body.extend((size as u64).to_le_bytes());
        body.extend([0; 8]); // compressed size, options
        body.extend([0, 0, 8, 0]); // version 8.0
        body.extend(sm.to_le_bytes());
        body.extend([0; 32]); // name, flags, sizes
        body.extend(image);
        body.resize(body.len() + size - image.len(), 0);
    }
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)).unwrap()
}

fn kept(bytes: &[u8]) -> Image {
    let mut image = Image::read(bytes);
    assert_eq!((image.reason.as_str(), image.faults.len()), ("", 0));
    image.keep(bytes);
    image
}

/// The target of the text that is taken for a kernel on a device, or why there is none.
fn taken(image: &Image, kernel: &str, device: u32) -> Result<String, String> {
    let (parsed, _) = image.module(kernel, device).map_err(|refusal| refusal.reason)?;
    Ok(parsed.resolved().module.arch().unwrap().to_owned())
}

#[test]
fn text_ends_at_its_nul() {
    for bytes in [
        &b".version 8.0\n.entry k() { ret; }\0rubbish\xff"[..],
        "// é\n.version 8.0 .entry k(){ret;}".as_bytes(),
    ] {
        assert_eq!(kept(bytes).kernels, ["k"]);
    }
}

#[test]
fn images_without_ptx_say_what_they_are() {
    let check = |image: &[u8], expected: &str| assert_eq!(Image::read(image).reason, expected);
    check(&cubin(7, 0x50_0559), "no PTX: cubin for sm_89 only (compile with -lineinfo)");
    check(&cubin(8, 0x0600_6402), "no PTX: cubin for sm_100 only (compile with -lineinfo)");
    check(
        &fatbin(&[(2, 80, &cubin(7, 0x50_0550)), (2, 90, &cubin(7, 0x50_055a))]),
        "no PTX: cubins for sm_80, sm_90 only (compile with -lineinfo)",
    );
    check(&fatbin(&[(8, 90, b"\0\0\0\0")]), "no PTX: LTO-IR for sm_90 only");
    check(&fatbin(&[]), "no PTX: no device code in it");
    check(b"BC\xc0\xde", "no PTX: LLVM bitcode, which holds no device code of its own");
    check(b"", "no PTX: an empty file");
    check(b"rubbish", "no PTX: no container of device code, and no PTX");
    check(b".version 8.0\n.target sm_80\n", "no kernel in it");
}

#[test]
fn machine_code_alone_still_names_its_kernels() {
    let image = Image::read(&read("fatbin/tiny.zstd.fatbin"));
    assert!(image.closed.is_empty(), "there is PTX: {:?}", image.closed);
    // The cubin of that fatbin, by itself.
    let bytes = read("fatbin/tiny.zstd.fatbin");
    let container = nt_object::open(&bytes).unwrap();
    let cubin = container.entries.iter().find(|entry| entry.kind == Kind::Elf).unwrap();
    let image = Image::read(&cubin.payload(nt_object::LIMIT).unwrap());
    assert_eq!(image.reason, "no PTX: cubin for sm_80 only (compile with -lineinfo)");
    assert_eq!(
        (image.kernels.len(), image.closed.as_slice()),
        (0, &["_Z6tinierv".to_owned(), "tiny".to_owned()][..])
    );
}

#[test]
fn how_an_image_is_packed_does_not_matter() {
    let mut texts = Vec::new();
    for way in ["raw", "lz4", "zstd", "group"] {
        let image = kept(&read(&format!("fatbin/tiny.{way}.fatbin")));
        let mut kernels = image.kernels.clone();
        kernels.sort();
        assert_eq!(kernels, ["_Z6tinierv", "tiny"], "{way}");
        for (device, expected) in [(80, "sm_80"), (86, "sm_80"), (90, "sm_90a"), (100, "sm_80")] {
            assert_eq!(taken(&image, "tiny", device).unwrap(), expected, "{way}");
        }
        assert_eq!(
            taken(&image, "tiny", 75).unwrap_err(),
            "no PTX for sm_75: PTX for sm_80, sm_90a, cubin for sm_80 only"
        );
        texts.push(image.module("tiny", 90).unwrap().0.text().to_owned());
    }
    assert!(texts.iter().all(|text| *text == texts[0]));
}

#[test]
fn a_text_is_parsed_once() {
    let image = kept(&read("fatbin/tiny.zstd.fatbin"));
    let [first, again, other] = [("tiny", 90), ("_Z6tinierv", 90), ("tiny", 80)]
        .map(|(kernel, device)| image.module(kernel, device).unwrap().0);
    assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &other));
}

/// Relocatable device code: a module a source file, in fatbins back to back.
#[test]
fn of_several_modules_the_one_that_holds_the_kernel() {
    let (a, b, newer) =
        (ptx_for("sm_80", &["a", "both"]), ptx_for("sm_80", &["b"]), ptx_for("sm_90", &["b", "both"]));
    let image = kept(
        &[fatbin(&[(1, 80, a.as_bytes())]), fatbin(&[(1, 80, b.as_bytes()), (1, 90, newer.as_bytes())])]
            .concat(),
    );
    assert_eq!(image.kernels, ["a", "both", "b"]);
    assert_eq!(taken(&image, "a", 90).unwrap(), "sm_80");
    assert_eq!(taken(&image, "b", 90).unwrap(), "sm_90");
    assert_eq!(taken(&image, "b", 89).unwrap(), "sm_80");
    assert_eq!(taken(&image, "both", 90).unwrap(), "sm_90");
}

/// Triton's cubins keep their PTX. It counts where the cubin runs.
#[test]
fn a_cubin_may_hold_its_text() {
    let image = kept(&read("cubin/vector_add.sm_90a.cubin"));
    assert_eq!(image.kernels.len(), 1, "{:?}", image.kernels);
    assert!(image.closed.is_empty());
    assert_eq!(taken(&image, &image.kernels[0], 90).unwrap(), "sm_90a");
    let reason = taken(&image, &image.kernels[0], 100).unwrap_err();
    assert_eq!(reason, "no PTX for sm_100: PTX for sm_90a, cubin for sm_90a only");
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_read() {
    let good = ptx_for("sm_80", &["k"]);
    let image = Image::read(&fatbin(&[(1, 90, b".version 8.0\0junk"), (1, 80, good.as_bytes())]));
    assert_eq!(image.kernels, ["k"]);
    assert!(image.faults[0].contains("interior NUL"), "{:?}", image.faults);
    let alone = Image::read(&fatbin(&[(1, 90, b".version 8.0\0junk")]));
    assert!(alone.reason.starts_with("no PTX that can be read: PTX text at 0x"), "{}", alone.reason);
    // Cut anywhere: no panic, and never a kernel that is not whole.
    let whole = read("fatbin/tiny.zstd.fatbin");
    for len in 0..whole.len() {
        let image = Image::read(&whole[..len]);
        assert!(image.kernels.len() <= 2 && (len > 16 || !image.reason.is_empty()));
    }
    // A text that is no module is refused when a kernel of it is asked for.
    let broken = ptx_for("sm_80", &["k"]).replace("ret;", "mov.u32 %r1 %tid.x");
    let reason = taken(&kept(broken.as_bytes()), "k", 80).unwrap_err();
    assert!(reason.starts_with("line 4: "), "{reason}");
}

/// The quick scan that lists kernels and the parser that weaving rests on see the same ones.
#[test]
fn listed_kernels_are_those_of_the_parser() {
    for name in ["ptx/nvcc/kernels.sm_90.ptx", "ptx/nvcc/features.sm_90.ptx"] {
        let bytes = read(name);
        let image = kept(&bytes);
        let (parsed, _) = image.module(&image.kernels[0], 90).unwrap();
        let module = &parsed.resolved().module;
        let names: Vec<&str> = module.kernels().map(|kernel| module.at(kernel.name)).collect();
        assert_eq!(image.kernels, names);
    }
}
