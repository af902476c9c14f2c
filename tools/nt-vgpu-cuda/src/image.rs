//! What an image holds: kernels with their parameters, of PTX text or of a cubin's sections; variables, of PTX text.
//!
//! A fat binary is taken as it is, unread: it has whatever kernel it is asked for, without parameters, and no variable.
//! That is enough for programs that come with such images and for tests of who is shown which bytes.

use crate::program::Loaded;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// What an image holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Image {
    /// Its kernels.
    pub(crate) entries: Vec<Entry>,
    /// Its variables in `.global` and `.const` space.
    pub(crate) variables: Vec<Variable>,
    /// A fat binary: it was not read.
    pub(crate) unread: bool,
    /// What is executed, where that was asked for.
    pub(crate) loaded: Option<Arc<Loaded>>,
}

/// A variable of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    /// As the text has it.
    pub(crate) name: String,
    /// In bytes.
    pub(crate) size: usize,
    /// In `.const` space.
    pub(crate) constant: bool,
}

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

/// Reads an image that a program passed; `None` for what is neither PTX nor a cubin nor a fat binary.
///
/// # Safety
/// `image` is a whole image: text that ends in a NUL, an ELF file, or a fat binary, in a wrapper or not.
pub(crate) unsafe fn read(image: *const c_void) -> Option<Image> {
    const WRAPPER: u32 = 0x4662_43b1;
    const FATBIN: u32 = 0xba55_ed50;
    if image.is_null() {
        return None;
    }
    // SAFETY: four bytes of any image.
    let magic = unsafe { image.cast::<[u8; 4]>().read() };
    if magic == *b"\x7fELF" {
        // SAFETY: an ELF file.
        return Some(Image { entries: unsafe { cubin(image.cast()) }, ..Image::default() });
    }
    if matches!(u32::from_le_bytes(magic), WRAPPER | FATBIN) {
        return Some(Image { unread: true, ..Image::default() });
    }
    // SAFETY: text.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_str().ok()?;
    let text = without_comments(text);
    let image = || Image { entries: entries(&text), variables: variables(&text), ..Image::default() };
    text.contains(".version").then(image)
}

/// The `.global` and `.const` declarations of a text without comments, of those outside of functions.
fn variables(text: &str) -> Vec<Variable> {
    let (mut depth, mut start, mut found) = (0u32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            found.extend(variable(&text[start..at]));
            start = at + 1;
        } else if depth == 0 && c == '\n' && text[start..at].trim_start().starts_with(['.']) {
            // Directives such as `.version` have a line, and no semicolon.
            let words = text[start..at].split_whitespace().next();
            if words.is_some_and(|word| matches!(word, ".version" | ".target" | ".address_size" | ".file")) {
                start = at + 1;
            }
        }
    }
    found
}

/// One declaration, up to what it is initialised with.
fn variable(statement: &str) -> Option<Variable> {
    let head = statement.split('=').next()?;
    let mut words =
        head.split_whitespace().filter(|word| !matches!(*word, ".visible" | ".extern" | ".weak" | ".common"));
    let constant = match words.next()? {
        ".const" => true,
        ".global" => false,
        _ => return None,
    };
    let words: Vec<&str> = words.collect();
    let each = words.iter().find_map(|word| width(word))?;
    let (name, count) = match words.last()?.split_once('[') {
        Some((name, count)) => (name, count.trim_end_matches(']').parse().ok()?),
        None => (*words.last()?, 1),
    };
    Some(Variable { name: name.to_owned(), size: each * count, constant })
}

/// The `.entry` declarations of a text without comments.
fn entries(text: &str) -> Vec<Entry> {
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
        let found = entries(&without_comments(text));
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

    #[test]
    fn variables_outside_of_functions() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n.const .align 4 .b32 table[16] = {1, 2, 3};\n\
             .visible .global .u64 counter;\n.visible .entry k(.param .u64 .ptr .global .align 8 p) {\n\
             .local .b8 x[4]; ret;\n}\n.global .align 8 .b8 last[24];\n";
        let found = variables(text);
        let found = found.iter().map(|v| format!("{}:{}:{}", v.name, v.size, v.constant));
        assert_eq!(found.collect::<Vec<_>>().join(" "), "table:64:true counter:8:false last:24:false");
    }
}
