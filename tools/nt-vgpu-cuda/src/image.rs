//! The kernels of an image and their parameters: of PTX text, or of a cubin's sections.

use std::ffi::{CStr, c_void};

/// A kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Mangled.
    pub(crate) name: String,
    /// In order.
    pub(crate) params: Vec<Param>,
}

impl Entry {
    /// Whether its last parameter looks like a probe's context. Cubins do not tell.
    pub(crate) fn is_woven(&self) -> bool {
        self.params.last().is_some_and(|last| last.name.ends_with("ctx"))
    }
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Param {
    /// Empty in cubins, which do not hold it.
    pub(crate) name: String,
    /// Into parameter space.
    pub(crate) offset: usize,
    /// In bytes.
    pub(crate) size: usize,
}

/// The kernels of an image that a program passed; `None` for what is neither PTX nor a cubin.
///
/// # Safety
/// `image` is a whole image: text that ends in a NUL, or an ELF file.
pub(crate) unsafe fn read(image: *const c_void) -> Option<Vec<Entry>> {
    if image.is_null() {
        return None;
    }
    // SAFETY: four bytes of any image.
    let magic = unsafe { image.cast::<[u8; 4]>().read() };
    if magic == *b"\x7fELF" {
        // SAFETY: an ELF file.
        return Some(unsafe { cubin(image.cast()) });
    }
    // SAFETY: text.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_str().ok()?;
    text.contains(".version").then(|| ptx(text))
}

/// The `.entry` declarations of a text.
pub(crate) fn ptx(text: &str) -> Vec<Entry> {
    let text = without_comments(text);
    let mut entries = Vec::new();
    for declaration in text.split(".entry").skip(1) {
        let head = declaration.split('{').next().unwrap_or_default();
        let (name, rest) = head.split_once('(').unwrap_or((head, ""));
        let params = rest.rsplit_once(')').map_or(rest, |(params, _)| params);
        let mut end = 0;
        let params = params.split(',').filter_map(|param| {
            let (ty, name) = param.trim().rsplit_once(char::is_whitespace)?;
            let words: Vec<&str> = ty.split_whitespace().collect();
            let align = words
                .iter()
                .position(|&word| word == ".align")
                .and_then(|at| words.get(at + 1)?.parse().ok());
            let each = words.iter().find_map(|word| width(word))?;
            let (name, count) = match name.split_once('[') {
                Some((name, count)) => (name, count.trim_end_matches(']').trim().parse().ok()?),
                None => (name, 1),
            };
            let size: usize = each * count;
            let offset = usize::next_multiple_of(end, align.unwrap_or(each).max(1));
            end = offset + size;
            Some(Param { name: name.to_owned(), offset, size })
        });
        entries.push(Entry { name: name.trim().to_owned(), params: params.collect() });
    }
    entries
}

fn width(ty: &str) -> Option<usize> {
    Some(match ty {
        ".b8" | ".u8" | ".s8" => 1,
        ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" => 8,
        ".b128" => 16,
        _ => return None,
    })
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at(at);
        out.push_str(before);
        rest = if comment.starts_with("//") {
            comment.find('\n').map_or("", |end| &comment[end..])
        } else if comment.starts_with("/*") {
            out.push(' ');
            comment.find("*/").map_or("", |end| &comment[end + 2..])
        } else {
            out.push('/');
            &comment[1..]
        };
    }
    out + rest
}

/// The `.text.NAME` sections of an ELF file, and the KPARAM_INFO records of `.nv.info.NAME`.
unsafe fn cubin(image: *const u8) -> Vec<Entry> {
    const SECTION: usize = 64;
    // SAFETY: an ELF file: a header of 64 bytes, section headers where it says, their names in one of them.
    unsafe {
        let table = at::<u64>(image, 40) as usize;
        let (count, names) = (at::<u16>(image, 60) as usize, at::<u16>(image, 62) as usize);
        let section = |index: usize| {
            let header = table + index * SECTION;
            (at::<u32>(image, header) as usize, at::<u64>(image, header + 24), at::<u64>(image, header + 32))
        };
        let (_, strings, _) = section(names);
        let all: Vec<(String, u64, u64)> = (0..count)
            .map(|index| {
                let (name, offset, size) = section(index);
                let name = CStr::from_ptr(image.add(strings as usize + name).cast());
                (name.to_string_lossy().into_owned(), offset, size)
            })
            .collect();
        let entries = all.iter().filter_map(|(name, _, _)| name.strip_prefix(".text."));
        let entries = entries.map(|name| {
            let info = all.iter().find(|(section, _, _)| section.strip_prefix(".nv.info.") == Some(name));
            let params = info.map_or_else(Vec::new, |&(_, offset, size)| {
                kernel_params(std::slice::from_raw_parts(image.add(offset as usize), size as usize))
            });
            Entry { name: name.to_owned(), params }
        });
        entries.collect()
    }
}

/// Records of format 4 (a size and that many bytes), attribute 0x17 (KPARAM_INFO): index, ordinal, offset, and a word
/// whose upper 14 bits are the size.
fn kernel_params(mut info: &[u8]) -> Vec<Param> {
    let mut params = Vec::new();
    while let [format, attribute, low, high, rest @ ..] = info {
        let size = if *format == 4 { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
        let (record, next) = rest.split_at_checked(size).unwrap_or((rest, &[]));
        if let (0x17, [_, _, _, _, o0, o1, f0, f1, _, _, w2, w3]) = (*attribute, record) {
            let ordinal = u16::from_le_bytes([*o0, *o1]);
            let offset = usize::from(u16::from_le_bytes([*f0, *f1]));
            let size = usize::from(u16::from_le_bytes([*w2, *w3]) >> 2);
            params.push((ordinal, Param { name: String::new(), offset, size }));
        }
        info = next;
    }
    params.sort_by_key(|(ordinal, _)| *ordinal);
    params.into_iter().map(|(_, param)| param).collect()
}

unsafe fn at<T: Copy>(image: *const u8, offset: usize) -> T {
    // SAFETY: the caller knows that the image reaches that far.
    unsafe { image.add(offset).cast::<T>().read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = ptx(text);
        let found = found.iter().map(|entry| {
            let params =
                entry.params.iter().map(|param| format!("{}@{}:{}", param.name, param.offset, param.size));
            format!("{}({})", entry.name, params.collect::<Vec<_>>().join(" "))
        });
        assert_eq!(found.collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn entries_and_their_parameters() {
        check(
            ".version 8.0 // .entry no\n.visible .entry k(\n .param .u64 a,\n.param .u32 n /* , x */\n)\n{ ret; }\n\
             .entry empty() { }\n.entry s(.param .align 8 .b8 block[24], .param .u8 c, .param .align 4 .b8 d[4]) { }",
            "k(a@0:8 n@8:4) empty() s(block@0:24 c@24:1 d@28:4)",
        );
    }
}
