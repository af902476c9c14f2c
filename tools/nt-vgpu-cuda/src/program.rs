//! Images that can be executed: PTX, bare or in a fat binary, decoded; and where its variables lie in each context.
//!
//! A cubin is refused with CUDA_ERROR_NO_BINARY_FOR_GPU, as on a card of another architecture. What is wrong with a text
//! is said on stderr, since the code alone (218) tells nobody where.

use crate::call::{INVALID_IMAGE, NOT_FOUND, lock};
use crate::image::{Entry, Image, Param, Variable};
use crate::module::INVALID_PTX;
use crate::view::View;
use crate::{Code, memory, order, say};
use nt_vgpu::{Kernel, Program};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, Mutex};

/// CUDA_ERROR_NO_BINARY_FOR_GPU
const NO_BINARY: Code = 209;
/// What the device says its architecture is: 9.0.
const DEVICE: u32 = 90;
/// As [`crate::module`] has it: the most shared memory of a block.
const SHARED: u32 = 49_152;

/// The executable side of an image.
#[derive(Debug)]
pub(crate) struct Loaded {
    program: Program,
    /// Kernels that cannot tell in which order their blocks run.
    unordered: BTreeSet<String>,
    /// By context.
    places: Mutex<BTreeMap<usize, Arc<Places>>>,
}

/// Where a program's variables are in one context.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// 0 where there are none.
    pub(crate) globals: u64,
    pub(crate) constants: u64,
}

impl Drop for Places {
    fn drop(&mut self) {
        for address in [self.globals, self.constants] {
            let _ = memory::release(address);
        }
    }
}

impl Loaded {
    /// The program.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Whether the blocks of a kernel may run side by side.
    pub(crate) fn is_unordered(&self, kernel: &str) -> bool {
        self.unordered.contains(kernel)
    }

    /// Where its variables are in a context; the first who asks gives them their initial values.
    pub(crate) fn places(&self, context: usize) -> Result<Arc<Places>, Code> {
        let mut all = lock(&self.places);
        if let Some(places) = all.get(&context) {
            return Ok(Arc::clone(places));
        }
        let (globals, constants) = (self.program.globals(), self.program.constants());
        let place = |size: u64| if size == 0 { Ok(0) } else { memory::allocate(size as usize) };
        let places = Arc::new(Places { globals: place(globals.size)?, constants: place(constants.size)? });
        let written = self.program.initialise(&View::of_device(), places.globals, places.constants);
        written.map_err(|_| INVALID_IMAGE)?;
        all.insert(context, Arc::clone(&places));
        Ok(places)
    }

    /// A context has ended; its handle may come anew.
    pub(crate) fn forget(&self, context: usize) {
        lock(&self.places).remove(&context);
    }

    /// A variable's address in a context, and its size.
    pub(crate) fn variable(&self, name: &str, context: usize) -> Result<(u64, usize), Code> {
        let places = self.places(context)?;
        let (globals, constants) = (self.program.globals(), self.program.constants());
        let all = [(globals, places.globals), (constants, places.constants)];
        let mut found = all.iter().filter_map(|(segment, base)| {
            let named = segment.variables.iter().find(|variable| variable.name == name);
            named.map(|variable| (base + variable.offset, variable.size as usize))
        });
        found.next().ok_or(NOT_FOUND)
    }

    /// An attribute of a kernel that its text decides.
    pub(crate) fn attribute(&self, kernel: &str, attribute: c_int) -> Option<c_int> {
        let kernel = self.program.kernel(kernel)?;
        let cluster = |axis: usize| kernel.required_cluster.map_or(0, |cluster| cluster[axis]);
        let value = match attribute {
            0 => kernel.most_threads.unwrap_or(1024).min(1024), // threads of a block
            1 => kernel.static_shared,
            2 => u32::try_from(self.program.constants().size).unwrap_or(u32::MAX),
            3 => kernel.local,
            5 | 6 => DEVICE, // of text and code
            8 => SHARED.saturating_sub(kernel.static_shared),
            11..=13 => cluster(attribute as usize - 11),
            _ => return None,
        };
        Some(c_int::try_from(value).unwrap_or(c_int::MAX))
    }
}

