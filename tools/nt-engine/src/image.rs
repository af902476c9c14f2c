//! What an image holds: PTX, one text or several, and which of them to take for a kernel on a device.
//!
//! ```text
//! fatbin: PTX sm_80 { gemm }, PTX sm_90a { gemm }, cubin sm_90 { gemm }      gemm on 9.0 ─> the PTX for sm_90a
//! cubin sm_90 { gemm }                                                       no PTX: cubin for sm_90 only (…)
//! ```
//!
//! An image is what a program gave to the driver: PTX, a cubin, a fatbin, or several fatbins back to back, as programs of
//! relocatable device code have them (a module a source file). Reading one lists the kernels of all its PTX, whatever
//! it is for, since a program may have devices of several kinds. Which text to take is known when a kernel is to be
//! launched on one of them: the best of those that hold it ([`nt_object::best_ptx`]). It is decompressed and parsed then,
//! once.

use crate::assemble::Options;
use crate::prepare;
use crate::prepare::Refusal;
use nt_object::{Container, Entry, Kind};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// An image, with the names of what is in it.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// The kernels that there is PTX of, each name once, in the order of the image.
    pub(crate) kernels: Vec<String>,
    /// The kernels that there is machine code of, where there is no PTX at all.
    pub(crate) closed: Vec<String>,
    /// The newest architecture that there is PTX for.
    pub(crate) newest: Option<u32>,
    /// Why there is no kernel to be probed; empty if there is one.
    pub(crate) reason: String,
    /// What in it is damaged.
    pub(crate) faults: Vec<String>,
    /// What the program told the driver's assembler when it loaded this.
    pub(crate) jit: String,
    /// Empty until [`Image::keep`].
    bytes: Arc<[u8]>,
    texts: Vec<Text>,
}

/// A PTX text of an image.
#[derive(Debug)]
struct Text {
    /// [`Entry::index`]
    entry: u32,
    kernels: BTreeSet<String>,
    parsed: OnceLock<Result<Arc<Parsed>, Refusal>>,
}

self_cell::self_cell!(
    /// A module, parsed and resolved, with the text that it borrows from.
    pub(crate) struct Parsed {
        owner: Owned,
        #[covariant]
        dependent: Resolved,
    }

    impl {Debug}
);

/// What [`Parsed`] borrows from.
#[derive(Debug)]
pub(crate) struct Owned {
    text: String,
    /// What its image has it assembled with.
    options: Options,
}

/// What [`Parsed`] holds beside the text.
#[derive(Debug)]
pub(crate) struct Resolved<'t> {
    pub(crate) module: Module<'t>,
    pub(crate) info: ModuleInfo<'t>,
}

impl Image {
    /// Lists what `bytes` hold.
    pub(crate) fn read(bytes: &[u8]) -> Image {
        let mut image = Image::default();
        let container = match open(bytes) {
            Ok(container) => container,
            Err(error) => return Image { reason: format!("no PTX: {}", error.fault), ..image },
        };
        image.faults = container.faults.iter().map(ToString::to_string).collect();
        image.newest = ptx(&container).filter_map(|entry| entry.arch).map(|arch| arch.sm).max();
        let mut seen = BTreeSet::new();
        each_payload(ptx(&container), |entry, payload| match names(entry, payload) {
            Ok(names) => {
                image.kernels.extend(names.iter().filter(|name| seen.insert((*name).clone())).cloned());
                let kernels = names.into_iter().collect();
                image.texts.push(Text { entry: entry.index, kernels, parsed: OnceLock::new() });
            }
            Err(fault) => image.faults.push(fault),
        });
        if image.kernels.is_empty() {
            image.reason = match image.faults.first() {
                Some(fault) => format!("no PTX that can be read: {fault}"),
                None if image.texts.is_empty() => lack(&container.entries, None),
                None => "no kernel in it".to_owned(),
            };
        }
        if image.texts.is_empty() {
            image.closed = closed(&container);
        }
        image
    }

    /// Keeps the bytes, of which texts are taken later.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.bytes = bytes.into();
    }

    /// What [`Image::keep`] kept.
    pub(crate) fn bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// The module that holds `kernel` and suits the device best, parsed at the first time, and what it is to be assembled
    /// with there.
    pub(crate) fn module(&self, kernel: &str, device: u32) -> Result<(Arc<Parsed>, Options), Refusal> {
        let container = open(&self.bytes).map_err(|error| Refusal::input(error.to_string()))?;
        // Machine code stays among them, to be named where no PTX suits.
        let holding: Vec<Entry<'_>> = container
            .entries
            .into_iter()
            .filter(|entry| {
                entry.kind != Kind::Ptx || self.text(entry).is_some_and(|t| t.kernels.contains(kernel))
            })
            .collect();
        let best = nt_object::best_ptx(&holding, device)
            .map_err(|_| Refusal::input(lack(&holding, Some(device))))?
            .entry;
        // Those with PTX have a text: it is what holds the kernel.
        let Some(text) = self.text(best) else { return Err(Refusal::input("no PTX holds the kernel")) };
        let parsed = text.parsed.get_or_init(|| parse(best).map(Arc::new)).clone()?;
        // A driver that has machine code for the device assembles nothing.
        let is_assembled = !holding.iter().any(|entry| entry.kind == Kind::Elf && entry.runs_on(device));
        let options = if is_assembled { parsed.options().with(&self.jit) } else { parsed.options().clone() };
        Ok((parsed, options))
    }

    fn text(&self, entry: &Entry<'_>) -> Option<&Text> {
        self.texts.iter().find(|text| text.entry == entry.index)
    }
}

