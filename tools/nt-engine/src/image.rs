//! What an image is, by its first bytes, and the PTX in it.
//!
//! So far an image that holds PTX is PTX: text that ends at its first NUL, as the driver takes it. All others are told
//! apart, so that the summary can say why their kernels run as they are.

/// The PTX of an image.
///
/// # Errors
/// It has none that can be reached; what it is instead is said.
pub(crate) fn ptx(image: &[u8]) -> Result<&str, String> {
    if image.starts_with(b"\x7fELF") {
        return Err(elf(image));
    }
    if image.starts_with(&[0xb1, 0x43, 0x62, 0x46]) || image.starts_with(&[0x50, 0xed, 0x55, 0xba]) {
        return Err("a fat binary: its PTX cannot be taken out yet".to_owned());
    }
    if image.starts_with(b"BC\xc0\xde") || image.starts_with(&[0xde, 0xc0, 0x17, 0x0b]) {
        return Err("no PTX: LLVM bitcode (LTO-IR)".to_owned());
    }
    let len = memchr::memchr(0, image).unwrap_or(image.len());
    let text = std::str::from_utf8(&image[..len])
        .map_err(|error| format!("no PTX: byte {} of the image is not UTF-8", error.valid_up_to()))?;
    if text.trim().is_empty() { Err("no PTX: an empty image".to_owned()) } else { Ok(text) }
}

/// What an ELF image is. Where a cubin keeps its architecture changed with CUDA 12.8: by the ABI version in its
/// identification bytes the number is in the low or in the second byte of `e_flags`.
fn elf(image: &[u8]) -> String {
    let half = |at: usize| Some(u16::from_le_bytes(*image.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*image.get(at..)?.first_chunk()?));
    const EM_CUDA: u16 = 190;
    match (half(18), image.get(8), word(48)) {
        (Some(EM_CUDA), Some(&abi), Some(flags)) => {
            let arch = if abi >= 8 { flags >> 8 & 0xff } else { flags & 0xff };
            format!("no PTX: a cubin for sm_{arch}")
        }
        (Some(EM_CUDA), ..) => "no PTX: a cubin that is cut".to_owned(),
        _ => "no PTX: an ELF file that is no cubin".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(image: &[u8], expected: Result<&str, &str>) {
        assert_eq!(ptx(image), expected.map_err(str::to_owned));
    }

    /// The head of a cubin, with fields as in files that ptxas 11.8 and 13.5 wrote.
    fn cubin(abi: u8, flags: u32) -> Vec<u8> {
        let mut head = vec![0; 64];
        head[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0x33, abi]);
        head[18] = 190;
        head[48..52].copy_from_slice(&flags.to_le_bytes());
        head
    }

    #[test]
    fn text_ends_at_its_nul() {
        check(b".version 8.0\n\0rubbish\xff", Ok(".version 8.0\n"));
        check(b".version 8.0", Ok(".version 8.0"));
        check("// é\n.version 8.0\0".as_bytes(), Ok("// é\n.version 8.0"));
    }

    #[test]
    fn other_images_are_named() {
        check(&cubin(7, 0x50_0559), Err("no PTX: a cubin for sm_89"));
        check(&cubin(8, 0x0600_6402), Err("no PTX: a cubin for sm_100"));
        check(&cubin(8, 0x0600_5004)[..20], Err("no PTX: a cubin that is cut"));
        check(b"\x7fELF", Err("no PTX: an ELF file that is no cubin"));
        check(&0x4662_43b1_u32.to_le_bytes(), Err("a fat binary: its PTX cannot be taken out yet"));
        check(&0xba55_ed50_u32.to_le_bytes(), Err("a fat binary: its PTX cannot be taken out yet"));
        check(b"BC\xc0\xde", Err("no PTX: LLVM bitcode (LTO-IR)"));
        check(b"", Err("no PTX: an empty image"));
        check(b"\n\0.version", Err("no PTX: an empty image"));
        check(b".v\xff", Err("no PTX: byte 2 of the image is not UTF-8"));
    }
}