/// Reads and decodes an image that a program passed.
///
/// # Safety
/// `image` is a whole image: text that ends in a NUL, an ELF file, or a fat binary, in a wrapper or not.
pub(crate) unsafe fn read(image: *const c_void) -> Result<Image, Code> {
    if image.is_null() {
        return Err(INVALID_IMAGE);
    }
    // SAFETY: the caller's word.
    let text = unsafe { text(image.cast()) }?;
    decode(&text)
}

/// The PTX text of an image.
///
/// # Safety
/// As [`read`].
unsafe fn text<'a>(image: *const u8) -> Result<Cow<'a, str>, Code> {
    const WRAPPER: u32 = 0x4662_43b1;
    const FATBIN: u32 = 0xba55_ed50;
    // SAFETY: an image has four bytes; a wrapper's data begins at its 8th byte; a fat binary begins with magic, version
    // (u16), size of its header (u16) and size of the rest (u64).
    unsafe {
        match image.cast::<u32>().read_unaligned() {
            WRAPPER => text(image.add(8).cast::<*const u8>().read_unaligned()),
            FATBIN => {
                let head = usize::from(image.add(6).cast::<u16>().read_unaligned());
                let rest = image.add(8).cast::<u64>().read_unaligned() as usize;
                of_fatbin(std::slice::from_raw_parts(image, head.saturating_add(rest)))
            }
            _ if std::slice::from_raw_parts(image, 4) == b"\x7fELF" => {
                say::once("a cubin was refused: the software GPU runs PTX");
                Err(NO_BINARY)
            }
            _ => CStr::from_ptr(image.cast()).to_str().map(Cow::Borrowed).map_err(|_| INVALID_IMAGE),
        }
    }
}

/// The text of a fat binary that suits the device.
fn of_fatbin<'a>(bytes: &[u8]) -> Result<Cow<'a, str>, Code> {
    let container = nt_object::open(bytes).map_err(|error| {
        say::once(&format!("a fat binary was refused: {error}"));
        INVALID_IMAGE
    })?;
    let best = nt_object::best_ptx(&container.entries, DEVICE).map_err(|_| {
        say::once("a fat binary was refused: it holds no PTX for sm_90 or older");
        NO_BINARY
    })?;
    best.entry.text(nt_object::LIMIT).map(Cow::Owned).map_err(|error| {
        say::once(&format!("a fat binary was refused: {error}"));
        INVALID_IMAGE
    })
}

fn decode(text: &str) -> Result<Image, Code> {
    let refused = |found: &nt_diag::Found| {
        let first = found.clone().sorted().into_iter().find(|d| d.severity == nt_diag::Severity::Error);
        let Some(first) = first else { return INVALID_PTX };
        let line = nt_diag::Source::new("", text).position(first.span.start).line;
        let label = if first.label.is_empty() { String::new() } else { format!(": {}", first.label) };
        say::once(&format!("PTX was refused: line {line}: {}{label}", first.message));
        INVALID_PTX
    };
    if !text.contains(".version") {
        return Err(INVALID_IMAGE);
    }
    let (module, mut found) = nt_ptx::parse(text);
    let info = nt_ptx::resolve(&module, &mut found);
    if found.has_errors() {
        return Err(refused(&found));
    }
    let program = Program::load(&module, &info).map_err(|found| refused(&found))?;
    let variables = |segment: &nt_vgpu::Segment, constant: bool| {
        let all = segment.variables.iter();
        all.map(|v| Variable { name: v.name.clone(), size: v.size as usize, constant }).collect::<Vec<_>>()
    };
    Ok(Image {
        entries: program.kernels().iter().map(entry).collect(),
        variables: [variables(program.globals(), false), variables(program.constants(), true)].concat(),
        loaded: Some(Arc::new(Loaded {
            program,
            unordered: order::unordered(&module),
            places: Mutex::default(),
        })),
        ..Image::default()
    })
}

fn entry(kernel: &Kernel) -> Entry {
    let params = kernel.params.iter().map(|param| Param {
        name: param.name.clone(),
        offset: param.offset as usize,
        size: param.size as usize,
    });
    Entry { name: kernel.name.clone(), params: params.collect() }
}
