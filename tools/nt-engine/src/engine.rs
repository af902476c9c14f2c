//! Remembers images and what was prepared of them, for all processes of a run.

use crate::assemble::Assembler;
use crate::cache::Cache;
use crate::choose::{self, Choice};
use crate::image::{Image, Parsed, Resolved};
use crate::prepare::{self, Prepared, Refusal, Tools};
use crate::probe::Probe;
use crate::unmatched::Seen;
use nt_ir::launch::Conditions;
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
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Images {
    /// Numbers by hash and options: the same image loaded by eight ranks is one.
    numbers: BTreeMap<([u8; 32], String), u32>,
    list: Vec<Arc<Known>>,
}

/// What was found in an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspected {
    /// Its number, for [`Engine::prepare`].
    pub image: u32,
    /// The kernels in it that there is PTX of, by mangled name, in the order of the image.
    pub kernels: Vec<String>,
    /// Those that are chosen.
    pub selected: Vec<String>,
    /// Kernels that are chosen and are there as machine code alone.
    pub closed: Vec<String>,
    /// The newest architecture that there is PTX for: 90 for sm_90.
    pub newest: Option<u32>,
    /// Why nothing in it can be probed; empty if something can, or if only nothing was chosen.
    pub reason: String,
    /// What of it could not be read.
    pub faults: Vec<String>,
}

#[derive(Debug)]
struct Known {
    /// BLAKE3 of its bytes, in hex.
    hash: String,
    found: Inspected,
    image: Image,
    prepared: Mutex<BTreeMap<(String, u32, Conditions), Answer>>,
}

/// Made once, by the first who asks; others wait for it.
type Answer = Arc<OnceLock<Result<Arc<Prepared>, Refusal>>>;

impl Engine {
    /// An engine for a run. `choices` are those of `-k`; without an assembler twins are PTX.
    pub fn new(probe: Probe, choices: Vec<Choice>, assembler: Option<Assembler>, cache: Cache) -> Self {
        Engine { probe, choices, assembler, cache, images: Mutex::default(), seen: Mutex::default() }
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
        self.inspect_with(bytes, "")
    }

    /// [`Engine::inspect`] of an image that is loaded with options for the driver's assembler, in words of ptxas: the same
    /// bytes with other options have another number.
    pub fn inspect_with(&self, bytes: &[u8], jit: &str) -> Inspected {
        let hash = blake3::hash(bytes);
        let key = (*hash.as_bytes(), jit.to_owned());
        if let Some(known) = self.known(&key) {
            return known.found.clone();
        }
        // Read without holding the lock: two processes may do the same work at first, none waits for another's image.
        let mut image = Image::read(bytes);
        let chosen = |names: &[String]| -> Vec<String> {
            let names = names.iter().map(String::as_str);
            choose::choose(&self.choices, names).into_iter().map(str::to_owned).collect()
        };
        let mut found = Inspected {
            image: 0,
            selected: chosen(&image.kernels),
            closed: chosen(&image.closed),
            newest: image.newest,
            kernels: std::mem::take(&mut image.kernels),
            reason: std::mem::take(&mut image.reason),
            faults: std::mem::take(&mut image.faults),
        };
        if !found.selected.is_empty() {
            image.keep(bytes);
            image.jit = jit.to_owned();
        }
        let mut images = lock(&self.images);
        if let Some(&number) = images.numbers.get(&key)
            && let Some(known) = images.list.get(number as usize)
        {
            return known.found.clone();
        }
        found.image = u32::try_from(images.list.len()).unwrap_or(u32::MAX);
        let hex = hash.to_hex().to_string();
        let known = Known { hash: hex, found: found.clone(), image, prepared: Mutex::default() };
        images.numbers.insert(key, found.image);
        images.list.push(Arc::new(known));
        found
    }

    fn known(&self, key: &([u8; 32], String)) -> Option<Arc<Known>> {
        let images = lock(&self.images);
        let number = *images.numbers.get(key)?;
        images.list.get(number as usize).cloned()
    }

    /// Prepares a kernel of an image for a device of compute capability `device` (90 for 9.0), for launches of which
    /// `holds` holds: it may rely on that, and says on how much of it it does. The answer to the same question is the
    /// same, and made once.
    ///
    /// # Errors
    /// The kernel has to run as it is; why is said.
    pub fn prepare(
        &self,
        image: u32,
        kernel: &str,
        device: u32,
        holds: Conditions,
    ) -> Result<Arc<Prepared>, Refusal> {
        let known = lock(&self.images).list.get(image as usize).cloned();
        let Some(known) = known else { return Err(Refusal::input("no image has this number")) };
        if !known.found.selected.iter().any(|selected| selected == kernel) {
            return Err(Refusal::input("the kernel is not selected"));
        }
        let answer = {
            let mut prepared = lock(&known.prepared);
            Arc::clone(prepared.entry((kernel.to_owned(), device, holds)).or_default())
        };
        let tools = Tools { probe: &self.probe, assembler: self.assembler.as_ref(), cache: &self.cache };
        let made = answer.get_or_init(|| {
            let (module, options) = known.image.module(kernel, device)?;
            self.look(&module, kernel);
            prepare::run(tools, (&module, &options), &known.hash, kernel, (device, holds)).map(Arc::new)
        });
        made.clone()
    }

    /// Remembers which of the probe's named tracepoints are in a kernel.
    fn look(&self, parsed: &Parsed, kernel: &str) {
        let Resolved { module, info } = parsed.resolved();
        let mut functions = module.functions.iter();
        let named =
            |f: &nt_ptx::syntax::Function| f.is_entry && f.body.is_some() && module.at(f.name) == kernel;
        if let Some(function) = functions.position(named) {
            lock(&self.seen).look(module, info, function, &self.probe.prepared.program);
        }
    }

    /// The tracepoints that name what no kernel so far has, with the nearest of what they have.
    pub fn unmatched(&self) -> Vec<String> {
        lock(&self.seen).told(&self.probe.prepared.program, &self.kernels())
    }

    /// The choices that took no kernel so far, where others did, with the nearest.
    pub fn not_found(&self, most: usize) -> Vec<(String, Vec<String>)> {
        let kernels = self.kernels();
        let names: Vec<&str> = kernels.iter().map(String::as_str).collect();
        let mut not_found = Vec::new();
        for choice in &self.choices {
            let alone = std::slice::from_ref(choice);
            if choose::choose(alone, names.iter().copied()).is_empty() {
                let near = choose::nearest(alone, &names, most);
                not_found.push((choice.to_string(), near.into_iter().map(str::to_owned).collect()));
            }
        }
        not_found
    }

    /// The bytes of an image; none where nothing in it is chosen.
    pub fn bytes(&self, image: u32) -> Arc<[u8]> {
        let known = lock(&self.images).list.get(image as usize).cloned();
        known.map_or_else(Arc::default, |known| known.image.bytes())
    }

    /// The kernels of all images so far, each name once.
    pub fn kernels(&self) -> BTreeSet<String> {
        let images = lock(&self.images).list.clone();
        images.iter().flat_map(|known| known.found.kernels.iter().cloned()).collect()
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
