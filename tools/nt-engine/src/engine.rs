//! Remembers images and what was prepared of them, for all processes of a run.

use crate::assemble::Assembler;
use crate::cache::Cache;
use crate::choose::{self, Choice};
use crate::image;
use crate::prepare::{self, Prepared, Refusal, Tools};
use crate::probe::Probe;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// One run's probe, choices and tools, with the images it has met.
#[derive(Debug)]
pub struct Engine {
    probe: Probe,
    choices: Vec<Choice>,
    assembler: Option<Assembler>,
    cache: Cache,
    images: Mutex<Images>,
}

#[derive(Debug, Default)]
struct Images {
    /// Numbers by hash: the same image loaded by eight ranks is one.
    numbers: BTreeMap<[u8; 32], u32>,
    list: Vec<Arc<Image>>,
}

/// What was found in an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspected {
    /// Its number, for [`Engine::prepare`].
    pub image: u32,
    /// The kernels in it, by mangled name, in text order.
    pub kernels: Vec<String>,
    /// Those that are chosen.
    pub selected: Vec<String>,
    /// Why nothing in it can be probed; empty if something can, or if only nothing was chosen.
    pub reason: String,
}

#[derive(Debug)]
struct Image {
    /// BLAKE3 of its bytes, in hex.
    hash: String,
    /// Its PTX; empty where nothing in it is chosen.
    text: String,
    found: Inspected,
    prepared: Mutex<BTreeMap<(String, u32), Answer>>,
}

/// Made once, by the first who asks; others wait for it.
type Answer = Arc<OnceLock<Result<Arc<Prepared>, Refusal>>>;

impl Engine {
    /// An engine for a run. `choices` are those of `-k`; without an assembler twins are PTX.
    pub fn new(probe: Probe, choices: Vec<Choice>, assembler: Option<Assembler>, cache: Cache) -> Self {
        Engine { probe, choices, assembler, cache, images: Mutex::default() }
    }

    /// The assembler that it uses.
    pub fn assembler(&self) -> Option<&Assembler> {
        self.assembler.as_ref()
    }

    /// The probe that it weaves.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Looks into an image. The same bytes give the same number.
    pub fn inspect(&self, bytes: &[u8]) -> Inspected {
        let hash = blake3::hash(bytes);
        if let Some(known) = self.known(hash.as_bytes()) {
            return known.found.clone();
        }
        // Read without holding the lock: two processes may do the same work at first, none waits for another's image.
        let (text, mut found) = self.look(bytes);
        let mut images = lock(&self.images);
        if let Some(&number) = images.numbers.get(hash.as_bytes())
            && let Some(image) = images.list.get(number as usize)
        {
            return image.found.clone();
        }
        found.image = u32::try_from(images.list.len()).unwrap_or(u32::MAX);
        let kept = if found.selected.is_empty() { String::new() } else { text.to_owned() };
        let hex = hash.to_hex().to_string();
        let image = Image { hash: hex, text: kept, found: found.clone(), prepared: Mutex::default() };
        images.numbers.insert(*hash.as_bytes(), found.image);
        images.list.push(Arc::new(image));
        found
    }

    fn known(&self, hash: &[u8; 32]) -> Option<Arc<Image>> {
        let images = lock(&self.images);
        let number = *images.numbers.get(hash)?;
        images.list.get(number as usize).cloned()
    }

    fn look<'b>(&self, bytes: &'b [u8]) -> (&'b str, Inspected) {
        let mut found = Inspected::default();
        let text = match image::ptx(bytes) {
            Ok(text) => text,
            Err(reason) => return ("", Inspected { reason, ..found }),
        };
        match prepare::module(text) {
            Ok((module, _)) => {
                found.kernels = module.kernels().map(|kernel| module.at(kernel.name).to_owned()).collect();
                let names = found.kernels.iter().map(String::as_str);
                found.selected =
                    choose::choose(&self.choices, names).into_iter().map(str::to_owned).collect();
                if found.kernels.is_empty() {
                    found.reason = "no kernel in it".to_owned();
                }
            }
            Err(refusal) => found.reason = refusal.reason,
        }
        (text, found)
    }

    /// Prepares a kernel of an image for a device of compute capability `device` (90 for 9.0). The answer to the same
    /// question is the same, and made once.
    ///
    /// # Errors
    /// The kernel has to run as it is; why is said.
    pub fn prepare(&self, image: u32, kernel: &str, device: u32) -> Result<Arc<Prepared>, Refusal> {
        let image = lock(&self.images).list.get(image as usize).cloned();
        let Some(image) = image else { return Err(Refusal::input("no image has this number")) };
        if !image.found.selected.iter().any(|selected| selected == kernel) {
            return Err(Refusal::input("the kernel is not selected"));
        }
        let answer = {
            let mut prepared = lock(&image.prepared);
            Arc::clone(prepared.entry((kernel.to_owned(), device)).or_default())
        };
        let tools = Tools { probe: &self.probe, assembler: self.assembler.as_ref(), cache: &self.cache };
        let made = answer
            .get_or_init(|| prepare::run(tools, &image.text, &image.hash, kernel, device).map(Arc::new));
        made.clone()
    }

    /// The PTX of an image; empty where nothing in it is chosen.
    pub fn text(&self, image: u32) -> String {
        lock(&self.images).list.get(image as usize).map_or_else(String::new, |image| image.text.clone())
    }

    /// The kernels of all images so far, each name once.
    pub fn kernels(&self) -> BTreeSet<String> {
        let images = lock(&self.images).list.clone();
        images.iter().flat_map(|image| image.found.kernels.iter().cloned()).collect()
    }

    /// The names nearest to what was chosen and not found.
    pub fn nearest(&self, most: usize) -> Vec<String> {
        let kernels = self.kernels();
        let names: Vec<&str> = kernels.iter().map(String::as_str).collect();
        choose::nearest(&self.choices, &names, most).into_iter().map(str::to_owned).collect()
    }
}

/// Locks a table. One whose holder panicked is whole all the same: entries are put in by one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
