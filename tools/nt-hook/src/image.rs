//! How long a module image is that a program hands to the driver as a bare pointer.
//!
//! The driver has accepted it before we look, so what its headers say is what it is. Forms: PTX (text up to a NUL),
//! cubins (ELF64: as far as its headers, sections and segments reach), fat binaries (a header with a size), and the
//! 24-byte wrapper that nvcc puts before those. Of a program of relocatable device code the wrapper is of version 2 and
//! names, beside what was linked, the fat binaries that it was linked of, where all its PTX is.

use std::ffi::{CStr, c_void};

const WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

/// Nothing longer is copied.
const LONGEST: u64 = 4 << 30;

/// The bytes of an image; `None` for a form that we do not know.
///
/// # Safety
/// `image` is one that the driver has just accepted, and stays as it is while the slice is used.
pub(crate) unsafe fn bytes<'i>(image: *const c_void) -> Option<&'i [u8]> {
    if image.is_null() {
        return None;
    }
    let mut image = image.cast::<u8>();
    // SAFETY: text of fewer than four bytes ends in a NUL, and the driver takes no such text.
    let mut magic = unsafe { image.cast::<u32>().read_unaligned() };
    if u32::from_le(magic) == WRAPPER {
        // SAFETY: magic, version (u32 each), then the address of the container.
        image = unsafe { image.add(8).cast::<*const u8>().read_unaligned() };
        if image.is_null() {
            return None;
        }
        // SAFETY: as above.
        magic = unsafe { image.cast::<u32>().read_unaligned() };
    }
    let len = match u32::from_le(magic) {
        FATBIN => {
            // SAFETY: magic, version u16, header's size u16, size of what follows u64.
            let (header, body) = unsafe { (at::<u16>(image, 6), at::<u64>(image, 8)) };
            u64::from(header).checked_add(body)?
        }
        // SAFETY: an ELF file that the driver accepted.
        ELF => unsafe { elf(image) }?,
        // PTX begins with `.version`, a comment or space.
        first if matches!(first.to_le_bytes()[0], b'.' | b'/' | b' ' | b'\t' | b'\r' | b'\n') => {
            // SAFETY: PTX for the driver ends in a NUL.
            unsafe { CStr::from_ptr(image.cast()) }.count_bytes() as u64
        }
        _ => return None,
    };
    // SAFETY: as many bytes belong to the image.
    (len <= LONGEST).then(|| unsafe { std::slice::from_raw_parts(image, len as usize) })
}

/// A copy of an image: what is linked first, then what it was linked of, back to back.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn copy(image: *const c_void) -> Option<Vec<u8>> {
    const LINKED: u32 = 2;
    const MOST: usize = 1 << 16;
    // SAFETY: the caller's word.
    let mut all = unsafe { bytes(image) }?.to_vec();
    // SAFETY: every image has four bytes, and a wrapper has 24: magic, version, container, list.
    let list = unsafe {
        let image = image.cast::<u8>();
        let is_list = at::<u32>(image, 0) == WRAPPER && at::<u32>(image, 4) == LINKED;
        if is_list { at::<*const *const c_void>(image, 16) } else { std::ptr::null() }
    };
    if list.is_null() {
        return Some(all);
    }
    for index in 0..MOST {
        // SAFETY: the list ends in a null, which is where we stop; each other entry is a fat binary.
        let linked = unsafe { bytes(*list.add(index)) };
        match linked {
            Some(linked) if (all.len() + linked.len()) as u64 <= LONGEST => all.extend_from_slice(linked),
            _ => break,
        }
    }
    Some(all)
}

