//! Frames put into relation: data with its launch, a launch with its kernel and the kernel's manifest.
//!
//! A file's kernels are kept, its launches only as far back as data may follow, so that a trace of any length is read
//! in bounded memory.

use super::frames::{Content, Frame, Frames, Item, Trouble};
use super::table::{Mismatch, Table};
use crate::ntm::{self, Manifest};
use nt_wire::frame;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Iterates over what a file tells.
#[derive(Debug, Clone)]
pub struct Trace<'b> {
    frames: Frames<'b>,
    kernels: BTreeMap<u32, Rc<KnownKernel>>,
    launches: BTreeMap<u64, (Rc<KnownKernel>, frame::Launch)>,
}

/// A kernel of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKernel {
    /// Its number in the file.
    pub id: u32,
    /// Compute capability, 90 for 9.0.
    pub arch: u32,
    /// Its mangled name.
    pub name: String,
    /// Its manifest; `None` for a kernel that is not probed.
    pub manifest: Result<Option<Manifest>, ntm::Error>,
}

impl KnownKernel {
    /// What was woven into it.
    pub fn probed(&self) -> Option<&ntm::Kernel> {
        self.manifest.as_ref().ok()?.as_ref()?.kernels.iter().find(|kernel| kernel.name == self.name)
    }

    /// The maps that its data frames are of.
    pub fn maps(&self) -> &[ntm::Map] {
        self.probed().map_or(&[], |kernel| &kernel.maps)
    }
}

/// What a file tells, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'b> {
    /// Who wrote the file.
    Start(frame::Start),
    /// A kernel whose launches may follow.
    Kernel(Rc<KnownKernel>),
    /// A launch, whose data may follow.
    Launch(Rc<KnownKernel>, frame::Launch),
    /// One map of one launch.
    Batch(Batch<'b>),
    /// A line of the coverage table.
    Count(frame::Count),
    /// A line of words.
    Note(frame::Note),
    /// The file ended as it should.
    End(frame::End),
    /// Something is wrong with the file; what follows is told all the same.
    Trouble(Trouble),
}

/// The records of one map of one launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<'b> {
    /// Where its frame begins.
    pub at: u64,
    /// Whose launch it was.
    pub kernel: Rc<KnownKernel>,
    /// Which launch.
    pub launch: frame::Launch,
    /// Which of [`KnownKernel::maps`]; inside their range.
    pub index: usize,
    /// Units that the launch has.
    pub units: u64,
    /// Units that there was room for.
    pub capacity: u64,
    /// The records.
    pub data: &'b [u8],
}

impl<'b> Batch<'b> {
    /// What is known of the map. Every batch that a [`Trace`] gives has one.
    pub fn map(&self) -> Option<&ntm::Map> {
        self.kernel.maps().get(self.index)
    }

    /// Rows and columns.
    ///
    /// # Errors
    /// The data does not fit the map.
    pub fn table(&self) -> Result<Table<'b>, Mismatch> {
        let mismatch = Mismatch {
            bytes: self.data.len() as u64,
            units: self.units,
            capacity: self.capacity,
            stride: self.map().map_or(0, |map| map.stride),
        };
        let map = self.map().ok_or(mismatch)?;
        Table::new(map, self.units, self.capacity, self.data)
    }
}

impl<'b> Trace<'b> {
    /// How many launches may lie between a launch and its data.
    pub const LAUNCHES: usize = 1 << 16;

    /// Reads `bytes` from their beginning.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self::over(Frames::new(bytes))
    }

    /// The same without the checksums of map data: for lists of what is there.
    pub fn skim(bytes: &'b [u8]) -> Self {
        Self::over(Frames::skim(bytes))
    }

    fn over(frames: Frames<'b>) -> Self {
        Trace { frames, kernels: BTreeMap::new(), launches: BTreeMap::new() }
    }

    fn event(&mut self, frame: Frame<'b>) -> Event<'b> {
        let Frame { at, sequence, content } = frame;
        let stray = Event::Trouble(Trouble::Stray { at, sequence });
        match content {
            Content::Start(start) => {
                // Where files were joined, numbers begin anew.
                self.kernels.clear();
                self.launches.clear();
                Event::Start(start)
            }
            Content::Count(count) => Event::Count(count),
            Content::Note(note) => Event::Note(note),
            Content::End(end) => Event::End(end),
            Content::Kernel(kernel) => {
                let known = Rc::new(KnownKernel::of(kernel));
                self.kernels.insert(known.id, Rc::clone(&known));
                Event::Kernel(known)
            }
            Content::Launch(launch) => {
                let Some(kernel) = self.kernels.get(&launch.kernel) else {
                    return stray;
                };
                let kernel = Rc::clone(kernel);
                self.launches.insert(launch.number, (Rc::clone(&kernel), launch));
                if self.launches.len() > Self::LAUNCHES {
                    self.launches.pop_first();
                }
                Event::Launch(kernel, launch)
            }
            Content::Data(fixed, data) => {
                let Some((kernel, launch)) = self.launches.get(&fixed.launch) else {
                    return stray;
                };
                let index = fixed.map as usize;
                if index >= kernel.maps().len() {
                    return stray;
                }
                Event::Batch(Batch {
                    at,
                    kernel: Rc::clone(kernel),
                    launch: *launch,
                    index,
                    units: fixed.units,
                    capacity: fixed.capacity,
                    data,
                })
            }
        }
    }
}

impl<'b> Iterator for Trace<'b> {
    type Item = Event<'b>;

    fn next(&mut self) -> Option<Event<'b>> {
        Some(match self.frames.next()? {
            Item::Frame(frame) => self.event(frame),
            Item::Trouble(trouble) => Event::Trouble(trouble),
        })
    }
}

impl KnownKernel {
    fn of(kernel: frame::Kernel) -> Self {
        let frame::Kernel { id, arch, name, manifest } = kernel;
        let manifest = if manifest.is_empty() { Ok(None) } else { Manifest::parse(&manifest).map(Some) };
        KnownKernel { id, arch, name, manifest }
    }
}