impl Parsed {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.borrow_owner().text
    }

    /// What its image has it assembled with.
    pub(crate) fn options(&self) -> &Options {
        &self.borrow_owner().options
    }

    /// The module and what its names mean.
    pub(crate) fn resolved(&self) -> &Resolved<'_> {
        self.borrow_dependent()
    }
}

fn open(bytes: &[u8]) -> Result<Container<'_>, nt_object::Error> {
    // As the driver takes it, PTX ends at its first NUL.
    let is_ptx = nt_object::ptx::is_ptx(bytes);
    let len = if is_ptx { memchr::memchr(0, bytes).unwrap_or(bytes.len()) } else { bytes.len() };
    nt_object::open(bytes.get(..len).unwrap_or(bytes))
}

fn ptx<'c, 'b>(container: &'c Container<'b>) -> impl Iterator<Item = &'c Entry<'b>> {
    container.entries.iter().filter(|entry| entry.kind == Kind::Ptx)
}

/// Decompresses entries in turn; those that are stored together, once.
fn each_payload<'c, 'b: 'c>(
    entries: impl Iterator<Item = &'c Entry<'b>>,
    mut f: impl FnMut(&Entry<'b>, Result<&[u8], String>),
) {
    let mut last: Option<(u64, Cow<'b, [u8]>)> = None;
    for entry in entries {
        let stream = match last.take() {
            Some((at, stream)) if at == entry.at() => Ok(stream),
            _ => entry.stream(nt_object::LIMIT),
        };
        match stream {
            Ok(stream) => {
                f(entry, entry.image(&stream).map_err(|error| error.to_string()));
                last = Some((entry.at(), stream));
            }
            Err(error) => f(entry, Err(error.to_string())),
        }
    }
}

fn names(entry: &Entry<'_>, payload: Result<&[u8], String>) -> Result<Vec<String>, String> {
    let names = entry.contents(payload?).and_then(|contents| entry.kernels(contents));
    names.map_err(|error| error.to_string())
}

/// The kernels of machine code. All cubins of a container hold the same ones, for other devices.
fn closed(container: &Container<'_>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let first =
        container.entries.iter().filter(|entry| entry.kind == Kind::Elf && seen.insert(entry.container));
    let mut kernels = BTreeSet::new();
    each_payload(first, |entry, payload| kernels.extend(names(entry, payload).unwrap_or_default()));
    kernels.into_iter().collect()
}

fn parse(entry: &Entry<'_>) -> Result<Parsed, Refusal> {
    let text = entry.text(nt_object::LIMIT).map_err(|error| Refusal::input(error.to_string()))?;
    let options = Options::parse(entry.options.as_deref().unwrap_or_default());
    Parsed::try_new(Owned { text, options }, |owned| {
        prepare::module(&owned.text).map(|(module, info)| Resolved { module, info })
    })
}

/// `no PTX: cubin for sm_90 only (compile with -lineinfo)`, which keeps PTX in it; of a device, `no PTX for sm_80: PTX for sm_90a, cubin for sm_80 only`
fn lack(entries: &[Entry<'_>], device: Option<u32>) -> String {
    let mut text = "no PTX".to_owned();
    if let Some(device) = device {
        text += &format!(" for sm_{device}");
    }
    let kinds: BTreeSet<Kind> = entries.iter().map(|entry| entry.kind).collect();
    let present: Vec<String> = kinds
        .into_iter()
        .map(|kind| {
            let of_kind = entries.iter().filter(|entry| entry.kind == kind);
            let archs: BTreeSet<_> = of_kind.filter_map(|entry| entry.arch).collect();
            let archs: Vec<String> = archs.iter().map(ToString::to_string).collect();
            let name = match kind {
                Kind::Ptx => "PTX".to_owned(),
                Kind::Elf if archs.len() > 1 => "cubins".to_owned(),
                Kind::Elf => "cubin".to_owned(),
                Kind::LtoIr => "LTO-IR".to_owned(),
                Kind::TileIr => "Tile IR".to_owned(),
                Kind::Other(number) => format!("kind {number}"),
            };
            if archs.is_empty() { name } else { format!("{name} for {}", archs.join(", ")) }
        })
        .collect();
    match present.as_slice() {
        [] => text + ": no device code in it",
        present if entries.iter().all(|entry| entry.kind == Kind::Elf) => {
            format!("{text}: {} only (compile with -lineinfo)", present.join(", "))
        }
        present => format!("{text}: {} only", present.join(", ")),
    }
}

#[cfg(test)]
mod tests;