/// Where the last of an ELF file's headers, sections and segments ends.
unsafe fn elf(image: *const u8) -> Option<u64> {
    const CLASS_64: u8 = 2;
    const NOBITS: u32 = 8;
    // SAFETY: the header of 64 bytes, and tables where it says.
    unsafe {
        if at::<u8>(image, 4) != CLASS_64 {
            return None;
        }
        let (segments, sections) = (at::<u64>(image, 32), at::<u64>(image, 40));
        let (segment_size, segment_count) =
            (u64::from(at::<u16>(image, 54)), u64::from(at::<u16>(image, 56)));
        let (section_size, section_count) =
            (u64::from(at::<u16>(image, 58)), u64::from(at::<u16>(image, 60)));
        if (segment_count != 0 && segment_size < 56) || (section_count != 0 && section_size < 64) {
            return None;
        }
        let mut end = 64u64;
        for i in 0..segment_count {
            let header = segments.checked_add(i * segment_size).filter(|&offset| offset < LONGEST)? as usize;
            end = end.max(at::<u64>(image, header + 8).checked_add(at::<u64>(image, header + 32))?);
        }
        for i in 0..section_count {
            let header = sections.checked_add(i * section_size).filter(|&offset| offset < LONGEST)? as usize;
            if at::<u32>(image, header + 4) != NOBITS {
                end = end.max(at::<u64>(image, header + 24).checked_add(at::<u64>(image, header + 32))?);
            }
        }
        end = end.max(segments.checked_add(segment_count * segment_size)?);
        Some(end.max(sections.checked_add(section_count * section_size)?))
    }
}

/// A field of plain bytes, in the machine's order, which is little-endian on every machine with CUDA.
unsafe fn at<T: Copy>(image: *const u8, offset: usize) -> T {
    // SAFETY: the caller knows that the image reaches that far.
    unsafe { image.add(offset).cast::<T>().read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(image: &[u8], expected: Option<usize>) {
        // SAFETY: each image below reaches as far as it says.
        let found = unsafe { bytes(image.as_ptr().cast()) };
        assert_eq!(found.map(<[u8]>::len), expected);
    }

    #[test]
    fn text_ends_at_its_nul() {
        check(b".version 8.0\n.target sm_80\n\0rest", Some(27));
        check(b"// made by hand\n\0", Some(16));
    }

    #[test]
    fn containers_say_their_size() {
        let mut container = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
        container.extend_from_slice(&32u64.to_le_bytes());
        container.resize(16 + 32, 0);
        check(&container, Some(48));
        let mut wrapper = vec![0xb1, 0x43, 0x62, 0x46, 1, 0, 0, 0];
        wrapper.extend_from_slice(&(container.as_ptr() as usize).to_le_bytes());
        wrapper.resize(24, 0);
        check(&wrapper, Some(48));
    }

    /// As `crt/link.stub` of nvcc fills it: the list holds the containers themselves, and ends in a null.
    #[test]
    fn what_was_linked_comes_along() {
        let container = |fill: u8| {
            let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
            bytes.extend_from_slice(&8u64.to_le_bytes());
            bytes.extend_from_slice(&[fill; 8]);
            bytes
        };
        let (linked, first, second) = (container(0), container(1), container(2));
        let list = [first.as_ptr(), second.as_ptr(), std::ptr::null()];
        let wrapper = |version: u32| {
            let mut bytes = vec![0xb1, 0x43, 0x62, 0x46];
            bytes.extend_from_slice(&version.to_le_bytes());
            bytes.extend_from_slice(&(linked.as_ptr() as usize).to_le_bytes());
            bytes.extend_from_slice(&(list.as_ptr() as usize).to_le_bytes());
            bytes
        };
        // SAFETY: each reaches as far as it says.
        let copied = |version: u32| unsafe { copy(wrapper(version).as_ptr().cast()) }.unwrap();
        assert_eq!(copied(2), [&linked[..], &first, &second].concat());
        // Of version 1, the word is a file name or null.
        assert_eq!(copied(1), linked);
    }

    #[test]
    fn an_elf_file_reaches_to_its_last_section() {
        // This test's own program: read back, it must be at most as long as the file and hold all its sections.
        let file = std::fs::read("/proc/self/exe").unwrap();
        // SAFETY: a whole ELF file.
        let len = unsafe { bytes(file.as_ptr().cast()) }.unwrap().len();
        assert!(len <= file.len() && file.len() - len < 64, "{len} of {}", file.len());
    }

    #[test]
    fn other_forms_are_not_guessed() {
        check(b"BC\xc0\xde............", None);
        // SAFETY: null is looked at, not followed.
        assert!(unsafe { bytes(std::ptr::null()) }.is_none());
    }
}
